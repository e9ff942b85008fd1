"""Files and configurations that nobody writes by hand: a named reason, little work, no exception.

Most of these took minutes or gigabytes without their limits: they end, which is what is tested.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from admission.detect import read_unit
from admission.detect.budget import MAX_DOCUMENTS, MAX_MODELS
from admission.detect.lookup import Lookup
from admission.detect.model_files import read_model_file
from admission.detect.mounts import MAX_SOURCES
from admission.values import Document, Documents, Reading
from admission.workloads import read_workload
from tests.admission.detect.jobs import container, job, read, read_script, read_with_files

CLM = "run_clm.py --do_train --per_device_train_batch_size 2 --block_size 64 --model_name_or_path"


def reasons(reading: Reading) -> str:
    """Return why the job is not known, in one text."""
    return " ".join(finding.reason for finding in reading.unknowns)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a" + ".a" * 60_000 + " = 1", "dots"),
        ("[a" + ".a" * 60_000 + "]", "dots"),
        ("a = " + "9" * 5_000, "digits"),
        ("a = " + "[" * 100_000, "recursion"),
    ],
)
def test_toml_that_explodes_is_refused(text: str, reason: str) -> None:
    """Keys of many parts, whose beginnings `tomllib` all keeps, and numbers without end."""
    line = "torchrun train.py --job.config_file /c/a.toml"
    assert reason in reasons(read_with_files(line, a__toml=text))


@pytest.mark.parametrize(
    "config",
    [
        '{"model_type": "llama", "a": ' + '{"a": ' * 900 + "1" + "}" * 901,
        '{"model_type": "llama", "a": ' + "[" * 900 + "1" + "]" * 900 + "}",
    ],
)
def test_deep_configuration_of_a_model_is_refused(config: str) -> None:
    """JSON may nest a thousand deep, and Python's stack not."""
    reading = read(
        job(container(*f"python {CLM} org/x".split())),
        documents={"hf://org/x@main": Document(files={"config.json": config})},
    )
    assert "nested deeper" in reasons(reading)


def test_configurations_of_all_models_have_one_limit() -> None:
    """Thirty-two containers, each with a model of its own, take no more time than one."""
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
    whole["spec"] = {
        "containers": [container(*f"python {CLM} org/x{n}".split()) for n in range(32)]
    }
    config = json.dumps({"model_type": "llama", "a": "x" * (MAX_MODELS // 16)})
    documents: Documents = {
        f"hf://org/x{n}@main": Document(files={"config.json": config}) for n in range(32)
    }
    workload = read_workload(whole)
    assert len(workload.units) == 32
    for unit in workload.units:
        reading = read_unit(unit, workload=workload, documents=documents)
        assert "more text than is read" in reasons(reading)


def test_files_of_a_job_have_one_limit() -> None:
    """What is beyond it is not seen, and says so."""
    half = "x: " + "y" * (MAX_DOCUMENTS // 2)
    line = "accelerate launch --config_file /c/a.yaml run.py --config /c/b.yaml /c/c.yaml"
    reading = read_with_files("axolotl train /c/a.yaml", a__yaml=half + half)
    assert "more text than is read" in reasons(reading)
    assert read_with_files(line, a__yaml=half, b__yaml=half, c__yaml=half).spec is None


def mounted(volume: dict[str, Any], *argv: str, mounts: int = 1) -> dict[str, Any]:
    """Return a job with *volume* at `/c0`, `/c1`, …."""
    places = [{"name": "v", "mountPath": f"/c{number}"} for number in range(mounts)]
    whole = job(container(*argv, volumeMounts=places))
    whole["spec"]["template"]["spec"]["volumes"] = [{"name": "v", **volume}]
    return whole


def test_projected_volume_of_many_sources_is_read_in_part() -> None:
    """At each of many mounts, a hundred thousand sources would be ten million."""
    sources = [{"configMap": {"name": f"c{number}"}} for number in range(50_000)]
    reading = read(
        mounted({"projected": {"sources": sources}}, "axolotl", "train", "/c0/a.yaml", mounts=128)
    )
    assert len(reading.wanted) <= MAX_SOURCES


def test_items_of_a_volume_are_read_once() -> None:
    """However often it is mounted."""
    items = [{"key": f"k{number}", "path": f"p{number}"} for number in range(50_000)]
    volume = {"configMap": {"name": "c", "items": items}}
    reading = read(mounted(volume, "axolotl", "train", "/c7/p49999", mounts=128))
    assert reading.wanted == ("configmap/c",)


def test_file_is_found_in_a_later_source_of_a_volume() -> None:
    """A projected volume shows the files of all its sources in one folder."""
    sources = [{"configMap": {"name": "first"}}, {"configMap": {"name": "second"}}]
    documents = {
        "configmap/first": Document(files={"other": "x"}),
        "configmap/second": Document(files={"a.yaml": "base_model: gpt2\nmicro_batch_size: 3\n"}),
    }
    reading = read(
        mounted({"projected": {"sources": sources}}, "axolotl", "train", "/c0/a.yaml"),
        documents=documents,
    )
    assert reading.partial["input"]["batchSize"] == 3


def test_lost_line_ends_are_looked_for_in_a_line() -> None:
    """A text of one long name is walked once."""
    text = "distributed_type: " + "a" * 16_000
    line = f"accelerate launch --config_file /c/a.yaml {CLM} gpt2"
    assert read_with_files(line, a__yaml="[" + text).is_certain is False


def test_broken_archive_of_a_model_says_so() -> None:
    """A `.keras` file whose packed bytes were exchanged."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", "{}" * 500)
    content = bytearray(packed.getvalue())
    content[41:50] = b"\xff" * 9
    documents = {"configmap/m": Document(files={}, blobs={"a.keras": bytes(content)})}
    assert read_model_file("configmap/m/a.keras", Lookup(documents)).problem


@pytest.mark.parametrize(
    "before",
    [
        "sed -i 's/AdamW/SGD/' run_clm.py",
        "sed --in-place=.bak s/a/b/ /opt/site-packages/transformers/trainer.py",
        "perl -pi -e s/a/b/ run_clm.py",
        "patch -p1 < less.patch",
        "git apply less.patch",
        "cp small.py run_clm.py",
        "echo 'import small' >> run_clm.py",
        "cat > run_clm.py <<'E'\nprint(1)\nE",
    ],
)
def test_changed_code_denies_nobody(before: str) -> None:
    """An edit may be what makes the job fit."""
    assert read_script(f"python {CLM} gpt2").is_certain
    reading = read_script(f"{before}\npython {CLM} gpt2")
    assert reading.spec is not None
    assert not reading.is_certain


@pytest.mark.parametrize(
    "before",
    [
        "sed -i s/a/b/ config.yaml",
        "sed -n 1p run_clm.py",
        "cp /examples/run_clm.py .",
        "cp a.txt b.txt",
        "git clone https://github.com/huggingface/transformers",
    ],
)
def test_other_edits_leave_the_reading_certain(before: str) -> None:
    """What they touch is no code."""
    assert read_script(f"{before}\npython {CLM} gpt2").is_certain
