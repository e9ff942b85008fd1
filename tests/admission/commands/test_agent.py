"""The command `vramgate agent`: what it needs to start, and the little that it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from admission.agent.running import NODE_NAME
from admission.config import parse_settings
from admission.errors import SettingsError
from tests.admission.watched import FakeApi, client_of


def test_agent_loads_neither_framework_nor_server_nor_rich() -> None:
    """It may take 60 MiB, on every node with a GPU."""
    code = (
        "import sys; from admission.cli import main; main(['agent', '--help']);"
        "print(*sys.modules, file=sys.stderr); import rich"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(run.stderr.split())
    assert {"pynvml", "kubernetes", "admission.agent.running"} <= loaded
    assert not loaded & {"aiohttp", "rich", "torch", "numpy", "estimator.workers"}


def test_node_that_nobody_names_is_bad_usage(tmp_path: Path) -> None:
    """The chart takes it from the pod."""
    api = FakeApi()
    try:
        client_of(api, tmp_path).close()
        argv = [sys.executable, "-m", "admission", "agent"]
        environment = {key: value for key, value in os.environ.items() if key != NODE_NAME}
        run = subprocess.run(
            [*argv, "--kubeconfig", str(tmp_path / "kubeconfig")],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        api.close()

    assert run.returncode == 2
    assert "agent.nodeName: is not told" in run.stderr
    assert "Traceback" not in run.stderr


def test_settings_have_bounds() -> None:
    """All that is wrong is said at once."""
    text = "agent: {intervalSeconds: 0, annotationSeconds: 0, annotationGrowth: 2, nodename: a}"
    with pytest.raises(SettingsError) as caught:
        parse_settings(text)

    problems = [problem.path for problem in caught.value.problems]
    assert sorted(problems) == [
        "agent.annotationGrowth",
        "agent.annotationSeconds",
        "agent.intervalSeconds",
        "agent.nodename",
    ]


def test_defaults_are_one_look_a_second_and_one_write_a_minute() -> None:
    """As the documentation says."""
    settings = parse_settings("").agent

    assert (settings.interval_seconds, settings.annotation_seconds) == (1.0, 60.0)
    assert (settings.annotate, settings.port) == (True, 8081)
    assert settings.proc_path == Path("/proc")
