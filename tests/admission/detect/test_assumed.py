"""A shell's default for a variable that the image may set is a doubt, never a certainty."""

from __future__ import annotations

import pytest

from tests.admission.detect.jobs import config_map, container, found, job, read, read_script

BATCH = "input.batchSize"
OWN = "registry.example.com/vision:3"


@pytest.mark.parametrize(
    "script",
    [
        "python /imagenet/main.py -a resnet18 -b ${B:-32}",
        "python /imagenet/main.py -a resnet18 --batch-size=${B-32}",
        "B=${B:-32}; python /imagenet/main.py -a resnet18 -b $B",
        'export B=${B:-32}\nARGS="-b $B"\npython /imagenet/main.py -a resnet18 $ARGS',
        ": ${B:=32}; python /imagenet/main.py -a resnet18 -b $B",
        "torchrun --nproc_per_node=${N:-1} /imagenet/main.py -a resnet18 -b ${B:-32}",
    ],
)
def test_the_image_may_set_it(script: str) -> None:
    """The value is read, nobody is refused on it, and the way out is named."""
    reading = read_script(script, image=OWN)

    assert found(reading, BATCH) == {BATCH: 32}
    assert not reading.is_certain
    assert any("$B" in warning and "image may set" in warning for warning in reading.warnings)


def test_one_that_changes_no_memory_is_no_doubt() -> None:
    """Folders and ports have defaults in every script."""
    reading = read_script(
        "python /imagenet/main.py -a resnet18 -b 32 --epochs ${E:-90} ${DATA:-/data}", image=OWN
    )

    assert reading.is_certain


@pytest.mark.parametrize(
    "image",
    [
        "pytorch/pytorch:2.4.1-cuda12.1-cudnn9-runtime",
        "docker.io/pytorch/pytorch@sha256:abc",
        "nvcr.io/nvidia/pytorch:24.07-py3",
        "python:3.11",
    ],
)
def test_a_published_image_sets_none(image: str) -> None:
    """A framework's own image has no variables of somebody's script."""
    reading = read_script("python /imagenet/main.py -a resnet18 -b ${B:-32}", image=image)

    assert reading.is_certain


@pytest.mark.parametrize("image", ["registry.example.com/pytorch/pytorch:2.4", "pytorch/pytorchy"])
def test_a_name_like_it_is_none(image: str) -> None:
    """Anybody may push under another registry's `pytorch/pytorch`."""
    reading = read_script("python /imagenet/main.py -a resnet18 -b ${B:-32}", image=image)

    assert reading.is_certain is (image == "pytorch/pytorchy")


def test_one_that_the_object_sets_is_certain() -> None:
    """Its env counts, and so does a ConfigMap's."""
    script = "python /imagenet/main.py -a resnet18 -b ${B:-32}"
    body = container("bash", "-c", script, image=OWN)
    body["envFrom"] = [{"configMapRef": {"name": "sizes"}}]

    assert read_script(script, image=OWN, env={"B": "16"}).is_certain
    reading = read(job(body), documents=config_map("sizes", B="16"))
    assert found(reading, BATCH) == {BATCH: 16}
    assert reading.is_certain
