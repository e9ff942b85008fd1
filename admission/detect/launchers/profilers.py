"""Modules of Python that run another script: profilers, debuggers, coverage.

`python -m cProfile -o x script.py` -> `python script.py`

Source: each module's own help.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.detect.launchers.step import Line, Step
from admission.detect.words import Word, words

MODULES: Mapping[str, frozenset[str]] = {
    "cProfile": frozenset(words("-o --outfile -s --sort")),
    "profile": frozenset(words("-o --outfile -s --sort")),
    "pdb": frozenset(words("-c --command")),
    "trace": frozenset(words("-f --file -C --coverdir --ignore-module --ignore-dir")),
    "debugpy": frozenset(words("--listen --connect --log-to")),
    "coverage": frozenset(words("--rcfile --source --omit --include --data-file")),
    "memray": frozenset(words("-o --output -p --live-port")),
    "scalene": frozenset(words("--outfile --cpu-percent-threshold --profile-interval")),
    "viztracer": frozenset(words("-o --output_file --max_stack_depth --tracer_entries")),
    "kernprof": frozenset(words("-o --outfile -s --setup")),
    "torch.utils.bottleneck": frozenset(),
}
"""Module -> its flags that take a value."""
_PYTHON = Word(text="python")


def unwrap(line: Line) -> Step | None:
    """Return the call of Python that is profiled."""
    with_value = MODULES.get(line.words[0].text, frozenset())
    rest = line.words[1:]
    if rest and rest[0].text == "run":
        rest = rest[1:]
    at = 0
    while at < len(rest) and rest[at].text.startswith("-") and rest[at].text != "-m":
        at += 2 if rest[at].text in with_value else 1
    return Step(rest=(_PYTHON, *rest[at:])) if rest[at:] else None
