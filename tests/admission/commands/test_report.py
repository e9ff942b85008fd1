"""`vramgate report` asks every replica and makes one report of what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.cli import main
from admission.commands.plugin import PLUGIN
from admission.handling.withheld import WithheldDenials
from tests.admission.commands.api_server import serving, write_kubeconfig
from tests.admission.test_report import NOW, spared

PODS = "/api/v1/namespaces/vramgate-system/pods"


def replica(name: str, *, phase: str = "Running", port: int = 9443) -> dict[str, Any]:
    """Return the pod of a replica, as the API server has it."""
    ports = [{"name": "metrics", "containerPort": 8080}, {"name": "https", "containerPort": port}]
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"ports": ports}]},
        "status": {"phase": phase},
    }


def reported(*denials: dict[str, Any], since: str = "2026-06-01T08:00:00Z") -> dict[str, Any]:
    """Return what a replica answers at /report."""
    return {
        "since": since,
        "until": "2026-06-08T08:00:00Z",
        "limit": 1000,
        "forgotten": 1,
        "namespaces": {},
        "denials": list(denials),
    }


def denial(name: str, *, day: int, **changes: Any) -> dict[str, Any]:
    """Return one object of a report, seen once on a day of June."""
    moment = f"2026-06-{day:02}T10:00:00Z"
    return {
        "namespace": "vision",
        "kind": "Job",
        "name": name,
        "because": "mode-warn",
        "verdict": "oom",
        "reason": "too-large",
        "message": f"as seen on day {day}",
        "first": moment,
        "last": moment,
        "times": 1,
        **changes,
    }


def proxied(name: str, port: int = 9443) -> str:
    """Return where the API server leads to the report of a replica."""
    return f"{PODS}/https:{name}:{port}/proxy/report"


def run(
    folder: Path, objects: dict[str, Any], *options: str, status: int = 0, program: str = "vramgate"
) -> list[str]:
    """Run the command against an API server with *objects*; return what was asked of it."""
    with serving(objects) as server:
        config = write_kubeconfig(folder, server.url)
        assert main(["report", "--kubeconfig", str(config), *options], program=program) == status
    return server.asked


def test_replicas_are_asked_through_the_api_server_and_merged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An object that two of them saw is one: all its times, the words of the later."""
    objects = {
        PODS: [replica("b"), replica("a")],
        proxied("a"): reported(denial("train", day=2, times=2), denial("other", day=1)),
        proxied("b"): reported(
            denial("train", day=5),
            denial("train", day=6, because="exempt", exemptUntil="2026-07-01T00:00:00Z"),
            since="2026-06-04T08:00:00Z",
        ),
    }

    asked = run(tmp_path, objects, "-o", "json")

    found = json.loads(capsys.readouterr().out)
    assert asked == [PODS, PODS, proxied("b"), proxied("a")]
    assert [(each["name"], each["because"], each["times"]) for each in found["denials"]] == [
        ("train", "exempt", 1),
        ("train", "mode-warn", 3),
        ("other", "mode-warn", 1),
    ]
    whole = found["denials"][1]
    assert whole == denial("train", day=5, times=3, first="2026-06-02T10:00:00Z")
    assert found["denials"][0]["exemptUntil"] == "2026-07-01T00:00:00Z"
    assert found["namespaces"] == {"vision": 3}
    assert (found["since"], found["wholeSince"]) == ("2026-06-01T08:00:00Z", "2026-06-04T08:00:00Z")
    assert (found["forgotten"], found["isWhole"]) == (2, True)
    assert [each["name"] for each in found["replicas"]] == ["a", "b"]


def test_replica_that_cannot_be_asked_is_named_and_the_status_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the others know is shown; a script sees that it is not all."""
    objects = {
        PODS: [replica("a"), replica("b", phase="Pending"), replica("c"), replica("d")],
        proxied("a"): reported(denial("train", day=2)),
        proxied("d"): {"kind": "Status"},
    }

    run(tmp_path, objects, status=1)

    out = capsys.readouterr().out
    assert "denied since 2026-06-01T08:00:00Z: 1, by 1 of 4 replicas" in out
    assert "not asked: b is Pending, not Running" in out
    assert "not asked: c the API server says 404" in out
    assert "not asked: d d: no report of Vramgate's (since: field required)" in out
    assert "Job/train" in out


def test_nobody_who_can_be_asked_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty report would say that nothing would be denied."""
    run(tmp_path, {PODS: [replica("a")]}, status=2)
    assert "no replica could be asked (a: the API server says 404)" in capsys.readouterr().err

    run(tmp_path, {PODS: []}, status=2)
    assert "namespace vramgate-system has no pod with labels" in capsys.readouterr().err

    run(tmp_path, {}, status=2)
    assert "`kubectl auth can-i list pods` says whether you may" in capsys.readouterr().err


def test_other_places_are_named_and_kubectl_needs_no_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another namespace, and a port that the pod does not name."""
    pods = "/api/v1/namespaces/gpu/pods"
    pod = {"metadata": {"name": "a"}, "status": {"phase": "Running"}}
    objects = {pods: [pod], f"{pods}/https:a:8443/proxy/report": reported()}

    with serving(objects) as server:
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, server.url)))
        assert main(["report", "-n", "gpu", "-o", "yaml"], program=PLUGIN) == 0

    assert yaml.safe_load(capsys.readouterr().out)["denials"] == []


def test_files_are_read_instead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For whoever has no right to a pod's proxy, and what the code itself writes is read."""
    own = WithheldDenials(now=lambda: NOW)
    own.add(spared("team"), name="train")
    (tmp_path / "a.json").write_bytes(own.text())
    (tmp_path / "b.json").write_text(json.dumps(reported(denial("other", day=3))))

    status = main(["report", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "-o", "json"])

    found = json.loads(capsys.readouterr().out)
    assert status == 0
    assert found["namespaces"] == {"team": 1, "vision": 1}
    assert {each["name"] for each in found["denials"]} == {"train", "other"}


@pytest.mark.parametrize("text", ["", "[]", '{"since": 1}', "{"])
def test_file_that_is_no_report_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """With what is wrong in it."""
    (tmp_path / "a.json").write_text(text)

    assert main(["report", str(tmp_path / "a.json")]) == 2
    assert "a.json: no report of Vramgate's" in capsys.readouterr().err


def test_one_source_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither is nobody's report, and both are two answers."""
    assert main(["report"]) == 2
    assert "whose report should be shown?" in capsys.readouterr().err


def test_text_of_a_replica_cannot_write_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names and messages come from whoever may create a job."""
    hostile = denial("x\x1b[31m", day=1, message="red\x1b[0m\nnext")
    (tmp_path / "a.json").write_text(json.dumps(reported(hostile)))

    assert main(["report", str(tmp_path / "a.json")]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "red next" in out
