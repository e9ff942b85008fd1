"""`vramgate nodes`: the classes the webhook sees, and why a job may not go to them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from admission.cli import main
from admission.commands import nodes
from admission.commands.cases import read_case
from admission.commands.nodes_table import print_places
from admission.commands.nodes_why import WorkloadPlaces
from estimator.device import Device
from estimator.errors import TraceError
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from tests.admission.commands.a100_nodes import TAINT, a100
from tests.admission.commands.api_server import serving, write_kubeconfig
from tests.builders import GPU, estimate, node, pod, spec_document


def write(folder: Path, *objects: Any, name: str = "nodes.yaml") -> str:
    """Return a file that holds *objects*."""
    path = folder / name
    path.write_text(yaml.safe_dump_all(list(objects)))
    return str(path)


def job(**spec: Any) -> dict[str, Any]:
    """Return a Job that states what it trains; *spec* are keys of its pod spec."""
    annotations = {"vramgate.dev/spec": json.dumps(spec_document())}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {"template": pod(annotations=annotations, **spec)},
    }


class FixedEstimator:
    """Says 20 GiB of every job."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        return tuple(estimate(least=20 * GIB, card=card, spec=spec_of(job)) for card in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        raise AssertionError(f"nobody asks what would fit: {spec}, {devices}")


def test_classes_are_those_the_webhook_judges_against(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Name, count, GPUs, resource, sharing, budget; the reason where a card is unknown."""
    unlabelled = node("bare", labels={})
    file = write(tmp_path, node("t4-a"), node("t4-b"), unlabelled)

    status = main(["nodes", "--nodes", file, "-o", "json"])

    known, unknown = json.loads(capsys.readouterr().out)
    assert status == 0
    budget = known.pop("budgetBytes")
    assert 14 * GIB < budget < 15 * GIB
    assert known == {
        "class": "Tesla-T4",
        "product": "Tesla-T4",
        "count": 2,
        "gpusPerNode": 8,
        "gpuResource": GPU,
        "sharing": "none",
        "nodes": ["t4-a", "t4-b"],
    }
    assert unknown["nodes"] == ["bare"]
    assert "budgetBytes" not in unknown
    assert unknown["unknown"]


def test_text_and_yaml_show_the_same_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason of an unknown card is a line of its own."""
    file = write(tmp_path, node(), node("bare", labels={}))

    main(["nodes", "--nodes", file, "-o", "yaml"])
    found = yaml.safe_load(capsys.readouterr().out)
    main(["nodes", "--nodes", file])
    text = capsys.readouterr().out

    assert all(each["class"] in text for each in found)
    assert f"{found[1]['class']}: {found[1]['unknown']}" in text


def test_settings_say_what_labels_do_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`nodes.classes` and `nodes.pools`, as `serve` reads them."""
    pool = {"name": "a", "product": "a100-sxm4-40gb", "count": 2, "gpusPerNode": 8}
    settings = write(tmp_path, {"nodes": {"pools": [pool]}}, name="settings.yaml")

    main(["nodes", "--nodes", write(tmp_path, node()), "--config", settings, "-o", "json"])

    found = json.loads(capsys.readouterr().out)
    assert [(each["product"], each["count"]) for each in found] == [
        ("a100-sxm4-40gb", 2),
        ("Tesla-T4", 1),
    ]


def test_nodes_of_a_cluster_are_those_of_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a kubeconfig, the same answer."""
    main(["nodes", "--nodes", write(tmp_path, node(), a100()), "-o", "json"])
    of_file = capsys.readouterr().out

    with serving({"/api/v1/nodes": [node(), a100()]}) as server:
        kubeconfig = write_kubeconfig(tmp_path, server.url)
        main(["nodes", "--kubeconfig", str(kubeconfig), "-o", "json"])

    assert capsys.readouterr().out == of_file


@pytest.mark.parametrize("options", [[], ["--nodes", "n.yaml", "--kubeconfig", "k"]])
def test_one_source_of_nodes_is_needed(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """Neither or both is bad usage."""
    assert main(["nodes", *options]) == 2
    assert "one of --nodes and --kubeconfig is needed" in capsys.readouterr().err


async def places(folder: Path, *jobs: dict[str, Any]) -> tuple[WorkloadPlaces, ...]:
    """Return where *jobs* may go on a T4 node and a tainted A100 node."""
    case = read_case(
        [write(folder, *jobs, name="jobs.yaml")],
        nodes=write(folder, node(), a100(taints=[TAINT])),
    )
    return await nodes.places(case, estimator=FixedEstimator())


async def test_classes_that_are_closed_have_figures_too(tmp_path: Path) -> None:
    """An operator sees that opening them would help."""
    (found,) = await places(tmp_path, job())

    document = nodes.places_document(found)

    assert document["workload"]["name"] == "train"
    (only,) = document["units"]
    closed_class, open_class = only["classes"]
    assert (closed_class["open"], open_class["open"]) == (0, 1)
    assert [each["least"] for each in only["classes"]] == [20 * GIB, 20 * GIB]
    assert (closed_class["verdict"], open_class["verdict"]) == ("fits", "oom")
    assert closed_class["closed"][0]["nodes"] == ["a100"]
    assert open_class["closed"] == []


async def test_text_says_what_would_be_if_it_were_open(tmp_path: Path) -> None:
    """And where, and why not."""
    screen = io.StringIO()

    print_places(await places(tmp_path, job()), Console(file=screen))

    text = screen.getvalue()
    assert "team/train main: a pod asks for 1 × nvidia.com/gpu" in text
    assert "(fits, if it were open)" in text
    assert "NVIDIA-A100-SXM4-40GB (a100): taint team=a:NoSchedule is not tolerated" in text
    assert "1 of 1 nodes" in text


async def test_job_that_is_not_understood_still_has_its_places(tmp_path: Path) -> None:
    """Labels and taints need no estimate."""
    unread = job()
    del unread["spec"]["template"]["metadata"]["annotations"]["vramgate.dev/spec"]
    screen = io.StringIO()

    found = await places(tmp_path, unread)
    print_places(found, Console(file=screen))

    (only,) = nodes.places_document(found[0])["units"]
    assert only["unknowns"]
    assert [each["open"] for each in only["classes"]] == [0, 1]
    assert all("verdict" not in each for each in only["classes"])
    assert "no estimate: " in screen.getvalue()
    assert nodes.exit_status(found) == 0


async def test_declared_share_is_the_budget(tmp_path: Path) -> None:
    """What the pod declares of a card, and of how much."""
    declaring = job()
    container = declaring["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["limits"]["nvidia.com/gpumem"] = "8192"
    screen = io.StringIO()

    found = await places(tmp_path, declaring)
    print_places(found, Console(file=screen))

    figures = [opening.figures() for opening in found[0].units[0].openings]
    assert {each["declared"] for each in figures} == {"nvidia.com/gpumem: 8192"}
    assert {each["budgetBytes"] for each in figures} == {8 * GIB}
    assert "of 14.5 GiB the pod declares nvidia.com/gpumem: 8192" in screen.getvalue()


async def test_estimate_that_fails_by_our_fault_is_status_3(tmp_path: Path) -> None:
    """The places are told all the same."""

    class Failing(FixedEstimator):
        async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
            raise TraceError(f"tensor 3 is freed twice: {job}, {devices}")

    case = read_case(
        [write(tmp_path, job(), name="jobs.yaml")], nodes=write(tmp_path, node(), a100())
    )

    found = await nodes.places(case, estimator=Failing())

    assert nodes.exit_status(found) == 3
    assert [opening.num_open for opening in found[0].units[0].openings] == [1, 1]
