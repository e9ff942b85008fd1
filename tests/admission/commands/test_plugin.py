"""`kubectl vramgate`: the same command, asking the cluster that kubectl would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.cli import main, plugin
from admission.commands.plugin import PLUGIN, Access, access_of, usual_kubeconfig
from tests.admission.commands.api_server import serving, write_kubeconfig
from tests.builders import node, pod, spec_document


def referring_job() -> dict[str, Any]:
    """Return a Job whose spec is in a ConfigMap, and that names no namespace."""
    annotations = {"vramgate.dev/spec-ref": "configmap/spec/spec.json"}
    template = pod(annotations=annotations)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"template": template},
    }


def unreadable() -> dict[str, Any]:
    """Return a ConfigMap with a spec that no worker is needed for: it is not valid."""
    document = {**spec_document(), "framework": "cobol"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "spec", "namespace": "team"},
        "data": {"spec.json": json.dumps(document)},
    }


def test_help_and_errors_carry_the_name_it_was_called_by(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person copies the usage line."""
    monkeypatch.setattr(sys, "argv", ["kubectl-vramgate", "explain", "--help"])
    assert plugin() == 0
    assert "Usage: kubectl vramgate explain " in capsys.readouterr().out

    assert main(["explain", "gone.yaml", "--gpu", "t4"], program=PLUGIN) == 2
    assert capsys.readouterr().err.startswith("kubectl vramgate: gone.yaml: ")


def test_entry_point_is_the_one_that_kubectl_looks_for() -> None:
    """kubectl runs `kubectl-vramgate` for `kubectl vramgate`."""
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()

    assert 'kubectl-vramgate = "admission.cli:plugin"' in project


@pytest.mark.parametrize(
    ("program", "given", "asked"),
    [
        (PLUGIN, {}, True),
        (PLUGIN, {"has_cards": True}, False),
        ("vramgate", {}, False),
        ("vramgate", {"kubeconfig": Path("k")}, True),
        ("vramgate", {"context": "c"}, True),
        (PLUGIN, {"has_cards": True, "context": "c"}, True),
    ],
)
def test_cluster_is_asked_where_it_is_named_or_kubectl_runs_us(
    program: str, given: dict[str, Any], asked: bool
) -> None:
    """Outside kubectl no cluster is asked that nobody named."""
    options: dict[str, Any] = {"kubeconfig": None, "context": None, "namespace": None}
    found = access_of(program, **{**options, "has_cards": False, **given})

    assert (found is not None) is asked


def test_kubeconfig_is_the_one_kubectl_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The variable, else the file at home; in a pod without either, the pod's own cluster."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", "/some/where")
    assert usual_kubeconfig() == Path("/some/where")

    monkeypatch.delenv("KUBECONFIG")
    assert usual_kubeconfig() == tmp_path / ".kube" / "config"

    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert usual_kubeconfig() is None
    assert access_of(PLUGIN, kubeconfig=None, context=None, namespace="n", has_cards=False) == (
        Access(kubeconfig=None, namespace="n")
    )


def test_nodes_and_config_maps_come_from_the_current_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inside kubectl no option is needed; the ConfigMap is read in the context's namespace."""
    job = tmp_path / "job.yaml"
    job.write_text(yaml.safe_dump(referring_job()))
    objects = {
        "/api/v1/nodes": [node()],
        "/api/v1/namespaces/team/configmaps/spec": unreadable(),
    }

    with serving(objects) as server:
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, server.url)))
        status = main(["explain", str(job), "-o", "json", "--offline"], program=PLUGIN)

    (entry,) = json.loads(capsys.readouterr().out)
    assert status == 0
    assert server.asked == [
        "/api/v1/nodes",
        "/api/v1/namespaces/team",
        "/api/v1/namespaces/team/configmaps/spec",
    ]
    assert entry["verdict"] == "unknown"
    assert "cobol" in json.dumps(entry["unknowns"])
    assert [each["class"] for each in entry["nodes"]] == ["Tesla-T4"]


def test_explaining_by_files_loads_no_client_of_a_cluster() -> None:
    """Nor what steers: nothing was held."""
    code = (
        "import sys; from admission.cli import main; main(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr)"
    )
    corpus = Path(__file__).parents[2] / "corpus" / "03-pytorchjob-mnist-nccl.yaml"
    arguments = ["explain", str(corpus), "--gpu", "t4", "--offline", "-o", "json"]

    run = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )

    loaded = set(run.stderr.split())
    assert "admission.commands.explain_steer" in loaded
    assert not loaded & {"kubernetes", "admission.listing", "admission.steer.plan"}
