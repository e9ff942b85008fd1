"""`vramgate nodes`: the cards of a cluster as the webhook sees them, and where a job may go.

    nodes of a file or a cluster -> classes -> text, JSON or YAML; --why: classes, a job -> Openings

Nodes that went away in the last days count for the webhook and are not seen here.
Exit: 0 done, 2 usage or unreadable input, 3 an estimate failed, which is our fault.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from admission.capacity.classes import classes_of
from admission.commands.cases import Case, kinds_of, read_case, read_one, sources_of
from admission.commands.documents import Notation, Output, write_entries
from admission.commands.exits import FAULT
from admission.commands.nodes_why import UnitPlaces, WorkloadPlaces, places_of
from admission.commands.parts import LazyWorkers
from admission.commands.plugin import Context, Kubeconfig, Namespace, access_of
from admission.decision import budget_of
from admission.errors import ManifestError
from admission.estimates import EstimatePool
from admission.judge.rounds import Fetching
from admission.manifests import read_classes
from admission.message.findings import is_fault
from admission.values import NodeClass
from estimator.deferred import Deferred
from estimator.workers.api import Estimator

if TYPE_CHECKING:
    from admission import config as configuration
    from admission.commands import nodes_table
    from admission.config import Settings
    from admission.listing import Connection
else:
    configuration = Deferred("admission.config")
    nodes_table = Deferred("admission.commands.nodes_table")


def command(
    invocation: typer.Context,
    nodes: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The cluster's nodes: kubectl get nodes -o json."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
    why: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MANIFEST",
            help="Say of each class whether the job in it may go there, and why not. "
            "May be repeated.",
        ),
    ] = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to write the answer.")
    ] = Output.TEXT,
    config: Annotated[
        Path | None, typer.Option(help="The webhook's settings: `nodes.classes`, `nodes.pools`.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no Hub and no host, whatever the settings say.")
    ] = False,
) -> None:
    """Show the node classes that jobs are judged against."""
    settings = configuration.load_settings(config) if config is not None else None
    access = access_of(
        invocation.obj,
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        has_cards=nodes is not None,
    )
    if (nodes is None) == (access is None):
        raise ManifestError(
            "one of --nodes and --kubeconfig is needed: whose nodes should be shown?",
            hint="kubectl get nodes -o json > nodes.json, then --nodes nodes.json",
        )
    connection = access.connect() if access is not None else None
    if not why:
        _write_classes(read_nodes(nodes, connection, settings), output)
        return
    case = read_case(
        why,
        nodes=nodes,
        connection=connection,
        kinds=kinds_of(settings),
        node_settings=settings.nodes if settings is not None else None,
    )
    fetcher = sources_of(settings, connection, offline=offline)
    found = asyncio.run(_with_workers(case, fetcher))
    _write_places(found, output)
    raise typer.Exit(exit_status(found))


def read_nodes(
    nodes: str | None, connection: Connection | None, settings: Settings | None
) -> tuple[NodeClass, ...]:
    """Return the classes of the file *nodes*, or else of the cluster.

    Raises:
        ManifestError: if they cannot be had.
    """
    of_nodes = settings.nodes if settings is not None else None
    if connection is not None:
        return classes_of(connection.nodes(), of_nodes)
    return read_classes(nodes or "", stdin=sys.stdin, settings=of_nodes)


async def places(
    case: Case, *, estimator: Estimator, fetcher: Fetching | None = None
) -> tuple[WorkloadPlaces, ...]:
    """Return where the pods of each workload may go, in order."""

    async def one(index: int) -> WorkloadPlaces:
        manifest = case.manifests.workloads[index]
        workload, views = await read_one(manifest, case, fetcher=fetcher)
        return await places_of(workload, views, classes=case.classes, estimator=estimator)

    return tuple(await asyncio.gather(*map(one, range(len(case.workloads)))))


def exit_status(found: Sequence[WorkloadPlaces]) -> int:
    """Return 3 if an estimate failed, else 0."""
    findings = [each for workload in found for unit in workload.units for each in unit.findings]
    return FAULT if any(map(is_fault, findings)) else 0


async def _with_workers(case: Case, fetcher: Fetching | None) -> tuple[WorkloadPlaces, ...]:
    # A worker that fails becomes a finding here; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    workers = LazyWorkers()
    try:
        return await places(case, estimator=EstimatePool(workers), fetcher=fetcher)
    finally:
        await workers.close()


def class_document(node_class: NodeClass) -> dict[str, Any]:
    """Return a class as JSON types; `budgetBytes` or else `unknown`, the reason."""
    budget = budget_of(node_class)
    known = (
        {"budgetBytes": budget}
        if budget is not None
        else {"unknown": node_class.unknown_reason or "its memory is not known"}
    )
    return {
        "class": node_class.name,
        "product": node_class.product,
        "count": node_class.count,
        "gpusPerNode": node_class.gpus_per_node,
        "gpuResource": node_class.gpu_resource,
        "sharing": node_class.sharing,
        **known,
        "nodes": list(node_class.nodes),
    }


def places_document(found: WorkloadPlaces) -> dict[str, Any]:
    """Return where a workload may go as JSON types."""
    ref = found.workload.ref
    return {
        "workload": {
            "apiVersion": ref.api_version,
            "kind": ref.kind,
            "namespace": ref.namespace,
            "name": ref.name,
        },
        "units": [_unit_document(unit) for unit in found.units],
    }


def _unit_document(found: UnitPlaces) -> dict[str, Any]:
    unit = found.unit
    return {
        "role": unit.role,
        "template": unit.template,
        "container": unit.container,
        "gpus": unit.gpus,
        "podGpus": unit.pod_gpus,
        "gpuResource": unit.gpu_resource,
        "unknowns": [
            {"code": str(finding.code), "path": finding.path, "reason": finding.reason}
            for finding in found.findings
        ],
        "classes": [
            {
                "class": opening.node_class.name,
                "count": opening.node_class.count,
                "open": opening.num_open,
                "closed": [
                    {"count": len(closed.nodes), "nodes": list(closed.nodes), "why": closed.why}
                    for closed in opening.closed
                ],
                **opening.figures(),
            }
            for opening in found.openings
        ],
    }


def _write_classes(classes: Sequence[NodeClass], output: Output) -> None:
    if output is Output.TEXT:
        nodes_table.print_classes(classes)
    else:
        write_entries([class_document(each) for each in classes], Notation(output.value))


def _write_places(found: Sequence[WorkloadPlaces], output: Output) -> None:
    if output is Output.TEXT:
        nodes_table.print_places(found)
    else:
        write_entries([places_document(each) for each in found], Notation(output.value))
