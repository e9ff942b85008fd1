"""`vramgate calibration` shows what was measured, of a cluster or a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.cli import main
from admission.commands.calibration import NAME
from admission.learning import residuals_text
from admission.learning.residuals import Residuals, with_sample
from tests.admission.commands.api_server import serving, write_kubeconfig
from tests.admission.learning.test_residuals import GROUP, honest

PATH = f"/api/v1/namespaces/vramgate-system/configmaps/{NAME}"


def config_map(**data: str) -> dict[str, Any]:
    """Return the ConfigMap with what some jobs taught, unless *data* says otherwise."""
    residuals: Residuals = {}
    for each in honest(1.1):
        residuals = with_sample(residuals, GROUP, each)
    written = {residuals_text.KEY: residuals_text.written(residuals)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": data or written}


def test_a_clusters_calibration_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """How many jobs, of whom, what they took, and what that does."""
    with serving({PATH: config_map()}) as server:
        kubeconfig = write_kubeconfig(tmp_path, server.url)
        status = main(["calibration", "--kubeconfig", str(kubeconfig)])

    assert status == 0
    shown = capsys.readouterr().out
    assert "Tesla-T4  pytorch 2.6  trace" in shown
    assert "peak × 1.1" in shown
    assert server.asked == [PATH]


def test_a_file_is_shown_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`kubectl get configmap -o yaml` made it."""
    path = tmp_path / "learned.yaml"
    path.write_text(yaml.safe_dump(config_map()))

    assert main(["calibration", str(path), "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["product"], row["jobs"], row["namespaces"]) == ("Tesla-T4", 24, 4)
    assert row["shift"] == pytest.approx(1.1, rel=0.02)


def test_nothing_measured_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A ConfigMap with deaths alone is none without a calibration."""
    path = tmp_path / "learned.json"
    path.write_text(json.dumps(config_map(other="x")))

    assert main(["calibration", str(path)]) == 0
    assert "nothing was measured yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "is no ConfigMap"),
        ("kind: Secret", "is no ConfigMap"),
        ("kind: ConfigMap\ndata: {calibration.json: 'x'}", "not what a controller writes"),
        ("a: [", "no YAML or JSON"),
    ],
)
def test_anything_else_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    """In one line, without a traceback."""
    path = tmp_path / "learned.yaml"
    path.write_text(text)

    assert main(["calibration", str(path)]) == 2
    assert words in capsys.readouterr().err


def test_a_cluster_without_one_says_what_makes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And one is needed of cluster and file."""
    with serving({}) as server:
        kubeconfig = write_kubeconfig(tmp_path, server.url)
        assert main(["calibration", "--kubeconfig", str(kubeconfig)]) == 2
    assert "controller.calibrate" in capsys.readouterr().err
    assert main(["calibration"]) == 2
    assert "--kubeconfig" in capsys.readouterr().err
