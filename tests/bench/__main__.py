"""Print every figure with the machine's name; exit 1 if one does not hold.

How jobs are read, how long estimates take, how fast reviews are answered (to an API server too),
what nodes, metrics, controller and agent cost, how far estimates are from published readings. The
last writes docs/accuracy.md, whether its figures hold or not, and docs/reserved.md, where the
reserved memory of three known jobs comes from.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time

from rich.console import Console

from tests.bench.accuracy.full import measure_all
from tests.bench.agent import agent_figures
from tests.bench.cluster import cluster_figures
from tests.bench.controller import controller_figures
from tests.bench.estimates import estimate_figures
from tests.bench.exposition import exposition_figures
from tests.bench.figures import Figure, console, figure_table, machine
from tests.bench.manifests.figures import reading_figures
from tests.bench.mxnet_times import mxnet_figures
from tests.bench.nodes import node_figures
from tests.bench.reserved.full import write_page as write_reserved
from tests.bench.reviews import review_figures
from tests.bench.start import start_figures
from tests.bench.throughput import throughput_figures


async def figures(screen: Console) -> list[Figure]:
    """Return every figure, measured one after the other."""
    started = time.perf_counter()
    found = list(reading_figures())
    found += [figure async for figure in estimate_figures()]
    found += [figure async for figure in mxnet_figures()]
    found += node_figures()
    found += exposition_figures()
    found += start_figures()
    found += [figure async for figure in review_figures()]
    found += [figure async for figure in throughput_figures()]
    found += cluster_figures()
    found += controller_figures()
    found += agent_figures()
    accuracy = await measure_all(screen, since=started, part="the whole of `make bench`")
    await write_reserved()
    return [*found, *accuracy.figures]


def main() -> int:
    """Measure and print."""
    # A worker that fails is a case without an answer, counted as such; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    screen = console()
    screen.print(machine(), soft_wrap=True)
    found = asyncio.run(figures(screen))
    screen.print(figure_table(found))
    failed = [figure for figure in found if not figure.holds]
    if failed:
        screen.print(f"{len(failed)} of {len(found)} figures asked are not reached: exit status 1")
        screen.print("docs/accuracy.md is written all the same")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
