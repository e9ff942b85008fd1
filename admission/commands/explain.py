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
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
import yaml

from admission.codes import Mode, Verdict
from admission.decision import Policy
from admission.errors import AdmissionError, ManifestError
from admission.estimates import EstimatePool
from admission.explanation import explanation_of
from admission.judge.judging import Views, judge_views, read_views
from admission.judge.rounds import Fetching, in_rounds
from admission.manifests import Manifest, Manifests, named_class, read_classes, read_manifests
from admission.message.findings import is_fault
from admission.sources.references import is_remote
from admission.values import NO_DOCUMENTS, Document, Documents, Judgement, NodeClass, Workload
from admission.workloads import KINDS, read_workload
from admission.workloads.custom import with_custom
from admission.workloads.kind import Kinds
from estimator.deferred import Deferred
from estimator.device import Device
from estimator.workers.api import Estimator, Job

if TYPE_CHECKING:
    from admission import config as configuration
    from admission.commands import explain_table
    from admission.config import SourceSettings
    from admission.node_settings import NodeSettings
    from admission.sources import setup
    from admission.sources.fetching import Fetcher
    from estimator.result import Estimate, Fit
    from estimator.spec import JobSpec
    from estimator.workers import pool
else:
    configuration = Deferred("admission.config")
    explain_table = Deferred("admission.commands.explain_table")
    pool = Deferred("estimator.workers.pool")
    setup = Deferred("admission.sources.setup")

FAULT = 3
_NOT_HERE = "is not among the manifests"
_OFFLINE = "is not asked for: offline"


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
    kinds: Kinds = field(default_factory=lambda: KINDS)


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
    config: Annotated[
        Path | None, typer.Option(help="The webhook's settings: where it reads documents.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no Hub and no host, whatever the settings say.")
    ] = False,
) -> None:
    """Say of each job in MANIFEST whether the cards it may use can hold it."""
    settings = configuration.load_settings(config) if config is not None else None
    kinds = with_custom(KINDS, settings.workloads.kinds) if settings is not None else KINDS
    case = read_case(
        manifests,
        nodes=_once("--nodes", nodes),
        gpu=_once("--gpu", gpu),
        kinds=kinds,
        node_settings=settings.nodes if settings is not None else None,
    )
    policy = Policy(mode=Mode(mode.value))
    sources = settings.sources if settings is not None else None
    fetcher = None if offline else _Fetcher(sources)
    judgements = asyncio.run(_with_workers(case, policy, fetcher))
    write(judgements, output)
    raise typer.Exit(exit_status(judgements, strict=strict))


def read_case(
    paths: Sequence[str],
    *,
    nodes: str | None,
    gpu: str | None,
    kinds: Kinds = KINDS,
    node_settings: NodeSettings | None = None,
) -> Case:
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
    workloads = tuple(_workload(manifest, NO_DOCUMENTS, kinds) for manifest in manifests.workloads)
    if not workloads:
        raise ManifestError("no workload in these manifests: nothing in them runs containers")
    if nodes is not None:
        classes = read_classes(nodes, stdin=sys.stdin, settings=node_settings)
    else:
        classes = (named_class(gpu or ""),)
    return Case(workloads=workloads, manifests=manifests, classes=classes, kinds=kinds)


async def explain(
    case: Case, *, estimator: Estimator, policy: Policy, fetcher: Fetching | None = None
) -> tuple[Judgement, ...]:
    """Return the judgement of each workload, in order; there is no deadline.

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
) -> Judgement:
    async def read(documents: Documents) -> tuple[Workload, Views]:
        workload = _workload(manifest, documents, case.kinds)
        return workload, read_views(workload, classes=case.classes, documents=documents)

    async def fetch(wanted: tuple[str, ...], namespace: str) -> Documents:
        here = {name: Document(problem=_NOT_HERE) for name in wanted if not is_remote(name)}
        others = [name for name in wanted if name not in here]
        if fetcher is None:
            return {**here, **{name: Document(problem=_OFFLINE) for name in others}}
        return {**here, **await fetcher.fetch(others, namespace=namespace)}

    namespace = _workload(manifest, NO_DOCUMENTS, case.kinds).ref.namespace
    found = await in_rounds(read, fetch, documents=case.manifests.documents(namespace))
    assert found is not None, "without a deadline there is always time"
    workload, views = found
    return await judge_views(workload, views, estimator=estimator, policy=policy)


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
        explain_table.print_judgements(judgements)
        return
    entries = [explanation_of(judgement) for judgement in judgements]
    if output is Output.JSON:
        print(orjson.dumps(entries, option=orjson.OPT_INDENT_2).decode())
    else:
        print(yaml.safe_dump(entries, sort_keys=False, allow_unicode=True), end="")


async def _with_workers(
    case: Case, policy: Policy, fetcher: _Fetcher | None
) -> tuple[Judgement, ...]:
    """Judge with worker processes; equal jobs are estimated once."""
    # A worker that fails becomes a finding here; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    workers = _Workers()
    try:
        return await explain(case, estimator=EstimatePool(workers), policy=policy, fetcher=fetcher)
    finally:
        await workers.close()


class _Workers:
    """Worker processes, imported and started once there is something to estimate."""

    def __init__(self) -> None:
        self._pool: pool.Workers | None = None

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, in order (see `Estimator`)."""
        return await self._started().estimate(job, devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return what would fit each device, in order (see `Estimator`)."""
        return await self._started().fit(spec, devices)

    async def close(self) -> None:
        """End what was started."""
        if self._pool is not None:
            await self._pool.close()

    def _started(self) -> pool.Workers:
        if self._pool is None:
            self._pool = pool.Workers()
        return self._pool


class _Fetcher:
    """The sources of the settings, or of none; imported once a document is wanted of them."""

    def __init__(self, settings: SourceSettings | None) -> None:
        self._settings = settings
        self._fetcher: Fetcher | None = None

    async def fetch(
        self, wanted: Sequence[str], *, namespace: str, seconds: float | None = None
    ) -> Documents:
        """Return a document for each of *wanted* (see `Fetching`)."""
        if not wanted:
            return {}
        if self._fetcher is None:
            settings = self._settings or configuration.SourceSettings()
            self._fetcher = setup.fetcher_of(settings, client=None)
        return await self._fetcher.fetch(wanted, namespace=namespace, seconds=seconds)


def _workload(manifest: Manifest, documents: Documents, kinds: Kinds) -> Workload:
    try:
        return read_workload(manifest.body, documents=documents, kinds=kinds)
    except AdmissionError as error:
        raise ManifestError(f"{manifest.source}: {error.message}", hint=error.hint) from error
