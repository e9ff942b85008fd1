"""`vramgate explain`: the webhook's verdict on manifests, before anything is submitted.

    files, cards of files or of a cluster -> Judgements -> text, JSON, YAML, picture; exit status

The same code as the webhook's, from a laptop or in CI. Exit: 0 nothing is `oom`, 1 something is,
2 usage or unreadable input, 3 an estimate failed, which is our fault; with --strict `unknown` is
1 too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from admission.codes import Mode, Verdict
from admission.commands.cases import (
    Case,
    kinds_of,
    read_alone,
    read_case,
    read_one,
    sources_of,
)
from admission.commands.documents import Notation, Output, write_entries
from admission.commands.exits import FAULT
from admission.commands.explain_rules import Rules, Ruling, namespaces_of
from admission.commands.explain_steer import Explained, claimed, steered
from admission.commands.options import (
    FILE,
    Word,
    context_option,
    kubeconfig_option,
    namespace_option,
    offline_option,
)
from admission.commands.plugin import access_of
from admission.explanation import explanation_of
from admission.judge.judging import judge_views, judged_unasked
from admission.judge.rounds import Fetching
from admission.manifests import Manifest
from admission.message.findings import is_fault
from admission.values import Judgement
from estimator.deferred import Deferred
from estimator.workers.api import Estimator

if TYPE_CHECKING:
    import asyncio

    from admission import config as configuration
    from admission.commands import asking, drawing, explain_table, picture
    from admission.commands.drawing import Drawing
    from admission.commands.picture import Shown
else:
    asking = Deferred("admission.commands.asking")
    drawing = Deferred("admission.commands.drawing")
    picture = Deferred("admission.commands.picture")
    asyncio = Deferred("asyncio")
    configuration = Deferred("admission.config")
    explain_table = Deferred("admission.commands.explain_table")


class Form(StrEnum):
    """How the answer is written."""

    TEXT = Output.TEXT.value
    JSON = Output.JSON.value
    YAML = Output.YAML.value
    HTML = "html"
    PICTURE = "picture"


DRAWN = (Form.HTML, Form.PICTURE)


class ExplainMode(StrEnum):
    """For which mode the action is given."""

    ENFORCE = "enforce"
    WARN = "warn"


@click.command()
@click.argument(
    "manifests",
    nargs=-1,
    required=True,
    metavar="MANIFEST...",
    help="Files or folders of manifests, - for standard input.",
)
@click.option(
    "--nodes",
    multiple=True,
    metavar="FILE",
    help="The cluster's nodes: kubectl get nodes -o json.",
)
@click.option(
    "--gpu",
    multiple=True,
    metavar="NAME",
    help="One card instead of nodes: a100-sxm4-40gb, t4, …",
)
@kubeconfig_option
@context_option
@namespace_option
@click.option(
    "--output", "-o", type=Word(Form), default=Form.TEXT.value, help="How to write the answer."
)
@click.option("--strict", is_flag=True, help="Exit 1 for what cannot be told, too.")
@click.option(
    "--mode",
    type=Word(ExplainMode),
    help="Give the action of this mode, whatever labels and settings say. Where nothing says "
    "one it is that of enforce.",
)
@click.option(
    "--config",
    type=FILE,
    help="The webhook's settings: mode, exemptions, where it reads documents.",
)
@offline_option
@click.pass_obj
def command(
    program: str,
    manifests: tuple[str, ...],
    nodes: tuple[str, ...],
    gpu: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    output: Form,
    strict: bool,
    mode: ExplainMode | None,
    config: Path | None,
    offline: bool,
) -> None:
    """Say of each job in MANIFEST whether the cards it may use can hold it."""
    settings = configuration.load_settings(config) if config is not None else None
    access = access_of(
        program,
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
        rules=Rules(
            mode=Mode(mode.value) if mode is not None else None,
            settings=settings,
            namespaces=(
                namespaces_of(case.manifests.workloads, connection)
                if connection is not None
                else {}
            ),
        ),
    )
    sources = sources_of(settings, connection, offline=offline)
    if output in DRAWN:
        shown = asking.answered_drawn(
            lambda estimator, artist: explain_drawn(
                case, estimator=estimator, artist=artist, fetcher=sources
            )
        )
        picture.write(picture.explained_page(shown), is_html=output is Form.HTML)
        judgements = [each.judgement for each in shown]
        sys.exit(exit_status(judgements, strict=strict))
    found = explained_alone(case) or asking.answered(
        lambda estimator: explain(case, estimator=estimator, fetcher=sources)
    )
    write(found, Output(output.value))
    judgements = [each.judgement for each in found]
    sys.exit(exit_status(judgements, strict=strict))


def explained_alone(case: Case) -> tuple[Explained, ...] | None:
    """Return what `explain` does where it asks nobody anything; None where it asks.

    A command that asks starts an event loop, which takes longer than reading a job.
    """
    found = []
    for manifest in case.manifests.workloads:
        read = read_alone(manifest, case)
        ruling = case.ruling(manifest)
        judgement = judged_unasked(*read, policy=ruling.policy) if read is not None else None
        if judgement is None:
            return None
        found.append(_steered(manifest, judgement, case, ruling))
    return tuple(found)


async def explain(
    case: Case, *, estimator: Estimator, fetcher: Fetching | None = None
) -> tuple[Explained, ...]:
    """Return the judgement of each workload, in order, as steered; there is no deadline.

    ConfigMaps are those among the manifests; *fetcher* has the rest, None if nobody is asked.
    """
    questions = (
        _explain_one(manifest, case, estimator=estimator, fetcher=fetcher)
        for manifest in case.manifests.workloads
    )
    return tuple(await asyncio.gather(*questions))


async def explain_drawn(
    case: Case, *, estimator: Estimator, artist: Drawing, fetcher: Fetching | None = None
) -> tuple[Shown, ...]:
    """Return the same as `explain`, with the run of each unit drawn by *artist*."""
    found = await explain(case, estimator=estimator, fetcher=fetcher)
    drawn = await asyncio.gather(*(drawing.drawn_units(each.judgement, artist) for each in found))
    return tuple(
        picture.Shown(
            judgement=each.judgement,
            drawn=units,
            remarks=(*((each.sentence,) if each.sentence else ()), *each.remarks),
        )
        for each, units in zip(found, drawn, strict=True)
    )


async def _explain_one(
    manifest: Manifest,
    case: Case,
    *,
    estimator: Estimator,
    fetcher: Fetching | None,
) -> Explained:
    workload, views = await read_one(manifest, case, fetcher=fetcher)
    ruling = case.ruling(manifest)
    judgement = await judge_views(workload, views, estimator=estimator, policy=ruling.policy)
    return _steered(manifest, judgement, case, ruling)


def _steered(manifest: Manifest, judgement: Judgement, case: Case, ruling: Ruling) -> Explained:
    found = steered(
        manifest.body, judgement, classes=case.classes, policy=ruling.policy, default=ruling.steer
    )
    found = claimed(found, case.manifests.documents(case.namespace_of(manifest)))
    return replace(found, remarks=ruling.remarks)


def exit_status(judgements: Sequence[Judgement], *, strict: bool) -> int:
    """Return 3 if an estimate failed, 1 if a job cannot fit (or be judged, when strict), else 0."""
    units = [unit for judgement in judgements for unit in judgement.units]
    if any(is_fault(finding) for unit in units for finding in unit.findings):
        return FAULT
    failing = {Verdict.OOM, Verdict.UNKNOWN} if strict else {Verdict.OOM}
    return int(any(judgement.verdict in failing for judgement in judgements))


def _once(option: str, values: Sequence[str]) -> str | None:
    """Return the one value of *option*.

    Raises:
        BadParameter: if there are several: the verdict would be on the last one in silence.
    """
    if not values:
        return None
    if len(values) > 1:
        raise click.BadParameter("given twice; a verdict is on one of them", param_hint=option)
    return values[0]


def write(found: Sequence[Explained], output: Output) -> None:
    """Write the judgements to standard output."""
    if output is Output.TEXT:
        explain_table.print_judgements(
            [each.judgement for each in found],
            steered=[each.sentence for each in found],
            remarks=[each.remarks for each in found],
        )
        return
    entries = []
    for each in found:
        remarks = {"remarks": list(each.remarks)} if each.remarks else {}
        entries.append({**explanation_of(each.judgement, each.terms), **remarks})
    write_entries(entries, Notation(output.value))
