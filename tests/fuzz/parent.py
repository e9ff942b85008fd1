"""Start a target's child, and again after an input that ended it, until all inputs were tried."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.outcome import Finding, Outcome
from tests.fuzz.table import module_of

FOUND = Path(__file__).parent / "found"
MAX_STARTS = 6
"""After how many ends by hangs or memory the rest is left out."""
_PROGRESS = re.compile(rb"^#(\d+)\s+\w+\s+cov: (\d+)", re.MULTILINE)
_ARTIFACTS = {"timeout": "hang", "oom": "memory", "crash": "crash", "leak": "leak"}


@dataclass(slots=True)
class _Sum:
    """What all children of one target say together."""

    num_inputs: int = 0
    coverage: int = 0
    slowest: float = 0.0
    mebibytes: int = 0
    peak_mebibytes: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much a target is given."""

    num_inputs: int
    seed: int
    seconds: int = 0
    """After how long it is cut short; 0 for no limit."""


def fuzzed(name: str, effort: Effort, *, folder: Path, found: Path = FOUND) -> Outcome:
    """Return what *effort* did to the target; *folder* is empty and stays ours."""
    started, total = time.monotonic(), _Sum()
    for start in range(MAX_STARTS):
        left = effort.num_inputs - total.num_inputs
        passed = int(time.monotonic() - started)
        if left <= 0 or (effort.seconds and passed >= effort.seconds):
            break
        room = folder / str(start)
        room.mkdir()
        if start:
            shutil.copytree(folder / str(start - 1) / "corpus", room / "corpus")
        before = total.num_inputs
        rest = Effort(
            num_inputs=left,
            seed=effort.seed + start,
            seconds=effort.seconds and effort.seconds - passed,
        )
        ended = _child(name, rest, room=room, found=found / name)
        is_over = _add(total, ended, name=name, room=room, found=found / name)
        if is_over or total.num_inputs == before:
            break
    return Outcome(
        target=name,
        seed=effort.seed,
        num_inputs=total.num_inputs,
        num_asked=effort.num_inputs,
        coverage=total.coverage,
        slowest_seconds=total.slowest,
        mebibytes=total.mebibytes,
        peak_mebibytes=total.peak_mebibytes,
        wall_seconds=time.monotonic() - started,
        findings=tuple(total.findings.values()),
        trouble=total.trouble,
    )


def _child(
    name: str, effort: Effort, *, room: Path, found: Path
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tests.fuzz.child", module_of(name), name]
    command += ["--inputs", str(effort.num_inputs), "--seed", str(effort.seed)]
    command += ["--seconds", str(effort.seconds)]
    command += ["--folder", str(room), "--found", str(found)]
    log = room / "log"
    with log.open("wb") as file:
        ended = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    return subprocess.CompletedProcess(command, ended.returncode, stdout=log.read_bytes())


def _add(
    total: _Sum, ended: subprocess.CompletedProcess[bytes], *, name: str, room: Path, found: Path
) -> bool:
    """Add what a child said; return whether it came to its end by itself."""
    for number, coverage in _PROGRESS.findall(ended.stdout)[-1:]:
        total.num_inputs += int(number)
        total.coverage = max(total.coverage, int(coverage))
    report = room / "report.json"
    record: dict[str, Any] = json.loads(report.read_bytes()) if report.exists() else {}
    total.slowest = max(total.slowest, record.get("slowest", 0.0))
    total.mebibytes = max(total.mebibytes, record.get("mebibytes", 0))
    peak = record.get("base", 0) + record.get("mebibytes", 0)
    total.peak_mebibytes = max(total.peak_mebibytes, peak)
    for finding in record.get("findings", ()):
        total.findings.setdefault(finding["place"], Finding(target=name, **finding))
    for path in sorted(room.iterdir()):
        kind = _ARTIFACTS.get(path.name.partition("-")[0])
        if kind is not None:
            found.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, found / path.name)
            text = ended.stdout.decode(errors="replace")[-6000:]
            total.findings.setdefault(
                f"{kind} {path.name}",
                Finding(target=name, input=path.name, place=kind, text=text),
            )
    if ended.returncode and not total.findings:
        total.trouble = ended.stdout.decode(errors="replace")[-2000:]
    return ended.returncode == 0
