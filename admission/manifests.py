"""Read the files given to `explain`.

    files, folders, `-` -> Manifests; a file of Node objects -> node classes

Never asks a cluster. Lists are opened; whatever holds no pods is left aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import orjson

from admission.capacity.named import declared_class
from admission.errors import ManifestError
from admission.values import Document, Documents, Json, NodeClass
from admission.workloads import kind_of
from admission.workloads.config_maps import config_map_document
from admission.workloads.fields import mapping, text
from estimator.catalog import resolve_device
from estimator.deferred import Deferred
from estimator.documents import MAX_BYTES, read_documents
from estimator.errors import SpecError

if TYPE_CHECKING:
    from admission.capacity import classes as node_classes
    from admission.node_settings import NodeSettings
else:
    node_classes = Deferred("admission.capacity.classes")

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
MAX_DEPTH = 40
MAX_NESTED = 200
MAX_REPEATED = 200_000
"""Values that YAML aliases may repeat in one document: they can make a short text endless."""
JOBSPEC_KIND = "JobSpec"

_DOCUMENTS = frozenset(
    {
        "ClusterTrainingRuntime",
        "TrainingRuntime",
        "ClusterWorkflowTemplate",
        "WorkflowTemplate",
        "ResourceClaim",
        "ResourceClaimTemplate",
    }
)
"""Objects that others refer to, as `<kind in lower case>/NAME`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One object and the file it was read from."""

    source: str
    body: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """What was found in the files: objects that run pods, and what they may refer to."""

    workloads: tuple[Manifest, ...]
    config_maps: tuple[Json, ...]
    others: tuple[Json, ...] = ()
    """Runtimes, workflow templates and resource claims."""

    def documents(self, namespace: str) -> Documents:
        """Return the ConfigMaps in *namespace* as `configmap/NAME`, the others by their kind.

        An object without a namespace goes where its neighbours go, so it counts for all of them.
        """
        found: dict[str, Document] = {}
        for body in (*self.config_maps, *self.others):
            metadata = mapping(body.get("metadata"), "metadata")
            name = text(metadata.get("name"), "metadata.name")
            own = text(metadata.get("namespace"), "metadata.namespace")
            if own and namespace and own != namespace:
                continue
            found[f"{str(body['kind']).lower()}/{name}"] = _document_of(body)
        return found


def _document_of(body: Json) -> Document:
    """Return a ConfigMap's data, or another object as JSON under the empty name."""
    if body["kind"] == "ConfigMap":
        return config_map_document(body)
    try:
        # YAML has dates and numbers of any length, which no reader of an object looks for.
        whole = orjson.dumps(body, default=str, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, orjson.JSONEncodeError):
        return Document(problem="cannot be written as JSON")
    return Document(files={"": whole.decode()})


def read_manifests(paths: Sequence[str], *, stdin: TextIO) -> Manifests:
    """Return what the files hold, in order. A folder is read one level deep.

    Raises:
        ManifestError: naming every file or document that cannot be read.
    """
    problems: list[str] = []
    found: list[Manifest] = []
    for path in paths:
        for source, content in _texts(path, stdin=stdin, problems=problems):
            found += _objects(source, content, problems)
    if problems:
        raise ManifestError("\n".join(problems))
    config_maps = tuple(item.body for item in found if item.body.get("kind") == "ConfigMap")
    others = tuple(item.body for item in found if item.body.get("kind") in _DOCUMENTS)
    workloads = tuple(item for item in found if _runs_pods(item.body))
    return Manifests(workloads=workloads, config_maps=config_maps, others=others)


def read_classes(
    path: str, *, stdin: TextIO, settings: NodeSettings | None = None
) -> tuple[NodeClass, ...]:
    """Return the node classes of a file of Node objects (`kubectl get nodes -o json` or yaml).

    *settings* add pools that could still appear, and say what labels do not.

    Raises:
        ManifestError: if it cannot be read or holds no Node.
    """
    problems: list[str] = []
    nodes = [
        manifest.body
        for source, content in _texts(path, stdin=stdin, problems=problems)
        for manifest in _objects(source, content, problems)
        if manifest.body.get("kind") == "Node"
    ]
    if problems:
        raise ManifestError("\n".join(problems))
    if not nodes:
        raise ManifestError(
            f"{path}: no Node in it", hint="write it with `kubectl get nodes -o json`"
        )
    return node_classes.classes_of(nodes, settings)


def named_class(gpu: str) -> NodeClass:
    """Return the class of the card called *gpu*.

    Raises:
        ManifestError: if the catalog does not know it.
    """
    try:
        return declared_class(resolve_device(gpu))
    except SpecError as error:
        raise ManifestError(f"--gpu: {error.message.removeprefix('gpu: ')}", hint=error.hint) from (
            error
        )


def _texts(path: str, *, stdin: TextIO, problems: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts at *path* with their names; what cannot be read is a problem."""
    if path == STDIN:
        yield "stdin", stdin.read(MAX_BYTES + 1)
        return
    for file in _files(Path(path), problems):
        try:
            if file.stat().st_size > MAX_BYTES:
                problems.append(f"{file}: longer than {MAX_BYTES} bytes")
                continue
            yield str(file), file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{file}: {_reason(error)}")


def _files(path: Path, problems: list[str]) -> tuple[Path, ...]:
    if not path.is_dir():
        return (path,)
    files = tuple(sorted(file for file in path.iterdir() if file.suffix in SUFFIXES))
    if not files:
        problems.append(f"{path}: no {', '.join(SUFFIXES)} in this folder")
    return files


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, OSError):
        return (error.strerror or "cannot be read").lower()
    return "not text in UTF-8"


def _objects(source: str, content: str, problems: list[str]) -> list[Manifest]:
    """Return the objects in *content*, lists opened."""
    found: list[Manifest] = []
    try:
        documents = read_documents(content, path=source, aliases=True)
        for number, document in enumerate(documents, start=1):
            if document is None:
                continue
            try:
                found += (Manifest(source=source, body=body) for body in _document(document))
            except ManifestError as error:
                problems.append(f"{source}: document {number} {error.message}")
    except SpecError as error:
        problems.append(f"{error.message}; templates must be rendered first")
    return found


def _document(document: object) -> tuple[Json, ...]:
    """Return the objects in one document.

    Raises:
        ManifestError: a predicate that completes `document 1 …`, if it holds anything else.
    """
    if not _is_bounded(document):
        raise ManifestError("repeats itself too often: its YAML aliases expand too far")
    if is_job_spec(document):
        raise ManifestError("is a JobSpec: use `vramgate estimate`")
    if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
        raise ManifestError("is no Kubernetes object (no kind)")
    return tuple(_opened(document, ""))


def is_job_spec(document: object) -> bool:
    """Return whether *document* is a JobSpec, which may leave out its kind."""
    if not isinstance(document, Mapping):
        return False
    kind = document.get("kind")
    return kind == JOBSPEC_KIND or (kind is None and {"framework", "model"} <= document.keys())


def is_manifest(document: object) -> bool:
    """Return whether *document* is a Kubernetes object."""
    if not isinstance(document, Mapping) or is_job_spec(document):
        return False
    return isinstance(document.get("kind"), str) and "apiVersion" in document


def _is_bounded(document: object) -> bool:
    """Return whether what YAML aliases repeat in *document* can be walked like any other text.

    Without an alias no list or mapping is met twice, and the length of the file is bound enough.
    """
    met: set[int] = set()
    repeated = 0
    waiting: list[tuple[object, int, bool]] = [(document, 0, False)]
    while waiting:
        value, depth, is_again = waiting.pop()
        if not isinstance(value, Mapping | list):
            continue
        is_again = is_again or id(value) in met
        met.add(id(value))
        repeated += len(value) if is_again else 0
        if repeated > MAX_REPEATED or depth > MAX_NESTED:
            return False
        waiting += [(child, depth + 1, is_again) for child in _children([value])]
    return True


def _opened(document: Json, path: str) -> Iterator[Json]:
    """Yield *document*, or the items of a list; items of a typed list get their kind from it."""
    kind, items = document["kind"], document.get("items")
    is_list = kind.endswith("List") and ("items" in document or kind == "List")
    if not is_list:
        yield document
        return
    if not isinstance(items, list | None):
        raise ManifestError(f"is a {kind}, and its {path}items are no list")
    implied = kind.removesuffix("List")
    inherited = {"apiVersion": document.get("apiVersion"), "kind": implied} if implied else {}
    for index, item in enumerate(items or ()):
        where = f"{path}items[{index}]"
        body = {**inherited, **item} if isinstance(item, Mapping) else {}
        if not isinstance(body.get("kind"), str):
            raise ManifestError(f"is a {kind}, and its {where} is no Kubernetes object (no kind)")
        yield from _opened(body, f"{where}.")


def _runs_pods(body: Json) -> bool:
    """Return whether an object leads to pods: its kind is known, or it has containers somewhere."""
    if kind_of(body) is not None:
        return True
    return body.get("kind") not in ("ConfigMap", "Node") and _has_containers(body.get("spec"))


def _has_containers(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        if any(isinstance(item, Mapping) and "containers" in item for item in level):
            return True
        level = list(_children(level))
    return False


def _children(level: Iterable[object]) -> Iterator[object]:
    for item in level:
        if isinstance(item, Mapping):
            yield from item.values()
        elif isinstance(item, list):
            yield from item
