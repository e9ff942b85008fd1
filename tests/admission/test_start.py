"""What a command loads before it answers: little, and nothing that it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "corpus"
HEAVY = {
    "aiohttp",
    "asyncio",
    "cryptography",
    "httpx2",
    "huggingface_hub",
    "kubernetes",
    "prometheus_client",
    "pydantic",
    "rich",
    "ssl",
    "structlog",
}


def loaded_by(*arguments: str) -> set[str]:
    """Return the modules that are there once `vramgate` with *arguments* has answered."""
    code = (
        "import sys; from admission.cli import main; main(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return set(run.stderr.split())


def explained(name: str) -> set[str]:
    """Return what explaining the manifest *name* of the corpus loads."""
    path = str(CORPUS / f"{name}.yaml")
    return loaded_by("explain", path, "--gpu", "t4", "--offline", "-o", "json")


def test_help_loads_nothing_that_only_an_answer_needs() -> None:
    """The command's own module says what it takes; no other command is imported for it."""
    loaded = loaded_by("explain", "--help")

    assert "admission.commands.explain" in loaded
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith("admission.commands.nodes")}


def test_the_version_loads_nothing_of_ours_but_the_command() -> None:
    """No settings, no values, no manifest."""
    loaded = loaded_by("version")

    assert not loaded & HEAVY
    assert not loaded & {"admission.config", "admission.values", "yaml"}


def test_explaining_a_job_without_a_command_loads_no_reader_of_one() -> None:
    """Neither the shell's grammar, nor a family of scripts, nor the schema of a spec.

    Nothing is asked either: no event loop is started, and no node was given to be read.
    """
    loaded = explained("03-pytorchjob-mnist-nccl")

    assert not loaded & HEAVY
    assert "admission.workloads.kubeflow" in loaded
    assert not loaded & {
        "admission.capacity.classes",
        "admission.config",
        "admission.detect.model_files",
        "admission.detect.python_calls",
        "admission.detect.scripts.hf_trainer",
        "admission.detect.scripts.seen",
        "admission.detect.shell",
        "admission.estimates",
        "admission.review",
        "admission.workloads.argo",
        "estimator.result",
        "estimator.spec",
        "estimator.tracefile",
    }


def test_only_the_families_are_loaded_that_may_have_the_script() -> None:
    """The index tells them from names, before anything is imported."""
    loaded = loaded_by_reading("python", "main.py", "--epochs=1")

    assert "admission.detect.scripts.imagenet" in loaded
    assert "admission.detect.scripts.torchtune" not in loaded


def test_the_webhook_loads_everything_before_it_is_asked() -> None:
    """No review waits for an import."""
    code = (
        "import sys; from admission.detect import load_parts; load_parts();"
        "print(*sys.modules, file=sys.stderr)"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(run.stderr.split())
    rooms = ("admission/detect", "admission/detect/launchers", "admission/detect/scripts")
    root = Path(__file__).parents[2]
    for room in (*rooms, "admission/workloads"):
        names = {path.stem for path in (root / room).glob("*.py")} - {"__init__"}
        missing = {name for name in names if f"{room.replace('/', '.')}.{name}" not in loaded}
        assert missing <= {"config_maps", "custom"}, room  # `serve` itself imports these
    assert {"estimator.spec", "estimator.tracefile"} <= loaded


def loaded_by_reading(*words: str) -> set[str]:
    """Return the modules that are there once a Job with this command line was read."""
    code = (
        "import sys; from tests.admission.detect.jobs import container, job, read;"
        "read(job(container(*sys.argv[1:]))); print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return set(run.stderr.split())
