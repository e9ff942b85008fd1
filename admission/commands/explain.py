"""`vramgate explain`: the webhook's verdict on manifests, before anything is submitted.

    files, cards of files or of a cluster -> Judgements -> text, JSON or YAML, exit status

The same code as the webhook's, from a laptop or in CI. Exit: 0 nothing is `oom`, 1 something is,
2 usage or unreadable input, 3 an estimate failed, which is our fault; with --strict `unknown` is
1 too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from admission.codes import Mode, Verdict
from admission.commands.cases import Case, kinds_of, read_case, read_one, sources_of
from admission.commands.documents import Notation, Output, write_entries
from admission.commands.exits import FAULT
from admission.commands.explain_steer import Explained, steered
from admission.commands.parts import LazyWorkers
from admission.commands.plugin import Context, Kubeconfig, Namespace, access_of
from admission.decision import Policy
from admission.estimates import EstimatePool
from admission.explanation import explanation_of
from admission.judge.judging import judge_views
from admission.judge.rounds import Fetching
from admission.manifests import Manifest
from admission.message.findings import is_fault
from admission.values import Judgement
from estimator.deferred import Deferred
from estimator.workers.api import Estimator

if TYPE_CHECKING:
    from admission import config as configuration
    from admission.commands import explain_table
else:
    configuration = Deferred("admission.config")
    explain_table = Deferred("admission.commands.explain_table")


class ExplainMode(StrEnum):
    """For which mode the action is given."""

    ENFORCE = "enforce"
    WARN = "warn"


def command(
    invocation: typer.Context,
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
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to write the answer.")
    ] = Output.TEXT,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 for what cannot be told, too.")
    ] = False,
    mode: Annotated[
        ExplainMode, typer.Option(help="Give the action of this mode.")
    ] = ExplainMode.ENFORCE,
    config: Annotated[
        Path | None, typer.Option(help="The webhook's settings: where it reads documents.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no Hub and no host, whatever the settings say.")
    ] = False,
) -> None:
    """Say of each job in MANIFEST whether the cards it may use can hold it."""
    settings = configuration.load_settings(config) if config is not None else None
    access = access_of(
        invocation.obj,
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        has_cards=bool(nodes or gpu),
    )
    connection = access.connect() if access is not None else None
    case = read_case(
        manifests,
        nodes=_once("--nodes", nodes),
        gpu=_once("--gpu", gpu),
        connection=connection,
        kinds=kinds_of(settings),
        node_settings=settings.nodes if settings is not None else None,
    )
    case = replace(
        case,
        namespace=namespace or case.namespace,
        steer=settings.steering.default if settings is not None else None,
    )
    policy = Policy(mode=Mode(mode.value))
    sources = sources_of(settings, connection, offline=offline)
    found = asyncio.run(_with_workers(case, policy, sources))
    write(found, output)
    judgements = [each.judgement for each in found]
    raise typer.Exit(exit_status(judgements, strict=strict))


async def explain(
    case: Case, *, estimator: Estimator, policy: Policy, fetcher: Fetching | None = None
) -> tuple[Explained, ...]:
    """Return the judgement of each workload, in order, as steered; there is no deadline.

    ConfigMaps are those among the manifests; *fetcher* has the rest, None if nobody is asked.
    """
    questions = (
        _explain_one(manifest, case, estimator=estimator, policy=policy, fetcher=fetcher)
        for manifest in case.manifests.workloads
    )
    return tuple(await asyncio.gather(*questions))


async def _explain_one(
    manifest: Manifest,
    case: Case,
    *,
    estimator: Estimator,
    policy: Policy,
    fetcher: Fetching | None,
) -> Explained:
    workload, views = await read_one(manifest, case, fetcher=fetcher)
    judgement = await judge_views(workload, views, estimator=estimator, policy=policy)
    return steered(
        manifest.body, judgement, classes=case.classes, policy=policy, default=case.steer
    )


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


def write(found: Sequence[Explained], output: Output) -> None:
    """Write the judgements to standard output."""
    if output is Output.TEXT:
        judgements = [each.judgement for each in found]
        explain_table.print_judgements(judgements, steered=[each.sentence for each in found])
        return
    write_entries(
        [explanation_of(each.judgement, each.terms) for each in found], Notation(output.value)
    )


async def _with_workers(
    case: Case, policy: Policy, fetcher: Fetching | None
) -> tuple[Explained, ...]:
    """Judge with worker processes; equal jobs are estimated once."""
    # A worker that fails becomes a finding here; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    workers = LazyWorkers()
    try:
        return await explain(case, estimator=EstimatePool(workers), policy=policy, fetcher=fetcher)
    finally:
        await workers.close()
