"""Texts that anybody who may write an object may write: annotations, the learned ConfigMap, claims.

bytes -> annotations, ConfigMaps, amounts, references -> what is read of them
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import orjson

from admission.capacity.registration import ANNOTATIONS, registration_of
from admission.controller.kueue.moving import LED, MOVES, led_terms, moves_of
from admission.controller.moving import MOVING as MOVING_NOTE
from admission.controller.moving import moving_of
from admission.controller.pods import moment
from admission.errors import RequestError
from admission.exemption import moment_of, moment_text
from admission.learning import residuals_text
from admission.learning.corrections import corrections_of
from admission.learning.deaths import read_deaths, text_of, with_death
from admission.learning.floors import Learnt
from admission.learning.lesson import LEARNT, RETRY, lesson_of
from admission.peaks import MAX_BYTES, read
from admission.plaintext import plain
from admission.sources.references import ReferenceProblem, parse_reference
from admission.steer.terms import RECORD, recorded
from admission.values import Document, Workload
from admission.workloads import read_workload
from admission.workloads.claim_shares import claim_share
from admission.workloads.claims import gpu_claims
from admission.workloads.config_maps import config_map_document
from admission.workloads.fields import part
from admission.workloads.quantities import MOST, whole_quantity
from estimator.result import Estimate
from tests.builders import estimate
from tests.fuzz.choices import Choices
from tests.fuzz.hostile import TEXTS
from tests.fuzz.objects import documents
from tests.fuzz.rules import check_line
from tests.fuzz.shaping import as_json, mutated
from tests.fuzz.target import Broken, Target

_NAMES = (RETRY, LEARNT, RECORD, LED, MOVES, MOVING_NOTE)
NOW = datetime(2030, 1, 1, tzinfo=UTC)
FLOOR = {"floorBytes": 1 << 34, "gaveBytes": 1 << 33, "card": "Tesla-T4", "when": "2029-12-31"}
DEATHS = {
    "version": 1,
    "deaths": [
        {
            "namespace": "team",
            "names": ["Job.batch/train"],
            "container": "train",
            "fingerprint": "a.b.c.d",
            **FLOOR,
        }
    ],
}
RESIDUALS = {
    "version": 1,
    "groups": {
        "pytorch/trace/Tesla-T4/2.13": [[f"n{n}", f"s{n}", 1.0 + n / 50, 20_000] for n in range(9)]
    },
}
MOVING = {"step": "wanted", "cause": "late", "since": "2030-01-01T00:00:00+00:00", "count": 1}
CLAIM = {
    "spec": {
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {
                            "deviceClassName": "gpu.nvidia.com",
                            "count": 2,
                            "capacity": {"requests": {"memory": "10Gi"}},
                            "selectors": [
                                {
                                    "cel": {
                                        "expression": "device.attributes['gpu.nvidia.com']"
                                        ".profile == '1g.10gb'"
                                    }
                                }
                            ],
                        },
                    }
                ]
            }
        }
    }
}


def _run_notes(data: bytes) -> None:
    """Read every annotation of ours from one text."""
    text = data.decode("utf-8", "replace")
    annotations = dict.fromkeys(_NAMES, text)
    for nbytes in read(text).values():
        if not 0 < nbytes < MAX_BYTES:
            raise Broken("a peak beyond any card")
    lesson = lesson_of({**annotations, RETRY: "123"})
    if lesson is not None:
        orjson.dumps(lesson.annotations())
    recorded({"annotations": {RECORD: text}})
    led_terms({"metadata": {"annotations": annotations}})
    moves_of({"metadata": {"annotations": annotations}})
    moving = moving_of(annotations)
    if moving is not None:
        moving.text()
    until = moment_of(text)
    if until is not None:
        moment_text(until)
    at = moment(text)
    if at is not None:
        _ = at < NOW
    for key in ANNOTATIONS:
        registration_of({key: text}, key)
    check_line(plain(text), "a plain text")
    number = whole_quantity(text)
    if number is not None and not 0 <= number <= MOST:
        raise Broken("an amount beyond all")
    try:
        parse_reference(text)
    except ReferenceProblem as problem:
        check_line(str(problem), "what is wrong with a reference")


def _run_learned(data: bytes) -> None:
    """Read the ConfigMap of what was learnt, write it again, go by it."""
    choices = Choices(data)
    config_map = {
        "data": {
            "deaths.json": as_json(mutated(DEATHS, choices)),
            residuals_text.KEY: as_json(mutated(RESIDUALS, choices)),
        }
    }
    _learned(config_map_document(config_map))
    _learned(config_map_document(mutated(config_map, choices)))


def _learned(document: Document) -> None:
    deaths = read_deaths(document.files.get("deaths.json", ""))
    residuals = residuals_text.read(document.files.get(residuals_text.KEY))
    if residuals_text.read(residuals_text.written(residuals)).keys() != residuals.keys():
        raise Broken("residuals are not written as they are read")
    learnt = Learnt(deaths, corrections_of(residuals))
    after = learnt.corrections.corrected(_before())
    if (after.least, after.enough) != (_before().least, _before().enough):
        raise Broken("what was measured of others changes what a job is judged by")
    if deaths:
        again = with_death(deaths, deaths[-1], now=NOW)
        if len(read_deaths(text_of(again))) != len(again):
            raise Broken("deaths are not written as they are read")
    learnt.floors(_workload())


@cache
def _before() -> Estimate:
    return estimate(least=1 << 33, enough=1 << 34)


@cache
def _workload() -> Workload:
    return read_workload(documents()[1])


def _run_claims(data: bytes) -> None:
    """Read a claim of a pod, and the template it is made of."""
    choices = Choices(data)
    claim = mutated({"name": "gpu", "resourceClaimTemplateName": "one"}, choices)
    pod = part(mutated({"resourceClaims": [claim], "containers": []}, choices))
    whole = {"name": "train", "resources": {"claims": [{"name": "gpu"}]}}
    container = part(mutated(whole, choices))
    body = as_json(mutated(CLAIM, choices))
    found = {f"{kind}/one": Document(files={"": body}) for kind in _CLAIMS}
    readers: tuple[Callable[[], object], ...] = (
        lambda: gpu_claims(pod, "spec", found),
        lambda: claim_share(pod, container, "spec.containers[0]", found),
    )
    for reader in readers:
        try:
            reader()
        except RequestError as error:
            check_line(plain(str(error), limit=400), "what is refused")


_CLAIMS = ("resourceclaim", "resourceclaimtemplate")


def _note_seeds() -> Iterable[bytes]:
    texts: Iterable[Mapping[str, Any]] = (DEATHS, RESIDUALS, MOVING, FLOOR, {"train": {"GPU-1": 1}})
    yield from map(orjson.dumps, texts)
    yield from (text.encode() for text in TEXTS)
    for text in (
        "GPU-1,10,15360,100,NVIDIA-Tesla T4,0,true:",
        '[{"id":"GPU-1","devmem":15360,"type":"NVIDIA-Tesla T4"}]',
        '{"required":[{"key":"a","operator":"In","values":["b"]}],"selector":{"a":"b"}}',
        "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+01:00",
        "2030-01-01T00:00:00",
        "10Gi",
        "1e3",
        "hf://org/model@main",
        "https://user@host:99999/",
        "configmap/name/key",
    ):
        yield text.encode()


def _choice_seeds() -> Iterable[bytes]:
    for number in range(0, 256, 4):
        yield bytes((2, number, 0, number, 1, number, 2, 7, number % 40, 5, 3, number, 1))


TARGETS = (
    Target(
        name="annotations",
        run=_run_notes,
        seeds=_note_seeds,
        max_bytes=4096,
        begins=(b"", b"https://", b"1"),
    ),
    Target(name="learned", run=_run_learned, seeds=_choice_seeds, max_bytes=300),
    Target(name="claims", run=_run_claims, seeds=_choice_seeds, max_bytes=300),
)
