"""Files of manifests and nodes, as people have them."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.errors import ManifestError
from admission.manifests import (
    Manifest,
    Manifests,
    named_class,
    read_classes,
    read_manifests,
)
from admission.values import Document
from estimator.catalog import resolve_device
from tests.builders import node, pod

NO_STDIN = io.StringIO()


def job(name: str = "train") -> dict[str, Any]:
    """Return a Job with one GPU."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": pod()},
    }


CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c"},
    "data": {"a": "b"},
}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": []}}


def written(folder: Path, *documents: object, name: str = "m.yaml") -> str:
    """Write YAML documents to a file and return its path."""
    file = folder / name
    file.write_text(yaml.safe_dump_all(documents), "utf-8")
    return str(file)


def found(path: str, stdin: io.StringIO = NO_STDIN) -> list[str]:
    """Return the names of the workloads in *path*."""
    manifests = read_manifests([path], stdin=stdin)
    return [manifest.body["metadata"]["name"] for manifest in manifests.workloads]


def test_file_of_many_documents_gives_workloads_and_config_maps(tmp_path: Path) -> None:
    """Services and empty documents are left aside."""
    path = written(tmp_path, job(), None, SERVICE, CONFIG_MAP)

    manifests = read_manifests([path], stdin=NO_STDIN)

    assert manifests == Manifests(
        workloads=(Manifest(source=path, body=job()),), config_maps=(CONFIG_MAP,)
    )


def test_lists_are_opened(tmp_path: Path) -> None:
    """`kubectl get -o yaml` writes a List, even of lists; a JobList gives its items their kind."""
    bare = {key: value for key, value in job("b").items() if key not in ("apiVersion", "kind")}
    typed = {"apiVersion": "batch/v1", "kind": "JobList", "items": [bare]}
    path = written(tmp_path, {"apiVersion": "v1", "kind": "List", "items": [job("a"), typed]})

    assert found(path) == ["a", "b"]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"kind": "List", "items": 5}, "is a List, and its items are no list"),
        ({"kind": "JobList", "items": "a"}, "is a JobList, and its items are no list"),
        (
            {"kind": "List", "items": [{"kind": "List", "items": [5]}]},
            "is a List, and its items[0].items[0] is no Kubernetes object (no kind)",
        ),
        ({"kind": "List", "items": [{}]}, "is a List, and its items[0] is no Kubernetes object"),
    ],
)
def test_broken_list_is_named(tmp_path: Path, document: dict[str, Any], problem: str) -> None:
    """Whatever is in it would be left aside in silence."""
    path = written(tmp_path, SERVICE, document)

    with pytest.raises(ManifestError) as caught:
        read_manifests([path], stdin=NO_STDIN)

    assert caught.value.message.startswith(f"{path}: document 2 {problem}")


@pytest.mark.parametrize("document", [{"kind": "List"}, {"kind": "List", "items": None}])
def test_list_without_items_is_empty(tmp_path: Path, document: dict[str, Any]) -> None:
    """As kubectl takes it."""
    assert found(written(tmp_path, document)) == []


def test_anchors_are_accepted_as_kubectl_accepts_them(tmp_path: Path) -> None:
    """Hand-written manifests share environments and resources by alias and merge key."""
    file = tmp_path / "m.yaml"
    file.write_text(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, labels: &labels {app: x}}\n"
        "spec: {template: {metadata: {labels: {<<: *labels}}, spec: {containers: []}}}\n"
    )

    (manifest,) = read_manifests([str(file)], stdin=NO_STDIN).workloads

    assert manifest.body["spec"]["template"]["metadata"]["labels"] == {"app": "x"}


@pytest.mark.parametrize(
    "text",
    [
        "kind: Job\na: &a [1, 2]\n"
        + "".join(f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}]\n" for a, b in pairwise("abcdefghijklm")),
        "kind: Job\nspec: &a {containers: *a}\n",
        "kind: List\nitems: &a [{kind: List, items: *a}]\n",
        "kind: Job\na0: &a0 []\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}]\n" for i in range(300)),
    ],
    ids=["laughs", "loop", "loop-of-lists", "ladder"],
)
def test_aliases_that_expand_too_far_are_refused(tmp_path: Path, text: str) -> None:
    """A short text cannot make us walk for ever."""
    file = tmp_path / "m.yaml"
    file.write_text(text)

    with pytest.raises(ManifestError, match="document 1 repeats itself too often"):
        read_manifests([str(file)], stdin=NO_STDIN)


def test_long_file_without_aliases_is_read(tmp_path: Path) -> None:
    """A node list of a large cluster has more values than aliases may repeat."""
    many = {"kind": "List", "items": [job("a") | {"data": [0] * 250_000}]}
    file = tmp_path / "m.json"
    file.write_text(json.dumps(many), "utf-8")

    assert found(str(file)) == ["a"]


def test_config_maps_are_documents_of_their_namespace() -> None:
    """A job reads those beside it: of its namespace, or of none like the job itself."""
    here, there = (
        CONFIG_MAP | {"metadata": {"name": name, "namespace": name}} for name in ("here", "there")
    )
    manifests = Manifests(workloads=(), config_maps=(CONFIG_MAP, here, there))

    document = Document(files={"a": "b"})
    assert manifests.documents("here") == {"configmap/c": document, "configmap/here": document}


@pytest.mark.parametrize(
    ("kind", "reference"),
    [
        ("ClusterTrainingRuntime", "clustertrainingruntime/r"),
        ("TrainingRuntime", "trainingruntime/r"),
        ("WorkflowTemplate", "workflowtemplate/r"),
        ("ResourceClaimTemplate", "resourceclaimtemplate/r"),
    ],
)
def test_objects_that_others_refer_to_are_documents(
    tmp_path: Path, kind: str, reference: str
) -> None:
    """As JSON, for the jobs of their namespace."""
    body = {"kind": kind, "metadata": {"name": "r", "namespace": "team"}, "spec": {}}
    path = written(tmp_path, job(), body)

    manifests = read_manifests([path], stdin=NO_STDIN)

    assert json.loads(manifests.documents("team")[reference].files[""]) == body
    assert reference not in manifests.documents("other")


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("argoproj.io/v1alpha1", "Workflow", {"templates": [{"container": {}}]}),
        ("kaito.sh/v1beta1", "Workspace", None),
        ("ray.io/v1", "RayJob", {}),
        ("example.com/v1", "Unheard", {"pods": [{"containers": []}]}),
    ],
)
def test_what_leads_to_pods_is_a_workload(
    tmp_path: Path, api_version: str, kind: str, spec: object
) -> None:
    """A kind that is read, whatever is in it, or anything that has containers."""
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}

    assert found(written(tmp_path, body)) == ["x"]


def test_folder_is_read_in_the_order_of_its_files(tmp_path: Path) -> None:
    """Only YAML and JSON files, one level deep."""
    written(tmp_path, job("b"), name="2.yml")
    (tmp_path / "1.json").write_text(json.dumps(job("a")), "utf-8")
    (tmp_path / "README.md").write_text("# not a manifest", "utf-8")
    (tmp_path / "deeper").mkdir()
    written(tmp_path / "deeper", job("c"))

    assert found(str(tmp_path)) == ["a", "b"]


def test_dash_is_standard_input() -> None:
    """`kustomize build | vramgate explain -`."""
    assert found("-", io.StringIO(yaml.safe_dump(job("piped")))) == ["piped"]


def test_workload_without_pods_of_its_own_is_kept(tmp_path: Path) -> None:
    """A TrainJob's pods are in its runtime: it gets a verdict of its own."""
    train = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}

    path = written(tmp_path, train | {"metadata": {"name": "t"}, "spec": {}})

    assert found(path) == ["t"]


def test_every_unreadable_file_is_reported_at_once(tmp_path: Path) -> None:
    """One run says all that is wrong, each with its file."""
    (tmp_path / "t.yaml").write_text("a: {{ .Values.b }}: c", "utf-8")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "n.yaml").write_text("- 1\n", "utf-8")
    (tmp_path / "empty").mkdir()
    paths = [str(tmp_path / name) for name in ("t.yaml", "b.yaml", "n.yaml", "gone", "empty")]

    with pytest.raises(ManifestError) as caught:
        read_manifests(paths, stdin=NO_STDIN)

    template, binary, plain, gone, empty = caught.value.message.splitlines()
    assert template.startswith(f"{paths[0]}: not YAML or JSON: ")
    assert template.endswith("; templates must be rendered first")
    assert binary == f"{paths[1]}: not text in UTF-8"
    assert plain == f"{paths[2]}: document 1 is no Kubernetes object (no kind)"
    assert gone == f"{paths[3]}: no such file or directory"
    assert empty == f"{paths[4]}: no .yaml, .yml, .json in this folder"


def test_node_list_gives_classes(tmp_path: Path) -> None:
    """`kubectl get nodes -o json`."""
    file = tmp_path / "nodes.json"
    listed = {"apiVersion": "v1", "kind": "List", "items": [node("n0"), node("n1")]}
    file.write_text(json.dumps(listed), "utf-8")

    (only,) = read_classes(str(file), stdin=NO_STDIN)

    assert (only.name, only.count) == ("Tesla-T4", 2)


def test_file_without_nodes_is_refused(tmp_path: Path) -> None:
    """Manifests given as nodes by mistake would make every job `unknown`."""
    path = written(tmp_path, job())

    with pytest.raises(ManifestError, match="no Node in it"):
        read_classes(path, stdin=NO_STDIN)


def test_named_card_is_a_class_without_nodes() -> None:
    """`--gpu t4` is the catalog's card, open to every pod."""
    where = named_class("t4")

    assert (where.device, where.members, where.count) == (resolve_device("t4"), (), 0)


def test_card_the_catalog_does_not_know_is_refused_with_the_closest() -> None:
    """The catalog's own message and hint, at the name of the option."""
    with pytest.raises(
        ManifestError, match=r"^--gpu: 'a100-sxm4-41gb' is not a known card"
    ) as caught:
        named_class("a100-sxm4-41gb")

    assert "a100-sxm4-40gb" in (caught.value.hint or "")
