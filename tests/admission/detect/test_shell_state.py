"""What a shell's variables are once something may have changed them."""

from __future__ import annotations

import pytest

from admission.detect.budget import budget_for
from admission.detect.shell import Command, read_script
from admission.detect.words import Word


def _commands(script: str) -> tuple[Command, ...]:
    result = read_script(
        Word(text=script, origin="args"),
        variables={"E": (Word(text="env"),)},
        budget=budget_for(1),
        arguments=(Word(text="one"), Word(text="two")),
    )
    assert result.problem is None
    return tuple(command for command in result.commands if command.words[0].text == "a")


def _values(script: str) -> list[str | None]:
    """Return the words after each `a`; None for those that are not known."""
    return [
        None if any(not word.is_known for word in command.words) else " ".join(_texts(command))
        for command in _commands(script)
    ]


def _texts(command: Command) -> list[str]:
    return [word.text for word in command.words[1:]]


@pytest.mark.parametrize(
    "change",
    [
        "read B",
        "read -r -p 'x' B <<< 9",
        "printf -v B %s 9",
        'eval "$X"',
        "eval $(cat f)",
        "source env.sh",
        ". ./env.sh",
        "export $(cat .env | xargs)",
        "export $(grep -v '^#' .env)",
        "let B=9",
        'let "B = 9"',
        "((B=9))",
        "((B++))",
        "echo $((B = 9))",
        "mapfile -t B < f",
        "readarray B",
        "getopts b: B",
        "declare -i B=4+5",
        "declare -n B=C",
        "declare $X",
        "unset $X",
        "B[1]=9",
        "test x && B=9",
        "cmd || B=9",
        "if c; then B=9; fi",
        "case x in y) B=9;; esac",
        "while c; do B=9; done",
        "for B in 1 2; do :; done",
        "f() { B=9; }; c && f",
        "cmd && { B=9; }",
        "command read B",
    ],
)
def test_what_may_have_been_changed_is_unknown(change: str) -> None:
    """Never the old value and never a guess at the new one."""
    assert _values(f"B=8; {change}; a $B") == [None]


@pytest.mark.parametrize(
    "change",
    [
        "(B=9)",
        "echo 9 | read B",
        "echo 9 | { read B; }",
        "{ B=9; } | cat",
        "B=9 &",
        "f() { B=9; }",
        "function f { B=9; }",
        "f() { local B=9; }; f",
        "f() ( B=9 ); f",
        "if c; then B=9; exit 1; fi",
        "((B == 9))",
        "[[ -n $B && $B < 9 ]]",
        "B=9 cmd",
        "source /venv/bin/activate",
        'eval "$(conda shell.bash hook)"',
        "bash -c 'B=9'",
        "export C=9",
    ],
)
def test_what_does_not_leave_its_shell_changes_nothing(change: str) -> None:
    """Subshells, pipelines, background, functions nobody calls and their locals."""
    assert _values(f"B=8; {change}; a $B") == ["8"]


@pytest.mark.parametrize(
    "change",
    [
        "B=9",
        "eval B=9",
        "f() { B=9; }; f",
        "declare B=9",
        "readonly B=9",
        "{ B=9; }",
        "source env.sh; B=9",
        "unset B; : ${B:=9}",
        "cd /w && B=9",
        "export 'B=9'",
        "set -- 9; B=$1",
        "if true; then B=9; fi; B=9",
    ],
)
def test_what_is_followed_counts(change: str) -> None:
    """An assignment that runs for certain is the value."""
    assert _values(f"B=8; {change}; a $B") == ["9"]


def test_a_value_set_under_a_condition_holds_where_the_condition_does() -> None:
    """Inside the branch and the list it is known, outside it is not."""
    script = "cmd && B=1 && a $B; a $B; if c; then B=2; a $B; else a $B; fi; a $B"

    assert _values(script) == ["1", None, "2", None, None]


def test_a_loop_sees_what_its_last_round_set() -> None:
    """What the body sets is unknown from its first line on."""
    assert _values("B=8; for i in 1 2; do a $B; B=9; done; a $B") == [None, None]
    assert _values("B=8; for i in 1 2; do a $B; done; a $B") == ["8", "8"]


def test_functions_are_read_where_they_are_called() -> None:
    """With the arguments and variables of each call; never where they are only defined."""
    assert _values("f() { a $1 $B; }; B=1; f x; B=2; f y; a $1") == ["x 1", "y 2", "one"]
    assert _values("f() { a; }") == []


@pytest.mark.parametrize(
    ("script", "values"),
    [
        ('set -- p q; shift; a "$@"', ["q"]),
        ("set -e; a $1", ["one"]),
        ('set -- p $X q; a $1; a $2; a "$@"', ["p", None, None]),
        ("c && set -- p; a $1", [None]),
        ("shift 9$X; a $1", [None]),
    ],
)
def test_arguments_are_followed(script: str, values: list[str | None]) -> None:
    """`set` and `shift` move them; what is not known may be several."""
    assert _values(script) == values


@pytest.mark.parametrize(
    ("script", "values"),
    [
        ("a > >(tee log) 1", ["1"]),
        ("a <&- 1", ["1"]),
        ("a $'x\\ty' 1", ["x\ty 1"]),
        ("IFS=,; F='1 2'; a $F", [None]),
        ("F='1 2'; a $F", ["1 2"]),
        ("F=1; a ${F:+2}", ["2"]),
        ("a ${G:+2}", [None]),
        ("E=1 a $E", ["env"]),
        ("a 1 &&\n a 2", ["1", "2"]),
        ("case x in (x|y) a 1;; *) a 2 ;; esac", ["1", "2"]),
    ],
)
def test_syntax_that_is_easily_misread(script: str, values: list[str | None]) -> None:
    """As bash reads it."""
    assert _values(script) == values


@pytest.mark.parametrize(
    "script", ["f() { f; }; f", "f() { g; g; }; g() { h; h; }; h() { f; }; f", "eval " * 20 + "a"]
)
def test_calls_without_end_are_named(script: str) -> None:
    """A function that calls itself ends reading with a reason."""
    result = read_script(Word(text=script), variables={}, budget=budget_for(1))

    assert result.problem is not None
