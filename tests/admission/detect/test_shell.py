"""Scripts become commands, expanded as far as the object tells."""

from __future__ import annotations

import pytest

from admission.detect.budget import MAX_SCRIPT, budget_for
from admission.detect.scope import OPEN
from admission.detect.shell import Script, read_script
from admission.detect.words import Variables, Word


def _read(script: str, *arguments: str, **variables: str) -> Script:
    known: Variables = {name: (Word(text=value),) for name, value in variables.items()}
    return read_script(
        Word(text=script, origin="args"),
        variables=known,
        budget=budget_for(1),
        arguments=tuple(Word(text=argument) for argument in arguments),
    )


def _texts(script: Script) -> list[list[str]]:
    return [[word.text for word in command.words] for command in script.commands]


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ("a; b && c || d | e\nf & g", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]]),
        ("a \\\n  --x \\\n  y", [["a", "--x", "y"]]),
        ("a 'x y' \"z w\" u\\ v", [["a", "x y", "z w", "u v"]]),
        ("a # b\nc '#d' e#f", [["a"], ["c", "#d", "e#f"]]),
        ("a > log 2>&1 < in; b &> all", [["a"], ["b"]]),
        ("cat <<EOF > f\npython no.py\nEOF\nb", [["cat"], ["b"]]),
        ("cat <<-'END'\n\tx $Y\n\tEND\nb", [["cat"], ["b"]]),
        ("a --n=$N '$N' \"$N ${N}\"", [["a", "--n=8", "$N", "8 8"]]),
        ("X=1 Y=$N a $X $N", [["a", "$X", "8"]]),
        ("X=1 Y=$X; a $Y", [["a", "1"]]),
        ("X=1; export Y=2 Z=$X; a $X $Y $Z", [["a", "1", "2", "1"]]),
        ('F="--x 1 --y 2"; a $F "$F"', [["a", "--x", "1", "--y", "2", "--x 1 --y 2"]]),
        ('F=(--x 1 # no\n "y z"); F+=(w); a "${F[@]}"', [["a", "--x", "1", "y z", "w"]]),
        ("a ${M:-8} ${N:-4} ${M:=3} ${M-2}", [["a", "8", "8", "3", "3"]]),
        ('a ${M:-"${N} x"}', [["a", "8", "x"]]),
        ("X=a; X+=b; c $X", [["c", "ab"]]),
        ("if true; then a; else b; fi; c", [["true"], ["a"], ["c"]]),
        ("for i in 1 2; do a; done", [["a"]]),
        ("unset N; a ${N:-1}", [["a", "1"]]),
        ("(a; b); { c; }", [["a"], ["b"], ["c"]]),
    ],
)
def test_commands(script: str, commands: list[list[str]]) -> None:
    """Separators, quotes, redirections, assignments and expansions work as in a shell."""
    assert _texts(_read(script, N="8")) == commands


def test_arguments_are_passed_on() -> None:
    """`"$@"` keeps words whole, `"$*"` makes one of them, without quotes blanks separate."""
    script = _read('exec trl "$@" "$*" "$1" ${@} $1', "--a=x y", "--b")

    whole, split = ["--a=x y", "--b", "--a=x y --b", "--a=x y"], ["--a=x", "y", "--b", "--a=x", "y"]
    assert _texts(script) == [["exec", "trl", *whole, *split]]


@pytest.mark.parametrize(
    ("script", "references"),
    [
        ("a $X", ("$X",)),
        ("a b${X}c", ("${X}",)),
        ("a $(nproc --all)", ("$(nproc --all)",)),
        ("a `ls`", ("`ls`",)),
        ("a {{inputs.parameters.x}}", ("{{inputs.parameters.x}}",)),
        ("a $((2 * X))", ("$((2 * X))",)),
        ("a ${X%.*}", ("${X%.*}",)),
        ("if c; then B=1; else B=2; fi; a $B", ("${B}",)),
        ('[ -z "$B" ] && B=8; a $B', ("${B}",)),
        ("for i in 1 2; do a $i; done", ("${i}",)),
    ],
)
def test_what_is_not_known_stays_marked(script: str, references: tuple[str, ...]) -> None:
    """Nothing is guessed: what no value resolves is kept as written and listed."""
    commands = [command for command in _read(script).commands if command.words[0].text == "a"]

    assert commands[0].words[1].unresolved == references


def test_templates_are_told_from_variables() -> None:
    """`{{x}}` is a template's, `$x` might be set inside the image."""
    (command,) = _read("a {{x}} $x").commands

    assert [word.is_template for word in command.words] == [False, True, False]


def test_a_default_counts_only_if_no_other_source_is_open() -> None:
    """With an unread ConfigMap behind envFrom, `${X:-8}` may be anything."""
    script = read_script(Word(text="a ${X:-8}"), variables={OPEN: ()}, budget=budget_for(1))

    assert script.commands[0].words[1].unresolved == ("${X:-8}",)


def test_a_folder_is_followed() -> None:
    """`cd` moves what comes after it, relative to where it was."""
    script = _read("a; cd /w; b; cd x/y && c; cd /z; d")

    assert [command.directory for command in script.commands] == ["", "/w", "/w/x/y", "/z"]


def test_a_variable_keeps_its_value_at_each_command() -> None:
    """Later assignments do not reach back."""
    first, second = _read("X=1; a; X=2; Y=3 b").commands

    assert first.variables["X"][0].text == "1"
    assert (second.variables["X"][0].text, second.variables["Y"][0].text) == ("2", "3")
    assert "Y" not in first.variables


@pytest.mark.parametrize(
    "script",
    [
        "a" * (MAX_SCRIPT + 1),
        "a;" * 3000,
        "a " * 20_000,
        "A=xx;" + "A=$A$A;" * 40,
        "${a:-" * 40 + "x" + "}" * 40,
        "".join(f"V{index}=1;" for index in range(1000)),
        "if " * 50_000,
        "<<a " * 20_000,
    ],
)
def test_limits_end_reading_with_a_reason(script: str) -> None:
    """A hostile script costs little and is named, never an exception."""
    result = _read(script)

    assert result.problem is not None or not result.commands


@pytest.mark.parametrize(
    "script", ["'", '"', "`", "$(", "${", "a=(", "<<", ">", "\\", "$", "((", "&"]
)
def test_broken_scripts_are_read_to_their_end(script: str) -> None:
    """Open quotes and brackets end at the end of the text."""
    _read(script)
    _read(f"a {script}")
