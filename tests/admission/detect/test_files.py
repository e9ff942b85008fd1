"""Which files of a container can be seen, and why the others cannot."""

from __future__ import annotations

from typing import Any

import pytest

from admission.detect.configs import document_flags, read_config
from admission.detect.files import File, Files
from admission.detect.lookup import Lookup
from admission.values import Document, Program
from tests.admission.detect.jobs import config_map

TUNE = config_map("tune", train__yaml="a: 1", other__yaml="b: 2")


def files(mounts: list[dict[str, Any]], volumes: list[dict[str, Any]], **documents: Any) -> Files:
    """Return the files of a container with *mounts* of *volumes*."""
    program = Program(
        container={"volumeMounts": mounts},
        path="spec.containers[0]",
        pod={"volumes": volumes},
    )
    return Files(program, Lookup({**TUNE, **documents}))


def mount(path: str, name: str = "v", **more: Any) -> dict[str, Any]:
    """Return a volume mount."""
    return {"name": name, "mountPath": path, **more}


def volume(name: str = "v", **source: Any) -> dict[str, Any]:
    """Return a volume."""
    return {"name": name, **source}


WHOLE = volume(configMap={"name": "tune"})
ITEMS = volume(configMap={"name": "tune", "items": [{"key": "train.yaml", "path": "x/t.yml"}]})
PROJECTED = volume(
    projected={"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "tune"}}]}
)


@pytest.mark.parametrize(
    ("mounts", "volumes", "path", "directory", "text"),
    [
        ([mount("/c")], [WHOLE], "/c/train.yaml", "", "a: 1"),
        ([mount("/c/")], [WHOLE], "/c/train.yaml", "", "a: 1"),
        ([mount("/c")], [WHOLE], "train.yaml", "/c", "a: 1"),
        ([mount("/c")], [WHOLE], "../c/./train.yaml", "/work", "a: 1"),
        ([mount("/w/c")], [WHOLE], "c/train.yaml", "", "a: 1"),
        ([mount("/c")], [ITEMS], "/c/x/t.yml", "", "a: 1"),
        ([mount("/c/t.yaml", subPath="train.yaml")], [WHOLE], "/c/t.yaml", "", "a: 1"),
        ([mount("/c/t.yaml", subPath="x/t.yml")], [ITEMS], "/c/t.yaml", "", "a: 1"),
        (
            [mount("/a"), mount("/a/b", "w")],
            [volume(emptyDir={}), volume("w", configMap={"name": "tune"})],
            "/a/b/train.yaml",
            "",
            "a: 1",
        ),
    ],
)
def test_files_of_config_maps(
    mounts: list[dict[str, Any]],
    volumes: list[dict[str, Any]],
    path: str,
    directory: str,
    text: str,
) -> None:
    """By the mount's path, items, sub-path and the directory the program runs in."""
    found = files(mounts, volumes).read(path, directory=directory)

    assert (found.text, found.source) == (text, "configmap tune/train.yaml")


@pytest.mark.parametrize(
    ("mounts", "volumes", "path", "problem"),
    [
        ([], [], "/c/train.yaml", "inside the image"),
        ([], [], "train.yaml", "inside the image"),
        ([mount("/c")], [volume(secret={"secretName": "s"})], "/c/x", "Secret, which is never"),
        ([mount("/c")], [volume(emptyDir={})], "/c/x", "only the container sees"),
        ([mount("/c")], [volume(persistentVolumeClaim={"claimName": "p"})], "/c/x", "only the"),
        ([mount("/c")], [WHOLE], "/c/none.yaml", "no key of the ConfigMap tune"),
        ([mount("/c")], [ITEMS], "/c/train.yaml", "no file of the ConfigMap tune"),
        ([mount("/c")], [volume(configMap={"name": "gone"})], "/c/x", "gone, which is not there"),
    ],
)
def test_files_that_are_not_seen_say_why(
    mounts: list[dict[str, Any]], volumes: list[dict[str, Any]], path: str, problem: str
) -> None:
    """The image, other volumes, Secrets, ConfigMaps that lack the file or are not there."""
    gone = {"configmap/gone": Document(problem="is not there")}
    found = files(mounts, volumes, **gone).read(path, directory="")

    assert found.text is None
    assert problem in found.problem


def test_a_config_map_that_was_not_fetched_is_wanted() -> None:
    """The reading is repeated once it is there."""
    lookup = Lookup()
    program = Program(container={"volumeMounts": [mount("/c")]}, path="c", pod={"volumes": [WHOLE]})
    found = Files(program, lookup).read("/c/train.yaml", directory="")

    assert found.is_awaited
    assert lookup.wanted == ("configmap/tune",)


def test_what_the_script_writes_is_seen_first() -> None:
    """A file it writes over a mount is its own."""
    seen = files([mount("/c")], [WHOLE])
    seen.write("train.yaml", "a: 9", directory="/c")
    seen.write("/tmp/open.yaml", None, directory="")

    assert seen.read("/c/train.yaml", directory="").text == "a: 9"
    assert "not all of it resolved" in seen.read("/tmp/open.yaml", directory="").problem


def test_a_configuration_is_flags() -> None:
    """Nested keys are joined by dots; null, lists and numbers are words like any others."""
    config = read_config(
        File(path="x.yaml", text="a: {b-c: 1, d: null}\nl: [x, y]\nm: [{n: 2.5}]\ne: true\nz: {}\n")
    )
    flags = document_flags(config.document, told_by="configmap tune/x.yaml", path="p")

    given = {flag.name: [word.text for word in flag.values] for flag in flags.given}
    assert given == {
        "a.b_c": ["1"],
        "a.d": ["null"],
        "l": ["x", "y"],
        "m.0.n": ["2.5"],
        "e": ["true"],
    }
    assert flags.given[0].source == "configmap tune/x.yaml a.b-c"


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("x.yaml", "a: [", "cannot be read"),
        ("x.json", '{"a": 1,}x', "cannot be read"),
        ("x.toml", "a = ", "cannot be read"),
        ("x.yaml", "- a", "no mapping"),
        ("x.yaml", "a: 1\n---\nb: 2", "no mapping"),
        ("x.yaml", "a: " + "x" * 300_000, "longer than"),
        ("x.yaml", "[" * 5_000, "cannot be read"),
    ],
)
def test_configurations_that_are_none(path: str, text: str, problem: str) -> None:
    """Each with the reason, whatever is in it."""
    assert problem in read_config(File(path=path, text=text)).problem
