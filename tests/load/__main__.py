"""Load `vramgate serve` with reviews while things break; print what held, exit 1 if not all did.

    python -m tests.load --reviews 1000000 --seed 1

A million take about an hour at the rate of the default on two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.bench.figures import console, figure_table, machine
from tests.load import faults
from tests.load.figures import figures, lines
from tests.load.running import run
from tests.load.sending import Plan

REVIEWS_EACH = 20_000
"""Reviews for each time that every fault is injected."""


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="tests.load", description=__doc__)
    parser.add_argument("--reviews", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=300.0, help="reviews a second")
    parser.add_argument("--clients", type=int, default=32, help="connections")
    parser.add_argument("--unseen", type=float, default=0.01, help="share of unseen specs")
    parser.add_argument("--timeout", type=int, default=5, help="seconds of the registration")
    parser.add_argument("--without-torch", action="store_true", help="MXNet's frontend alone")
    options = parser.parse_args()
    plan = Plan(
        reviews=options.reviews,
        seed=options.seed,
        rate=options.rate,
        clients=options.clients,
        unseen=options.unseen,
        uses_torch=not options.without_torch,
        timeout_seconds=options.timeout,
    )
    screen = console()
    screen.print(machine(), soft_wrap=True)
    screen.print(str(plan), soft_wrap=True)
    each = max(1, plan.reviews // REVIEWS_EACH)

    def say(text: str) -> None:
        screen.print(text, markup=False, soft_wrap=True)

    outcome = asyncio.run(run(plan, kinds=faults.LONG, each=each, say=say))
    found = list(figures(outcome))
    for text in lines(outcome):
        say(text)
    screen.print(figure_table(found))
    failed = [figure for figure in found if not figure.holds]
    if failed:
        say(f"{len(failed)} of {len(found)} figures do not hold: exit status 1")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
