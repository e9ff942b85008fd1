"""The command line: exit codes, and nothing of ours shown to a person."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from admission.certificates.issuing import new_authority
from admission.cli import COMMANDS, main
from admission.version import package_version


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The version, and nothing else."""
    status = main(["version"])

    assert status == 0
    assert capsys.readouterr().out == f"{package_version()}\n"


def test_version_is_a_flag_too(capsys: pytest.CaptureFixture[str]) -> None:
    """As people try it first; no command is loaded for it."""
    status = main(["--version"])

    assert status == 0
    assert capsys.readouterr().out == f"{package_version()}\n"


def test_help_of_serve_names_its_flags(capsys: pytest.CaptureFixture[str]) -> None:
    """Flags only choose the file, the kubeconfig and the log level."""
    status = main(["serve", "--help"])

    printed = capsys.readouterr().out
    assert status == 0
    assert all(flag in printed for flag in ("--config", "--kubeconfig", "--log-level"))


def test_unknown_flag_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, with the flag in the message."""
    status = main(["serve", "--verbose"])

    assert status == 2
    assert "--verbose" in capsys.readouterr().err


def test_bad_settings_print_every_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 before anything is started."""
    path = tmp_path / "settings.yaml"
    path.write_text("server: {port: -1}\npolicy: {mode: strict}\n")

    status = main(["serve", "--config", str(path)])

    printed = capsys.readouterr().err
    assert status == 2
    assert "server.port" in printed
    assert "policy.mode" in printed
    assert "Traceback" not in printed


def test_missing_certificate_is_bad_usage(tmp_path: Path) -> None:
    """`serve` in a process of its own ends with 2 and names both settings."""
    run = serve(tmp_path, {"server": certificate_settings(tmp_path)})

    assert run.returncode == 2
    assert "server.certFile, server.keyFile: no such file or directory" in run.stderr
    assert "Traceback" not in run.stderr


def test_neither_cluster_nor_nodes_file_is_bad_usage(tmp_path: Path) -> None:
    """The hint says what would do."""
    new_authority().issue(["localhost"]).write(tmp_path)
    run = serve(tmp_path, {"server": certificate_settings(tmp_path)}, nodes=False)

    assert run.returncode == 2
    assert "hint: give `--kubeconfig`, run in a cluster, or set `nodes.file`" in run.stderr


def test_fault_of_ours_is_exit_3_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What we did not expect is said in one line."""
    monkeypatch.setitem(COMMANDS, "serve", "admission.no_such_module")

    status = main(["serve"])

    printed = capsys.readouterr().err
    assert status == 3
    assert printed.startswith("vramgate: failed on its own account: ModuleNotFoundError")
    assert "Traceback" not in printed


def test_serving_imports_no_framework_and_no_other_command() -> None:
    """The process that answers the API server loads only what it needs for that."""
    code = (
        "import sys; from admission.cli import main; main(['serve', '--help']);"
        "print(*sys.modules, file=sys.stderr)"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(run.stderr.split())
    assert {"aiohttp", "kubernetes", "admission.commands.serve"} <= loaded
    assert not loaded & {"torch", "tensorflow", "jax", "numpy", "transformers"}
    assert not loaded & {"admission.commands.explain", "admission.commands.estimate"}


def certificate_settings(directory: Path) -> dict[str, object]:
    """Return settings of a server on a free port with its certificate in *directory*."""
    pair = {"certFile": str(directory / "tls.crt"), "keyFile": str(directory / "tls.key")}
    return {"host": "127.0.0.1", "port": 0, **pair}


def serve(
    directory: Path, settings: dict[str, object], *, nodes: bool = True
) -> subprocess.CompletedProcess[str]:
    """Return how `python -m admission serve` ended."""
    if nodes:
        (directory / "nodes.yaml").write_text("kind: List\nitems: []\n")
        settings = {**settings, "nodes": {"file": str(directory / "nodes.yaml")}}
    path = directory / "settings.yaml"
    path.write_text(yaml.safe_dump({**settings, "workers": {"preload": []}}))
    command = [sys.executable, "-m", "admission", "serve", "--config", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
