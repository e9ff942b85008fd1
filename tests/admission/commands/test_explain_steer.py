"""`explain` says where the webhook would steer a job, and judges it there."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from admission.codes import Action, Mode, Steer, Verdict
from admission.commands.cases import read_case
from admission.commands.explain import explain
from admission.commands.explain_rules import Rules
from admission.commands.explain_steer import Explained, bare, steered
from admission.commands.explain_table import print_judgements
from admission.decision import Policy
from admission.explanation import explanation_of
from admission.steer.terms import RECORD
from estimator.device import Device
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from tests.admission.steer.scene import MEMORY, Scene, nodes
from tests.builders import estimate, fit, pod, spec_document

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class FixedEstimator:
    """Says 20 GiB of every job."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        return tuple(estimate(least=20 * GIB, card=card, spec=spec_of(job)) for card in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        return tuple(fit() for _ in devices if spec)


def job(**labels: str) -> dict[str, Any]:
    """Return a Job that states what it trains."""
    annotations = {"vramgate.dev/spec": json.dumps(spec_document())}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "labels": labels},
        "spec": {"template": pod(annotations=annotations)},
    }


async def explained(
    folder: Path, obj: dict[str, Any], *, mode: Mode = Mode.ENFORCE, gpu: str | None = None
) -> Explained:
    """Return what is said of *obj* on T4, A10 and two A100, or on *gpu* alone."""
    (folder / "job.yaml").write_text(yaml.safe_dump(obj))
    (folder / "nodes.yaml").write_text(yaml.safe_dump_all(nodes()))
    case = read_case(
        [str(folder / "job.yaml")],
        nodes=None if gpu else str(folder / "nodes.yaml"),
        gpu=gpu,
    )
    case = replace(case, rules=Rules(mode=mode))
    (found,) = await explain(case, estimator=FixedEstimator())
    return found


async def test_job_is_judged_where_it_would_be_steered(tmp_path: Path) -> None:
    """20 GiB fit an A10 and more; a T4 it may not reach any more says nothing."""
    found = await explained(tmp_path, job())

    judgement = found.judgement
    document = explanation_of(judgement, found.terms)
    assert (judgement.verdict, judgement.action) == (Verdict.FITS, Action.ALLOW)
    assert [each["class"] for each in document["nodes"]] == [
        "NVIDIA-A100-SXM4-80GB",
        "NVIDIA-A100-SXM4-40GB",
        "NVIDIA-A10",
    ]
    (term,) = document["steer"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    (expression,) = term["matchExpressions"]
    assert (expression["key"], expression["operator"]) == (MEMORY, "Gt")
    assert 15360 <= int(expression["values"][0]) < 23028
    assert document["units"][0]["steer"] == document["steer"]


@pytest.mark.parametrize(("mode", "steer"), [(Mode.ENFORCE, "required"), (Mode.WARN, "preferred")])
async def test_terms_are_those_that_mutate_adds(tmp_path: Path, mode: Mode, steer: str) -> None:
    """The same affinity, for a pod template that has none of its own."""
    outcome = Scene(need_mib=20 * 1024, steer=Steer(steer)).steered(job())

    found = await explained(tmp_path, job(), mode=mode)

    assert found.terms["spec.template"] == outcome.patched["spec"]["template"]["spec"]["affinity"]
    assert found.judgement.verdict is outcome.verdict


async def test_mode_warn_prefers_and_requires_nothing(tmp_path: Path) -> None:
    """The job may still land on a card that is too small."""
    found = await explained(tmp_path, job(), mode=Mode.WARN)

    steer = explanation_of(found.judgement, found.terms)["steer"]["nodeAffinity"]
    assert found.judgement.verdict is Verdict.TIGHT
    assert steer.keys() == {PREFERRED}
    assert found.sentence == (
        "would be steered to NVIDIA-A10 first, then NVIDIA-A100-SXM4-40GB, NVIDIA-A100-SXM4-80GB; "
        "elsewhere if there is no room"
    )


async def test_label_of_the_job_counts_before_the_mode(tmp_path: Path) -> None:
    """`off` steers nothing."""
    found = await explained(tmp_path, job(**{"vramgate.dev/steer": "off"}))

    assert (dict(found.terms), found.sentence) == ({}, "")
    assert explanation_of(found.judgement, found.terms)["steer"] == {}


async def test_settings_count_before_the_mode(tmp_path: Path) -> None:
    """`steering.default`, which the label of the object beats."""
    plain = await explained(tmp_path, job(), mode=Mode.WARN)
    case = read_case([str(tmp_path / "job.yaml")], nodes=str(tmp_path / "nodes.yaml"))

    found = steered(
        case.manifests.workloads[0].body,
        plain.judgement,
        classes=case.classes,
        policy=Policy(mode=Mode.WARN),
        default=Steer.REQUIRED,
    )

    assert found.judgement.verdict is Verdict.FITS
    assert found.sentence.endswith("; to no other card")


async def test_card_that_was_only_named_steers_nothing(tmp_path: Path) -> None:
    """It is on no node."""
    found = await explained(tmp_path, job(), gpu="a100-sxm4-40gb")

    assert (found.judgement.verdict, dict(found.terms), found.sentence) == (Verdict.FITS, {}, "")


async def test_terms_of_an_earlier_time_are_not_the_persons(tmp_path: Path) -> None:
    """An object as it stands in the cluster is judged as the one that was submitted."""
    first = await explained(tmp_path, job())
    again = job()
    template = again["spec"]["template"]
    template["spec"]["affinity"] = first.terms["spec.template"]
    affinity = first.terms["spec.template"]["nodeAffinity"]
    template["metadata"]["annotations"][RECORD] = json.dumps(
        {
            "required": affinity[REQUIRED]["nodeSelectorTerms"][0]["matchExpressions"],
            "preferred": affinity[PREFERRED],
        }
    )

    found = await explained(tmp_path, again)

    assert found.terms == first.terms
    assert "affinity" not in bare(again)["spec"]["template"]["spec"]
    assert bare(job()) == job()


async def test_text_says_where(tmp_path: Path) -> None:
    """Below the message of the job."""
    screen = io.StringIO()
    found = await explained(tmp_path, job())

    print_judgements([found.judgement], Console(file=screen), steered=[found.sentence])

    assert "\n  would be steered to NVIDIA-A10 first, then " in screen.getvalue()


@pytest.mark.parametrize("kind", ["Deployment", "Notebook"])
async def test_what_is_only_observed_is_not_steered(tmp_path: Path, kind: str) -> None:
    """As the webhook leaves it alone."""
    group = {"Deployment": "apps/v1", "Notebook": "kubeflow.org/v1"}[kind]
    obj = {**job(), "apiVersion": group, "kind": kind}

    found = await explained(tmp_path, obj)

    assert found.sentence == ""


async def test_claim_template_beside_the_job_is_shown_with_a_selector(tmp_path: Path) -> None:
    """Who applies both together can write it; the webhook sees one of them at a time."""
    claim = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
    template = pod(annotations={"vramgate.dev/spec": json.dumps(spec_document())})
    template["spec"]["resourceClaims"] = [claim]
    template["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}
    beside = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu"},
        "spec": {"spec": {"devices": devices}},
    }
    (tmp_path / "job.yaml").write_text(
        yaml.safe_dump_all([beside, {**job(), "spec": {"template": template}}])
    )
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all(nodes()))
    case = read_case([str(tmp_path / "job.yaml")], nodes=str(tmp_path / "nodes.yaml"))

    (found,) = await explain(case, estimator=FixedEstimator())

    (shown,) = explanation_of(found.judgement, found.terms)["steer"]["resourceClaimTemplates"]
    (request,) = shown["spec"]["spec"]["devices"]["requests"]
    (selector,) = request["exactly"]["selectors"]
    assert "device.capacity['gpu.nvidia.com'].memory.compareTo" in selector["cel"]["expression"]
    assert {**shown, "spec": beside["spec"]} == beside
    assert "ResourceClaimTemplate one-gpu lacks a selector" in found.sentence
