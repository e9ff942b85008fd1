"""`explain` judges by the mode, the steering and the exemptions that the webhook would go by."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.cli import main
from admission.codes import Action, Mode, Steer, Verdict
from admission.commands.cases import read_case
from admission.commands.explain import explain
from admission.commands.explain_rules import Rules
from admission.commands.explain_steer import Explained
from admission.commands.explain_table import print_judgements
from admission.config import Settings, parse_settings
from admission.explanation import explanation_of
from admission.listing import Namespace
from admission.manifests import Manifest
from estimator.device import Device
from estimator.result import Estimate
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from tests.admission.commands.api_server import serving, write_kubeconfig
from tests.builders import estimate, node, pod, spec_document

YEAR = "2999-01-01T00:00:00Z"


def manifest(*, labels: dict[str, str] | None = None, until: str = "") -> Manifest:
    """Return a Job that states what it trains, in no namespace of its own."""
    spec = pod(annotations={"vramgate.dev/spec": json.dumps(spec_document())})
    metadata: dict[str, Any] = {"name": "train", "labels": labels or {}}
    if until:
        metadata["annotations"] = {"vramgate.dev/exempt-until": until}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
    return Manifest(source="job.yaml", body={**body, "spec": {"template": spec}})


def team(*, problem: str = "", **labels: str) -> dict[str, Namespace]:
    """Return namespace `team` with these labels of ours."""
    named = {f"vramgate.dev/{key}": value for key, value in labels.items()}
    return {"team": Namespace(name="team", metadata={"labels": named}, problem=problem)}


def settings(text: str) -> Settings:
    """Return the settings of one line of `policy`."""
    return parse_settings(f"policy: {{{text}}}")


@pytest.mark.parametrize(
    ("rules", "mode"),
    [
        (Rules(), Mode.ENFORCE),
        (Rules(mode=Mode.WARN), Mode.WARN),
        (Rules(namespaces=team(mode="warn")), Mode.WARN),
        (Rules(namespaces=team(mode="off")), Mode.OFF),
        (Rules(namespaces=team(mode="loud")), Mode.ENFORCE),
        (Rules(settings=Settings()), Mode.WARN),
        (Rules(settings=Settings(), namespaces=team(mode="enforce")), Mode.ENFORCE),
        (Rules(settings=settings("mode: enforce"), namespaces=team()), Mode.ENFORCE),
        (Rules(mode=Mode.ENFORCE, namespaces=team(mode="off")), Mode.ENFORCE),
    ],
)
def test_mode_is_that_of_the_option_the_namespace_or_the_install(rules: Rules, mode: Mode) -> None:
    """In this order; where nobody says one, what the job may come to is told."""
    assert rules.of(manifest(), namespace="team").policy.mode is mode


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (Rules(), ()),
        (Rules(mode=Mode.WARN, namespaces=team(mode="off")), ()),
        (Rules(namespaces=team(mode="warn")), ("mode warn: the label of namespace team",)),
        (Rules(settings=Settings()), ("mode warn: policy.mode of the settings",)),
        (
            Rules(namespaces=team(problem="the API server says 403")),
            (
                "labels of namespace team are not known: the API server says 403",
                "mode enforce: nobody says another; --config has the install's",
            ),
        ),
        (
            Rules(mode=Mode.WARN, namespaces=team(webhook="ignore")),
            ("not sent to the webhook: its namespace's label vramgate.dev/webhook is ignore",),
        ),
        (
            Rules(mode=Mode.WARN, settings=settings("enabled: false")),
            ("policy.enabled is false: the webhook lets everything pass unread",),
        ),
    ],
)
def test_remarks_say_where_the_mode_comes_from(rules: Rules, said: tuple[str, ...]) -> None:
    """Nothing is guessed in silence."""
    assert rules.of(manifest(), namespace="team").remarks == said


def test_own_label_counts_where_the_settings_let_it() -> None:
    """As in a review."""
    job = manifest(labels={"vramgate.dev/mode": "off"})
    loose = Rules(settings=settings("mode: enforce, workloadsMayLoosen: true"))
    strict = Rules(settings=settings("mode: enforce"))

    assert strict.of(job, namespace="team").policy.mode is Mode.ENFORCE
    ruling = loose.of(job, namespace="team")
    assert ruling.policy.mode is Mode.OFF
    assert ruling.remarks == ("mode off: its label vramgate.dev/mode",)


def test_steering_is_that_of_the_namespace_or_the_settings() -> None:
    """A namespace's label counts before the settings; the mode decides where neither says."""
    hard = parse_settings("steering: {default: required}")

    assert Rules(namespaces=team(steer="off")).of(manifest(), namespace="team").steer is Steer.OFF
    by_settings = Rules(settings=hard, namespaces=team())
    assert by_settings.of(manifest(), namespace="team").steer is Steer.REQUIRED
    by_mode = Rules(namespaces=team(mode="warn"))
    assert by_mode.of(manifest(), namespace="team").steer is Steer.PREFERRED


class FixedEstimator:
    """Says 20 GiB of every job."""

    async def estimate(self, job: Job, devices: tuple[Device, ...]) -> tuple[Estimate, ...]:
        return tuple(estimate(least=20 * GIB, card=card, spec=spec_of(job)) for card in devices)

    async def fit(self, *_: object) -> tuple[()]:
        return ()


async def explained(folder: Path, job: Manifest, rules: Rules) -> Explained:
    """Return what is said of *job*, which needs 20 GiB, on a T4."""
    (folder / "job.yaml").write_text(yaml.safe_dump(dict(job.body)))
    (folder / "nodes.yaml").write_text(yaml.safe_dump(node()))
    case = read_case([str(folder / "job.yaml")], nodes=str(folder / "nodes.yaml"))
    (found,) = await explain(
        replace(case, rules=rules, namespace="team"),
        estimator=FixedEstimator(),  # type: ignore[arg-type]
    )
    return found


EXEMPTED = "mode: enforce, exemptions: [{{namespace: team, until: {}, reason: OPS-7}}]"


async def test_exemption_of_the_settings_is_told_with_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The action is the webhook's, and so is the reason why it is not a denial."""
    rules = Rules(settings=settings(EXEMPTED.format(YEAR)))

    found = await explained(tmp_path, manifest(), rules)

    judgement = found.judgement
    assert (judgement.verdict, judgement.action) == (Verdict.OOM, Action.WARN)
    entry = explanation_of(judgement)
    assert entry["exemption"] == {"until": YEAR, "by": "settings", "reason": "OPS-7"}
    print_judgements([judgement])
    assert f"exempt from denial until {YEAR} (by settings): OPS-7" in capsys.readouterr().out


async def test_exemption_that_is_over_denies(tmp_path: Path) -> None:
    """And says that there was one."""
    rules = Rules(settings=settings(EXEMPTED.format("2020-01-01T00:00:00Z")))

    found = await explained(tmp_path, manifest(), rules)

    assert found.judgement.action is Action.DENY
    assert found.judgement.exemption is None
    assert "exemption" not in explanation_of(found.judgement)
    assert "its exemption ended at 2020-01-01T00:00:00Z" in str(found.remarks)


@pytest.mark.parametrize(("loose", "action"), [("true", Action.WARN), ("false", Action.DENY)])
async def test_annotation_exempts_where_the_settings_let_it(
    tmp_path: Path, loose: str, action: Action
) -> None:
    """As in a review; elsewhere it is said that it does not count."""
    rules = Rules(settings=settings(f"mode: enforce, workloadsMayLoosen: {loose}"))

    found = await explained(tmp_path, manifest(until=YEAR), rules)

    assert found.judgement.action is action
    assert ("does not count here" in str(found.remarks)) is (action is Action.DENY)


@pytest.mark.parametrize(
    ("namespace", "said"),
    [
        ({"metadata": {"labels": {"vramgate.dev/mode": "warn"}}}, "mode warn: the label of"),
        (None, "labels of namespace team are not known: there is no such namespace"),
    ],
)
def test_namespace_is_read_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], namespace: Any, said: str
) -> None:
    """Once for all jobs in it: a right to list namespaces is not needed."""
    bare = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": pod()}}
    jobs = [{**bare, "metadata": {"name": name}} for name in ("a", "b")]
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(jobs))
    objects = {"/api/v1/nodes": [node()]}
    if namespace is not None:
        objects["/api/v1/namespaces/team"] = namespace

    with serving(objects) as server:
        config = write_kubeconfig(tmp_path, server.url)
        argv = ["explain", str(tmp_path / "jobs.yaml"), "--kubeconfig", str(config), "--offline"]
        status = main(argv)

    assert status == 0
    assert capsys.readouterr().out.count(said) == 2
    assert server.asked.count("/api/v1/namespaces/team") == 1
