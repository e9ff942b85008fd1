"""What a command judges: the workloads of files, and the cards of files or of a cluster.

files, a cluster -> Case; Manifest, Case -> Workload, Views
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from admission.commands.explain_rules import NO_RULES, Rules, Ruling, namespace_of
from admission.commands.explain_steer import bare
from admission.commands.parts import LazySources
from admission.errors import AdmissionError, ManifestError
from admission.judge.rounds import Fetching, in_rounds, wanted_by
from admission.judge.views import Views, read_views
from admission.manifests import Manifest, Manifests, named_class, read_classes, read_manifests
from admission.sources.references import is_remote
from admission.values import NO_DOCUMENTS, Document, Documents, NodeClass, Workload
from admission.workloads import KINDS, read_workload
from admission.workloads.custom import with_custom
from admission.workloads.kind import Kinds
from estimator.deferred import Deferred

if TYPE_CHECKING:
    from admission.capacity import classes as node_classes
    from admission.config import Settings
    from admission.listing import Connection
    from admission.node_settings import NodeSettings
else:
    node_classes = Deferred("admission.capacity.classes")

_NOT_HERE = "is not among the manifests"
_OFFLINE = "is not asked for: offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is to be judged, and against which cards."""

    workloads: tuple[Workload, ...]
    manifests: Manifests
    classes: tuple[NodeClass, ...]
    kinds: Kinds = field(default_factory=lambda: KINDS)
    has_cluster: bool = False
    """Whether objects that are not among the manifests may be asked for."""
    namespace: str = ""
    """Where objects belong that name none."""
    rules: Rules = NO_RULES
    """What is known of the install's."""

    def ruling(self, manifest: Manifest) -> Ruling:
        """Return how far the webhook would go with the job of *manifest*."""
        return self.rules.of(manifest, namespace=self.namespace_of(manifest))

    def namespace_of(self, manifest: Manifest) -> str:
        """Return the namespace that the job of *manifest* belongs to; empty if nobody says."""
        return namespace_of(manifest, self.namespace)


def read_case(
    paths: Sequence[str],
    *,
    nodes: str | None = None,
    gpu: str | None = None,
    connection: Connection | None = None,
    kinds: Kinds = KINDS,
    node_settings: NodeSettings | None = None,
) -> Case:
    """Return what the arguments name. Objects of *connection* may be asked for, too.

    Raises:
        ManifestError: if the cards are not given, something cannot be read, or nothing is there.
    """
    if sum(given is not None for given in (nodes, gpu, connection)) != 1:
        raise ManifestError(
            "one of --nodes, --gpu and --kubeconfig is needed: against which cards should it be "
            "judged?",
            hint="kubectl get nodes -o json > nodes.json, then --nodes nodes.json",
        )
    manifests = read_manifests(paths, stdin=sys.stdin)
    workloads = tuple(_workload(manifest, NO_DOCUMENTS, kinds) for manifest in manifests.workloads)
    if not workloads:
        raise ManifestError("no workload in these manifests: nothing in them runs containers")
    if connection is not None:
        classes = node_classes.classes_of(connection.nodes(), node_settings)
    elif nodes is not None:
        classes = read_classes(nodes, stdin=sys.stdin, settings=node_settings)
    else:
        classes = (named_class(gpu or ""),)
    return Case(
        workloads=workloads,
        manifests=manifests,
        classes=classes,
        kinds=kinds,
        has_cluster=connection is not None,
        namespace=connection.namespace if connection is not None else "",
    )


def read_alone(manifest: Manifest, case: Case) -> tuple[Workload, Views] | None:
    """Return the workload of *manifest*; None if it refers to what is not among the manifests."""
    manifest, documents = _opened(manifest, case)
    workload, views = _read(manifest, documents, case)
    is_whole = all(name in documents for name in wanted_by(workload, views))
    return (workload, views) if is_whole else None


async def read_one(
    manifest: Manifest, case: Case, *, fetcher: Fetching | None
) -> tuple[Workload, Views]:
    """Return the workload of *manifest* as it was understood, with what it refers to."""
    manifest, documents = _opened(manifest, case)

    async def read(documents: Documents) -> tuple[Workload, Views]:
        return _read(manifest, documents, case)

    async def fetch(wanted: tuple[str, ...], namespace: str) -> Documents:
        is_here = {name: not is_remote(name) and not case.has_cluster for name in wanted}
        here = {name: Document(problem=_NOT_HERE) for name in wanted if is_here[name]}
        others = [name for name in wanted if name not in here]
        if fetcher is None:
            return {**here, **{name: Document(problem=_OFFLINE) for name in others}}
        return {**here, **await fetcher.fetch(others, namespace=namespace or case.namespace)}

    found = await in_rounds(read, fetch, documents=documents)
    assert found is not None, "without a deadline there is always time"
    return found


def _opened(manifest: Manifest, case: Case) -> tuple[Manifest, Documents]:
    """Return *manifest* as a person wrote it, and the documents beside it."""
    first = _workload(manifest, NO_DOCUMENTS, case.kinds)
    if not first.controlled:
        manifest = replace(manifest, body=bare(manifest.body))
    return manifest, case.manifests.documents(first.ref.namespace or case.namespace)


def _read(manifest: Manifest, documents: Documents, case: Case) -> tuple[Workload, Views]:
    workload = _workload(manifest, documents, case.kinds)
    return workload, read_views(workload, classes=case.classes, documents=documents)


def kinds_of(settings: Settings | None) -> Kinds:
    """Return the kinds that are read: those of the settings too."""
    return with_custom(KINDS, settings.workloads.kinds) if settings is not None else KINDS


def sources_of(
    settings: Settings | None, connection: Connection | None, *, offline: bool
) -> LazySources | None:
    """Return who has the documents that jobs refer to; None if nobody is asked."""
    if offline and connection is None:
        return None
    return LazySources(
        settings.sources if settings is not None else None,
        client=connection.client if connection is not None else None,
        offline=offline,
    )


def _workload(manifest: Manifest, documents: Documents, kinds: Kinds) -> Workload:
    try:
        return read_workload(manifest.body, documents=documents, kinds=kinds)
    except AdmissionError as error:
        raise ManifestError(f"{manifest.source}: {error.message}", hint=error.hint) from error
