"""Fuzz the doors that bytes of others come in by; exit 1 on findings.

    python -m tests.fuzz [TARGET…] --inputs 100000 --seed 1

Each target has a child process of its own under libFuzzer (atheris), guided by which of our code an
input reaches. An input that breaks something is kept in `tests/fuzz/found/TARGET`, where
`test_found.py` gives it to the target in every run of the tests. Runs that keep their results in
one file (`--results`) make one table.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tests.bench.figures import console, machine
from tests.fuzz.outcome import Outcome, outcome_table
from tests.fuzz.parent import FOUND, Effort, fuzzed
from tests.fuzz.results import keep, kept
from tests.fuzz.table import targets


def main() -> int:
    """Fuzz and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="all of them where none is named"
    )
    parser.add_argument("--inputs", type=int, default=100_000, help="how many a target")
    parser.add_argument("--seed", type=int, default=1, help="where the mutations begin")
    parser.add_argument(
        "--seconds", type=int, default=0, help="how long a target may take; 0 for no limit"
    )
    parser.add_argument(
        "--results", type=Path, help="a file that keeps what came of each target, of all runs"
    )
    parser.add_argument(
        "--table", action="store_true", help="print the table of --results and stop"
    )
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    asked = parser.parse_args()
    known = targets()
    if asked.list:
        print("\n".join(known))
        return 0
    for name in asked.targets:
        if name not in known:
            parser.error(f"{name} is no target; the targets are {', '.join(known)}")
    screen = console()
    if asked.table:
        if asked.results is None:
            parser.error("--table prints the file of --results")
        screen.print(outcome_table(kept(asked.results)))
        return 0
    if importlib.util.find_spec("atheris") is None:
        screen.print("fuzzing: atheris is not installed (it is made for x86_64): nothing was tried")
        return 0
    names = asked.targets or list(known)
    effort = Effort(num_inputs=asked.inputs, seed=asked.seed, seconds=asked.seconds)
    outcomes = _all(names, screen, effort, asked.results)
    screen.print(machine(), soft_wrap=True)
    screen.print(f"seed {asked.seed}; python -m tests.fuzz {' '.join(asked.targets)}".rstrip())
    screen.print(outcome_table(kept(asked.results) if asked.results else outcomes))
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    for finding in findings:
        screen.print(f"\n{finding.target}: {finding.place}", markup=False)
        screen.print(finding.text, markup=False, highlight=False)
    if findings:
        screen.print(f"{len(findings)} findings, kept in {FOUND.name}/: exit status 1")
    return 1 if findings or any(not outcome.is_whole for outcome in outcomes) else 0


def _all(names: list[str], screen: Console, effort: Effort, results: Path | None) -> list[Outcome]:
    outcomes = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            outcomes.append(fuzzed(name, effort, folder=Path(folder)))
        screen.print(f"{name}: {outcomes[-1].line}", markup=False, highlight=False)
        if results is not None:
            keep(outcomes[-1], results)
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
