"""What is made from this folder: the chart's dashboards, and its copy of the rules.

boards, rules.yaml -> path, text
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from deploy.monitoring.dashboards import accuracy, admission, capacity, job
from deploy.monitoring.dashboards.parts import Board

BOARDS: tuple[Board, ...] = (capacity.BOARD, admission.BOARD, accuracy.BOARD, job.BOARD)
REPOSITORY = Path(__file__).resolve().parents[3]
CHART = REPOSITORY / "charts" / "vramgate"
RULES = REPOSITORY / "deploy" / "monitoring" / "rules.yaml"


def made() -> Mapping[Path, str]:
    """Return the text of each file that is made."""
    boards = {CHART / "dashboards" / f"{board.name}.json": board.text() for board in BOARDS}
    return {**boards, CHART / "rules.yaml": RULES.read_text()}
