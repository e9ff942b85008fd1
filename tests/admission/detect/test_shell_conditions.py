"""Tests and sums whose parts are all known decide what runs and what is passed on."""

from __future__ import annotations

import pytest

from admission.detect.budget import budget_for
from admission.detect.shell import read_script
from admission.detect.words import Word


def _run(script: str, *arguments: str) -> list[tuple[str, bool]]:
    """Return what `a` is called with, and whether that is certain; None for what is not known."""
    result = read_script(
        Word(text=script, origin="args"),
        variables={"E": (Word(text="8"),), "Z": (Word(text=""),)},
        budget=budget_for(1),
        arguments=tuple(Word(text=argument) for argument in arguments),
    )
    assert result.problem is None
    return [
        (
            " ".join(word.text for word in command.words[1:])
            if all(word.is_known for word in command.words)
            else "?",
            command.is_sure,
        )
        for command in result.commands
        if command.words[0].text == "a"
    ]


@pytest.mark.parametrize(
    "test",
    [
        "true",
        '[ "$E" = 8 ]',
        '[ "$E" == "8" ]',
        "[[ $E != 9 ]]",
        '[ -n "$E" ]',
        '[ -z "$Z" ]',
        '[[ -z "$1" ]]',
        '[ "$E" -ge 8 ]',
        "test $# -eq 0",
        '! [ "$E" = 9 ]',
        '[ ! "$E" = 9 ]',
    ],
)
def test_conditions_that_hold(test: str) -> None:
    """The branch runs for certain, the other one never, and what it sets is known."""
    assert _run(f"B=0; if {test}; then B=1; a in; else B=2; a out; fi; a $B") == [
        ("in", True),
        ("1", True),
    ]
    assert _run(f"if false; then :; elif {test}; then a in; else a out; fi") == [("in", True)]
    assert _run(f"if {test}; then a in; exit 0; fi; a after") == [("in", True)]


@pytest.mark.parametrize("test", ["false", '[ "$E" = 9 ]', '[ -n "$1" ]', "! true"])
def test_conditions_that_do_not_hold(test: str) -> None:
    """The branch is not read, the loop never runs."""
    assert _run(f"B=0; if {test}; then B=1; a in; fi; a $B") == [("0", True)]
    assert _run(f"if {test}; then a in; else a out; fi") == [("out", True)]
    assert _run(f"B=0; while {test}; do B=1; a in; done; a $B") == [("0", True)]


@pytest.mark.parametrize(
    "test",
    [
        '[ -n "$UNSET" ]',
        "[ -f f ]",
        "[[ $E == 8* ]]",
        "[[ $E =~ 8 ]]",
        '[ "$E" = 8 -a -f f ]',
        '[ "$E" = 8 ] && c',
        'c || [ "$E" = 8 ]',
        'c | [ "$E" = 8 ]',
        "[ ]",
        "[ $E ]",
        "[ = ]",
        '[ "$E" -eq x ]',
        "grep -q x f",
    ],
)
def test_conditions_that_are_not_known(test: str) -> None:
    """Both branches may run, and what they set is not known."""
    assert _run(f"B=0; if {test}; then B=1; a in; else a out; fi; a $B") == [
        ("in", False),
        ("out", False),
        ("?", True),
    ]


@pytest.mark.parametrize(
    ("sum_", "value"),
    [
        ("E * 2 + 1", "17"),
        ("(E - 9) / 2", "0"),
        ("-7 % 3", "-1"),
        ("$E - -1", "9"),
        ("${E}", "8"),
        ("UNSET + 1", "?"),
        ("E / 0", "?"),
        ("E ** 2", "?"),
        ("E > 1 ? 2 : 3", "?"),
        ("08", "?"),
        ("", "?"),
        ("9223372036854775807 + 1", "?"),
    ],
)
def test_sums(sum_: str, value: str) -> None:
    """Whole numbers as bash computes them; anything else is not known."""
    assert _run(f"a $(({sum_}))") == [(value, True)]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("$#", "2"),
        ("${#}", "2"),
        ("${2:-no}", "t w"),
        ("${3:-no}", "no"),
        ("${3-no}", "no"),
        ("$3", ""),
        ("${L[1]}", "y"),
        ("${L[7]}", "?"),
        ("${#L[@]}", "?"),
        ("$(echo $E)", "8"),
        ("$(printf '%s,' 1 2)", "1,2,"),
        ("$(echo $E | wc -c)", "?"),
        ("$(hostname)", "?"),
        ("$(echo a; date)", "?"),
    ],
)
def test_values(word: str, value: str) -> None:
    """Arguments, items of arrays, and what `echo` prints."""
    assert _run(f"L=(x y); a {word}", "one", "t w") == [(value, True)]


def test_nothing_is_no_word() -> None:
    """`"$@"` without arguments passes none, `""` passes one."""
    assert _run('a x "$@" "${@}" y') == [("x y", True)]
    assert _run('L=(); a x "${L[@]}" "" y') == [("x  y", True)]
