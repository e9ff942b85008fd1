"""`vramgate explain`: the webhook's verdict on manifests, without a cluster.

    files -> Judgements -> text, JSON or YAML, exit status

The same code as the webhook's, from a laptop or in CI. Exit: 0 nothing is `oom`, 1 something is,
2 usage or unreadable input, 3 an estimate failed, which is our fault; with --strict `unknown` is
1 too.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import orjson
import typer
import yaml

from admission.codes import Mode, Verdict
from admission.commands.explain_table import print_judgements
from admission.decision import Policy
from admission.errors import AdmissionError, ManifestError
from admission.estimates import EstimatePool
from admission.explanation import explanation_of
from admission.judge.judging import judge
from admission.manifests import Manifest, Manifests, named_class, read_classes, read_manifests
from admission.message.findings import is_fault
from admission.values import Judgement, NodeClass, Workload
from admission.workloads import read_workload
from estimator.workers.api import Estimator
from estimator.workers.pool import Workers

FAULT = 3


class Output(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


class ExplainMode(StrEnum):
    """For which mode the action is given."""

    ENFORCE = "enforce"
    WARN = "warn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is to be judged, and against which cards."""

    workloads: tuple[Workload, ...]
    manifests: Manifests
    classes: tuple[NodeClass, ...]


def command(
    manifests: Annotated[
        list[str],
        typer.Argument(
            metavar="MANIFEST...", help="Files or folders of manifests, - for standard input."
        ),
    ],
    nodes: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="The cluster's nodes: kubectl get nodes -o json."),
    ] = None,
    gpu: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="One card instead of nodes: a100-sxm4-40gb, t4, …"),
    ] = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to write the answer.")
    ] = Output.TEXT,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 for what cannot be told, too.")
    ] = False,
    mode: Annotated[
        ExplainMode, typer.Option(help="Give the action of this mode.")
    ] = ExplainMode.ENFORCE,
) -> None:
    """Say of each job in MANIFEST whether the cards it may use can hold it."""
    case = read_case(manifests, nodes=_once("--nodes", nodes), gpu=_once("--gpu", gpu))
    judgements = asyncio.run(_with_workers(case, Policy(mode=Mode(mode.value))))
    write(judgements, output)
    raise typer.Exit(exit_status(judgements, strict=strict))


def read_case(paths: Sequence[str], *, nodes: str | None, gpu: str | None) -> Case:
    """Return what the arguments name.

    Raises:
        ManifestError: if the cards are not given, something cannot be read, or nothing is there.
    """
    if (nodes is None) == (gpu is None):
        raise ManifestError(
            "one of --nodes and --gpu is needed: against which cards should it be judged?",
            hint="kubectl get nodes -o json > nodes.json, then --nodes nodes.json",
        )
    manifests = read_manifests(paths, stdin=sys.stdin)
    workloads = tuple(_workload(manifest) for manifest in manifests.workloads)
    if not workloads:
        raise ManifestError("no workload in these manifests: nothing in them runs containers")
    if nodes is not None:
        classes = read_classes(nodes, stdin=sys.stdin)
    else:
        classes = (named_class(gpu or ""),)
    return Case(workloads=workloads, manifests=manifests, classes=classes)


async def explain(case: Case, *, estimator: Estimator, policy: Policy) -> tuple[Judgement, ...]:
    """Return the judgement of each workload, in order; there is no deadline."""
    questions = (
        judge(
            workload,
            classes=case.classes,
            estimator=estimator,
            policy=policy,
            documents=case.manifests.documents(workload.ref.namespace),
        )
        for workload in case.workloads
    )
    return tuple(await asyncio.gather(*questions))


def exit_status(judgements: Sequence[Judgement], *, strict: bool) -> int:
    """Return 3 if an estimate failed, 1 if a job cannot fit (or be judged, when strict), else 0."""
    units = [unit for judgement in judgements for unit in judgement.units]
    if any(is_fault(finding) for unit in units for finding in unit.findings):
        return FAULT
    failing = {Verdict.OOM, Verdict.UNKNOWN} if strict else {Verdict.OOM}
    return int(any(judgement.verdict in failing for judgement in judgements))


def _once(option: str, values: Sequence[str] | None) -> str | None:
    """Return the one value of *option*.

    Raises:
        BadParameter: if there are several: the verdict would be on the last one in silence.
    """
    if not values:
        return None
    if len(values) > 1:
        raise typer.BadParameter("given twice; a verdict is on one of them", param_hint=option)
    return values[0]


def write(judgements: Sequence[Judgement], output: Output) -> None:
    """Write the judgements to standard output."""
    if output is Output.TEXT:
        print_judgements(judgements)
        return
    entries = [explanation_of(judgement) for judgement in judgements]
    if output is Output.JSON:
        print(orjson.dumps(entries, option=orjson.OPT_INDENT_2).decode())
    else:
        print(yaml.safe_dump(entries, sort_keys=False, allow_unicode=True), end="")


async def _with_workers(case: Case, policy: Policy) -> tuple[Judgement, ...]:
    """Judge with worker processes; equal jobs are estimated once."""
    # A worker that fails becomes a finding here; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    workers = Workers()
    try:
        return await explain(case, estimator=EstimatePool(workers), policy=policy)
    finally:
        await workers.close()


def _workload(manifest: Manifest) -> Workload:
    try:
        return read_workload(manifest.body)
    except AdmissionError as error:
        raise ManifestError(f"{manifest.source}: {error.message}", hint=error.hint) from error
