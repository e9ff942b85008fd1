"""`vramgate nodes`: the cards of a cluster as the webhook sees them, and where a job may go.

    nodes of a file or a cluster -> classes -> text, JSON or YAML; --why: classes, a job -> Openings

Nodes that went away in the last days count for the webhook and are not seen here.
Exit: 0 done, 2 usage or unreadable input, 3 an estimate failed, which is our fault.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from admission.capacity.classes import classes_of
from admission.commands.cases import Case, kinds_of, read_case, read_one, sources_of
from admission.commands.documents import Notation, Output, write_entries
from admission.commands.exits import FAULT
from admission.commands.nodes_why import UnitPlaces, WorkloadPlaces, places_of
from admission.commands.options import (
    FILE,
    Word,
    context_option,
    kubeconfig_option,
    namespace_option,
    offline_option,
)
from admission.commands.plugin import access_of
from admission.decision import budget_of
from admission.errors import ManifestError
from admission.judge.rounds import Fetching
from admission.manifests import read_classes
from admission.message.findings import is_fault
from admission.values import NodeClass
from estimator.deferred import Deferred
from estimator.workers.api import Estimator

if TYPE_CHECKING:
    import asyncio

    from admission import config as configuration
    from admission.commands import asking, nodes_table
    from admission.config import Settings
    from admission.listing import Connection
else:
    asking = Deferred("admission.commands.asking")
    asyncio = Deferred("asyncio")
    configuration = Deferred("admission.config")
    nodes_table = Deferred("admission.commands.nodes_table")


@click.command()
@click.option("--nodes", metavar="FILE", help="The cluster's nodes: kubectl get nodes -o json.")
@kubeconfig_option
@context_option
@namespace_option
@click.option(
    "--why",
    multiple=True,
    metavar="MANIFEST",
    help="Say of each class whether the job in it may go there, and why not. May be repeated.",
)
@click.option(
    "--output", "-o", type=Word(Output), default=Output.TEXT.value, help="How to write the answer."
)
@click.option("--config", type=FILE, help="The webhook's settings: `nodes.classes`, `nodes.pools`.")
@offline_option
@click.pass_obj
def command(
    program: str,
    nodes: str | None,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    why: tuple[str, ...],
    output: Output,
    config: Path | None,
    offline: bool,
) -> None:
    """Show the node classes that jobs are judged against."""
    settings = configuration.load_settings(config) if config is not None else None
    access = access_of(
        program,
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
    found = asking.answered(lambda estimator: places(case, estimator=estimator, fetcher=fetcher))
    _write_places(found, output)
    sys.exit(exit_status(found))


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
