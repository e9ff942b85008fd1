"""Make the tables of plans that come with us: `make plans`.

    pinned wheels -> cuDNN in a folder of its own; convolutions -> its answers -> files

For a cuDNN that cannot be installed beside PyTorch's. Needs about 2 GB of disk for a while, and
minutes. The same wheels and frameworks give the same files.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from estimator.cudnn import Answer, Card, Question
from estimator.cudnn.client import Plans
from estimator.cudnn.folders import WHEEL
from estimator.cudnn.shipped import VERSIONS, file_name
from estimator.cudnn.support import Release
from estimator.cudnn.table import encode_table
from estimator.workers.cudnn_supervisor import CudnnSupervisor
from estimator.workers.limits import Limits
from tools.convolutions import ROOT, asked

REQUIREMENTS = ROOT / "requirements" / "cudnn-9.10.2.txt"
OUTPUT = ROOT / "estimator" / "catalog" / "data" / "cudnn"
FRAMEWORKS = ("torch", "torchvision", "timm", "transformers")
"""Packages that decide which convolutions a job has."""
PATIENCE_SECONDS = 3600.0


def main() -> None:
    """Install the library, ask it, and write one file a card."""
    with tempfile.TemporaryDirectory(prefix="vramgate-cudnn-") as folder:
        install(Path(folder))
        library = Path(folder) / WHEEL
        for card, questions in asked().items():
            release, answers = asyncio.run(answers_of(library, card, list(questions)))
            content = encode_table(release, card, answers, made=provenance())
            path = OUTPUT / file_name(release.version, card)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            print(
                f"{path.name}: {len(answers)} of {len(questions)} answered, {len(content)} bytes",
                flush=True,
            )


def install(folder: Path) -> None:
    """Put the pinned wheels into *folder*, apart from every environment."""
    uv = str(Path(sys.executable).with_name("uv"))
    options = ["--require-hashes", "--no-deps", "--python", sys.executable]
    command = [uv, "pip", "install", *options, "--target", str(folder), "-r", str(REQUIREMENTS)]
    subprocess.run(command, check=True)


async def answers_of(
    library: Path, card: Card, questions: Sequence[Question]
) -> tuple[Release, dict[Question, Answer]]:
    """Return which release *library* is and its answers, in a process of its own.

    What it refuses, or has no plan for, is left out.
    """
    supervisor = CudnnSupervisor(library, limits=Limits())
    connection = supervisor.connect()
    if connection is None:
        raise SystemExit("cuDNN's process does not start")
    plans = Plans(connection, limit_seconds=PATIENCE_SECONDS)
    try:
        answers = await asyncio.to_thread(plans.ask, questions, card)
        release = supervisor.release
        if await asyncio.to_thread(lambda: plans.version) is None or release is None:
            raise SystemExit(f"cuDNN ended: {plans.reason}")
    finally:
        plans.close()
        await supervisor.close()
    if release.version not in VERSIONS:
        raise SystemExit(f"{release} is none of those that come with us")
    pairs = zip(questions, answers, strict=True)
    return release, {
        question: answer
        for question, answer in pairs
        if answer is not None and (answer.instant or answer.fallback)
    }


def provenance() -> dict[str, object]:
    """Return how a table was made: what was asked, and what decided the questions."""
    lines = REQUIREMENTS.read_text("utf-8").splitlines()
    return {
        "script": "tools/cudnn_plans.py",
        "asked": [line.split(" ")[0] for line in lines if "==" in line],
        "frameworks": [f"{name}=={version(name)}" for name in FRAMEWORKS],
    }


if __name__ == "__main__":
    main()
