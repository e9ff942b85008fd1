"""`python -m tests.bench.manifests [NAME…]`: the corpus, read and compared."""

from __future__ import annotations

import sys
import time

from tests.bench.manifests.compare import cases, outcome_of


def main(names: list[str]) -> int:
    """Print what differs, case by case; return 1 if anything is read falsely."""
    outcomes = []
    for case in cases():
        if names and not any(case.name.startswith(name) for name in names):
            continue
        started = time.perf_counter()
        outcome = outcome_of(case)
        seconds = time.perf_counter() - started
        outcomes.append(outcome)
        mark = "ok" if outcome.is_met else "FALSE" if outcome.false else "missing"
        print(f"{mark:8}{case.name:44}{seconds * 1e3:7.1f} ms")
        for line in (*outcome.false, *outcome.missing):
            print(f"        {line}")
        if names and outcome.reading is not None:
            for finding in outcome.reading.unknowns:
                print(f"        unknown {finding.code} {finding.path}: {finding.reason}")
            for path, source in outcome.reading.sources.items():
                print(f"        {path} <- {source}")
            for warning in outcome.reading.warnings:
                print(f"        warning {warning}")
    met = sum(outcome.is_met for outcome in outcomes)
    false = sum(bool(outcome.false) for outcome in outcomes)
    print(f"{met} of {len(outcomes)} as expected, {false} with a false value")
    return int(bool(false))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
