"""`vramgate explain`: the same verdict without a cluster, for people and for CI."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from rich.console import Console

from admission.cli import main
from admission.codes import Action, Mode, ReasonCode, Verdict
from admission.commands import explain
from admission.commands.cases import Case, read_case
from admission.commands.documents import Output
from admission.commands.explain_steer import Explained
from admission.commands.explain_table import print_judgements
from admission.decision import Cause, Change, Policy
from admission.explanation import explanation_of
from admission.judge.conclusion import conclude
from admission.manifests import read_manifests
from admission.message.findings import failed
from admission.values import Finding, Judgement, Reading, UnitJudgement, WorkloadRef
from estimator.device import Device
from estimator.errors import TraceError
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from tests.builders import (
    estimate,
    fit,
    job_spec,
    judged,
    node,
    node_class,
    pod,
    spec_document,
    unit,
    verdict_on,
    workload,
)

T4 = node_class("Tesla-T4", budget=14 * GIB)
SOURCES = {"model.name": "containers[0].args --arch"}


def judgement(*units: UnitJudgement) -> Judgement:
    """Return the judgement of an enforcing namespace over these units."""
    submitted = workload(*(found.unit for found in units))
    return conclude(submitted, units, policy=Policy(mode=Mode.ENFORCE), change=Change())


def of_verdict(verdict: Verdict) -> Judgement:
    """Return a judgement with this verdict."""
    finding = Finding(code=ReasonCode.NO_MODEL, path="", reason="no model")
    return judgement(
        {
            Verdict.OOM: judged(verdict, verdict_on(T4, least=20 * GIB), reason=Cause.TOO_LARGE),
            Verdict.TIGHT: judged(
                verdict, verdict_on(T4, least=GIB, enough=20 * GIB), reason=Cause.LITTLE_ROOM
            ),
            Verdict.FITS: judged(verdict, verdict_on(T4, least=GIB), reason=Cause.FITS),
            Verdict.UNKNOWN: judged(
                verdict, reason=finding.code, reading=Reading(), findings=(finding,)
            ),
            Verdict.SKIPPED: judged(verdict, reason=ReasonCode.NO_TRAINING, reading=Reading()),
        }[verdict]
    )


def test_json_holds_the_unit_and_repeats_it_at_the_top() -> None:
    """The exact keys of the contract, sizes in bytes."""
    where = verdict_on(T4, least=20 * GIB, enough=21 * GIB)
    found = judgement(
        judged(
            Verdict.OOM,
            where,
            reason=Cause.TOO_LARGE,
            reading=Reading(spec=job_spec(), sources=SOURCES),
            fits=(fit(largest_batch=160),),
        )
    )
    nodes = [
        {
            "class": "Tesla-T4",
            "count": 1,
            "budgetBytes": 14 * GIB,
            "least": 20 * GIB,
            "enough": 21 * GIB,
            "most": 21 * GIB,
            "verdict": "oom",
        }
    ]
    document = estimate(least=20 * GIB, enough=21 * GIB).document()

    assert explanation_of(found) == {
        "workload": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": "default",
            "name": "train",
        },
        "verdict": "oom",
        "action": "deny",
        "mode": "enforce",
        "reason": "too-large",
        "message": found.message,
        "hints": ["fits with batch size 160"],
        "spec": spec_document(),
        "sources": SOURCES,
        "estimate": document,
        "nodes": nodes,
        "steer": {},
        "unknowns": [],
        "units": [
            {
                "role": "main",
                "template": "spec.template",
                "container": "train",
                "replicas": 1,
                "gpus": 1,
                "gpuResource": "nvidia.com/gpu",
                "spec": spec_document(),
                "sources": SOURCES,
                "estimate": document,
                "verdict": "oom",
                "steer": {},
                "nodes": nodes,
            }
        ],
    }


def test_json_of_an_unreadable_job_holds_what_was_understood() -> None:
    """The partial spec helps to write the annotation; the finding says what is missing."""
    finding = Finding(code=ReasonCode.NO_BATCH, path="p", reason="no batch size", hint="say it")
    reading = Reading(unknowns=(finding,), partial={"framework": "pytorch"})
    unit = judged(Verdict.UNKNOWN, reason=finding.code, reading=reading, findings=(finding,))

    found = explanation_of(judgement(unit))

    assert (found["spec"], found["estimate"], found["nodes"]) == ({"framework": "pytorch"}, {}, [])
    assert found["unknowns"] == [
        {"code": "no-batch", "path": "p", "reason": "no batch size", "hint": "say it"}
    ]


def test_json_of_a_workload_without_units_is_whole() -> None:
    """Every key is there, so that readers need not ask."""
    found = explanation_of(judgement())

    assert found.keys() == explanation_of(of_verdict(Verdict.OOM)).keys()
    assert (found["verdict"], found["reason"], found["units"]) == ("skipped", "no-gpu", [])


@pytest.mark.parametrize("verdict", list(Verdict))
def test_json_of_every_verdict_can_be_written(verdict: Verdict) -> None:
    """Only JSON types."""
    found = explanation_of(of_verdict(verdict))

    assert json.loads(orjson.dumps(found)) == found
    assert found["verdict"] == verdict


@pytest.mark.parametrize(
    ("verdicts", "plain", "strict"),
    [
        ([], 0, 0),
        ([Verdict.FITS, Verdict.TIGHT, Verdict.SKIPPED], 0, 0),
        ([Verdict.UNKNOWN], 0, 1),
        ([Verdict.FITS, Verdict.OOM], 1, 1),
    ],
)
def test_exit_status_says_whether_something_cannot_fit(
    verdicts: list[Verdict], plain: int, strict: int
) -> None:
    """0 nothing is `oom`, 1 something is; --strict counts `unknown` too."""
    found = [of_verdict(verdict) for verdict in verdicts]

    assert explain.exit_status(found, strict=False) == plain
    assert explain.exit_status(found, strict=True) == strict


def test_text_has_a_row_a_unit_and_the_whole_message_below() -> None:
    """What it found, what that needs, on which card, and what to do."""
    screen = io.StringIO()
    oom, unread = of_verdict(Verdict.OOM), of_verdict(Verdict.UNKNOWN)

    print_judgements([oom, unread], Console(file=screen))

    table, first, second = screen.getvalue().split("\n\n")
    lines = [" ".join(line.split()) for line in table.splitlines()]
    assert lines == [
        "job found needs best card verdict",
        "default/train resnet50, batch 256, fp32 20.0 GiB Tesla-T4 ×8, 14.0 GiB oom",
        "default/train – – – unknown",
    ]
    assert first == f"default/train: {oom.message} [deny]"
    assert second.rstrip() == f"default/train: {unread.message} [warn]"


def test_text_names_the_role_of_each_unit() -> None:
    """Several rows of one job can be told apart."""
    screen = io.StringIO()
    units = [
        judged(Verdict.FITS, verdict_on(T4, least=GIB), reason=Cause.FITS, of=unit(role=role))
        for role in ("Master", "Worker")
    ]

    print_judgements([judgement(*units)], Console(file=screen))

    assert "default/train Master" in screen.getvalue()
    assert "default/train Worker" in screen.getvalue()


def test_text_shows_what_was_noticed_while_reading() -> None:
    """A conflict between annotation and flags is shown whatever the verdict."""
    screen = io.StringIO()
    reading = Reading(spec=job_spec(), warnings=("--batch-size 32 is not used",))
    unit = judged(Verdict.FITS, verdict_on(T4, least=GIB), reason=Cause.FITS, reading=reading)

    print_judgements([judgement(unit)], Console(file=screen))

    assert screen.getvalue().splitlines()[-1] == "  warning: --batch-size 32 is not used"


def test_markup_in_a_name_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    """A job called [red] is not red."""
    found = of_verdict(Verdict.SKIPPED)
    ref = WorkloadRef(api_version="v1", kind="Pod", namespace="", name="[red]x[/red]")
    named = _renamed(found, ref)

    explain.write([Explained(judgement=named)], Output.TEXT)

    assert "[red]x[/red]" in capsys.readouterr().out


def test_yaml_and_json_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """One document, two notations."""
    found = [Explained(judgement=of_verdict(Verdict.OOM))]

    explain.write(found, Output.JSON)
    as_json = json.loads(capsys.readouterr().out)
    explain.write(found, Output.YAML)
    as_yaml = yaml.safe_load(capsys.readouterr().out)

    assert as_json == as_yaml == [explanation_of(found[0].judgement)]


class FixedEstimator:
    """Says 20 GiB of every job, and that one sample less would fit."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        spec = spec_of(job)
        return tuple(estimate(least=20 * GIB, card=card, spec=spec) for card in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        return tuple(fit(largest_batch=spec.input.batch_size - 1) for _ in devices)


def gpu_job(name: str = "train") -> dict[str, Any]:
    """Return a Job whose annotation says what it trains."""
    spec = {"vramgate.dev/spec": json.dumps(spec_document())}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": pod(annotations=spec)},
    }


async def test_manifests_are_judged_in_order_against_the_nodes(tmp_path: Path) -> None:
    """From files to judgements, as the command does it."""
    jobs, nodes = tmp_path / "jobs.yaml", tmp_path / "nodes.yaml"
    jobs.write_text(yaml.safe_dump_all([gpu_job("a"), gpu_job("b")]), "utf-8")
    nodes.write_text(yaml.safe_dump(node()), "utf-8")

    case = read_case([str(jobs)], nodes=str(nodes), gpu=None)
    found = await explain.explain(case, estimator=FixedEstimator())

    assert [each.judgement.workload.ref.name for each in found] == ["a", "b"]
    assert {(each.judgement.verdict, each.judgement.action) for each in found} == {
        (Verdict.OOM, Action.DENY)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a person sees of one run of the command."""

    status: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Run]:
    """Run `vramgate explain` with these arguments."""

    def run(*arguments: str) -> Run:
        status = main(["explain", *arguments])
        seen = capsys.readouterr()
        return Run(status=status, out=seen.out, err=seen.err)

    return run


@pytest.mark.parametrize("arguments", [[], ["--gpu", "t4", "--nodes", "n.json"]])
def test_cards_have_to_be_given(run: Callable[..., Run], arguments: list[str]) -> None:
    """None or several of --nodes, --gpu and --kubeconfig are a usage error, with the next step."""
    found = run("job.yaml", *arguments)

    assert found == Run(
        status=2,
        out="",
        err="vramgate: one of --nodes, --gpu and --kubeconfig is needed: against which cards "
        "should it be judged?\n"
        "hint: kubectl get nodes -o json > nodes.json, then --nodes nodes.json\n",
    )


def test_what_cannot_be_read_is_said_on_standard_error(
    run: Callable[..., Run], tmp_path: Path
) -> None:
    """Exit 2 and a sentence, no stack trace."""
    gone = tmp_path / "gone.yaml"

    found = run(str(gone), "--gpu", "t4")

    assert found == Run(status=2, out="", err=f"vramgate: {gone}: no such file or directory\n")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "x", "annotations": ["a"]}}, "metadata.annotations"),
        ({"spec": {"template": pod(nodeSelector=["a"])}}, "spec.template.spec.nodeSelector"),
    ],
)
def test_malformed_object_is_named_with_its_field(
    run: Callable[..., Run], tmp_path: Path, change: dict[str, Any], field: str
) -> None:
    """As the API server would refuse it."""
    file, nodes = tmp_path / "job.yaml", tmp_path / "nodes.yaml"
    file.write_text(yaml.safe_dump(gpu_job() | change), "utf-8")
    nodes.write_text(yaml.safe_dump(node()), "utf-8")

    found = run(str(file), "--nodes", str(nodes))

    assert (found.status, found.out) == (2, "")
    assert f"{field}: ['a'] is not a mapping" in found.err


def test_unknown_card_is_refused_with_the_closest(run: Callable[..., Run], tmp_path: Path) -> None:
    """A slip of the finger is no reason to guess."""
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(gpu_job()), "utf-8")

    found = run(str(file), "--gpu", "a100-sxm4-41gb")

    assert found.status == 2
    assert "a100-sxm4-40gb" in found.err


def test_manifests_without_workloads_are_bad_input(run: Callable[..., Run], tmp_path: Path) -> None:
    """A wrong path in CI must not read as: nothing is wrong."""
    file = tmp_path / "service.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Service"}), "utf-8")

    found = run(str(file), "--gpu", "t4", "-o", "json")

    assert found == Run(
        status=2,
        out="",
        err="vramgate: no workload in these manifests: nothing in them runs containers\n",
    )


@pytest.mark.parametrize("kind", [{}, {"apiVersion": "vramgate.dev/v1", "kind": "JobSpec"}])
def test_job_spec_is_sent_to_the_other_command(
    run: Callable[..., Run], tmp_path: Path, kind: dict[str, str]
) -> None:
    """With or without its kind."""
    file = tmp_path / "spec.yaml"
    file.write_text(yaml.safe_dump({**kind, **spec_document()}), "utf-8")

    found = run(str(file), "--gpu", "t4")

    message = f"vramgate: {file}: document 1 is a JobSpec: use `vramgate estimate`\n"
    assert found == Run(status=2, out="", err=message)


@pytest.mark.parametrize(
    ("option", "values"), [("--gpu", ("t4", "l4")), ("--nodes", ("a.yaml", "b.yaml"))]
)
def test_cards_given_twice_are_refused(
    run: Callable[..., Run], option: str, values: tuple[str, str]
) -> None:
    """The last one would win in silence."""
    found = run("job.yaml", *(word for value in values for word in (option, value)))

    assert (found.status, found.out) == (2, "")
    assert option in found.err
    assert "given twice" in found.err


def test_fault_of_ours_is_told_whole_and_ends_with_status_3() -> None:
    """The message for the job's owner stays short; whoever reports the bug needs the rest."""
    (finding,) = failed(TraceError("tensor 3 is freed twice"))
    unit = judged(Verdict.UNKNOWN, reason=finding.code, findings=(finding,))
    found = [judgement(unit), of_verdict(Verdict.OOM)]
    screen = io.StringIO()

    print_judgements(found, Console(file=screen))

    assert explain.exit_status(found, strict=False) == 3
    assert explanation_of(found[0])["unknowns"][0]["reason"] == finding.reason
    assert "  failed: its estimate failed, which is our fault: tensor 3 is freed twice\n" in (
        screen.getvalue()
    )


def test_case_holds_what_the_files_hold(tmp_path: Path) -> None:
    """ConfigMaps travel with the workloads that may refer to them."""
    file = tmp_path / "all.yaml"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    file.write_text(yaml.safe_dump_all([gpu_job(), config]), "utf-8")

    case = read_case([str(file)], nodes=None, gpu="t4")

    assert isinstance(case, Case)
    assert case.manifests == read_manifests([str(file)], stdin=io.StringIO())
    assert case.manifests.config_maps == (config,)


@pytest.mark.torch
@pytest.mark.slow
def test_command_estimates_with_workers_of_its_own(run: Callable[..., Run], tmp_path: Path) -> None:
    """A ResNet-50 of batch 256 in fp32 does not fit a T4; a smaller batch does, and is named."""
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(gpu_job()), "utf-8")

    found = run(str(file), "--gpu", "t4", "-o", "json")

    (entry,) = json.loads(found.out)
    assert (found.status, found.err) == (1, "")
    assert (entry["verdict"], entry["action"]) == ("oom", "deny")
    assert entry["nodes"][0]["least"] > entry["nodes"][0]["budgetBytes"]
    assert any(hint.startswith("fits with batch size ") for hint in entry["hints"])


def _renamed(found: Judgement, ref: WorkloadRef) -> Judgement:
    return replace(found, workload=replace(found.workload, ref=ref))
