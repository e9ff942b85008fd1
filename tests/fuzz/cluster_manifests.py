"""What people type: manifests in YAML and JSON, and the settings file.

bytes -> text -> `vramgate explain`, its table and its JSON; Settings
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import cache

import orjson
import yaml
from rich.console import Console

from admission.commands.cases import Case
from admission.commands.explain import explain
from admission.commands.explain_table import print_judgements
from admission.config import parse_settings
from admission.detect.words import words
from admission.errors import ManifestError, RequestError, SettingsError
from admission.explanation import explanation_of
from admission.manifests import is_manifest, read_manifests
from estimator.documents import read_documents
from estimator.errors import SpecError
from tests.fuzz.choices import Choices
from tests.fuzz.desk import Workers, desk
from tests.fuzz.hostile import TEXTS
from tests.fuzz.objects import documents, texts
from tests.fuzz.rules import check_lines
from tests.fuzz.shaping import mutated, written
from tests.fuzz.target import Target

SETTINGS = """\
server: {port: 8443, metricsPort: 9090, drainSeconds: 4}
policy:
  mode: enforce
  onUnknown: warn
  workloadsMayLoosen: true
  exemptions:
    - {namespace: team, name: "train-*", kind: Job, until: "2026-12-31T00:00:00Z", reason: asked}
workers: {preload: [pytorch], maxConcurrent: 2, timeoutSeconds: 60, memoryBytes: 3221225472}
nodes:
  keepDays: 7
sources: {hub: {enabled: true}}
workloads: {}
logs: {level: info, format: json}
"""

_WORDS = tuple(
    word.encode()
    for word in (
        *words("apiVersion: kind: metadata: spec: containers: resources: limits: &a *a <<: !!int"),
        *words("!!python/object: !!timestamp !!binary !!set !!omap --- ... | > ? : - { } [ ] 0x"),
        *words("0o 1:1:1 .inf .nan ~ null yes off 2001-01-01 nvidia.com/gpu: List items:"),
        "\\u202e",
        "\\ud800",
        "\x1b[31m",
    )
)


def _explain(text: str) -> None:
    """Explain *text* as the command does, and print it."""
    try:
        found = read_manifests(["-"], stdin=io.StringIO(text))
        case = Case(workloads=(), manifests=found, classes=desk().cluster.plain)
        explained = desk().run(explain(case, estimator=Workers()))
    except (ManifestError, RequestError) as error:
        check_lines(str(error), "what explain says")
        return
    screen = Console(file=io.StringIO(), width=120, highlight=False)
    judgements = [each.judgement for each in explained]
    print_judgements(
        judgements,
        screen,
        steered=[each.sentence for each in explained],
        remarks=[each.remarks for each in explained],
    )
    printed = screen.file
    assert isinstance(printed, io.StringIO)
    check_lines(printed.getvalue(), "the table of explain")
    for each in explained:
        orjson.loads(orjson.dumps(explanation_of(each.judgement, each.terms)))


def _run_text(data: bytes) -> None:
    _explain(data.decode("utf-8", "replace"))


def _run_objects(data: bytes) -> None:
    """Explain objects that YAML can write and JSON cannot: dates, sets, numbers without end."""
    choices = Choices(data)
    found = documents()
    objects = [mutated(found[choices.below(len(found))], choices, donors=found)]
    for _ in range(choices.below(3)):
        objects.append(found[choices.below(len(found))])
    whole = {"kind": "List", "apiVersion": "v1", "items": objects} if choices.chance(4) else None
    text = written([whole] if whole else objects)
    at = choices.below(len(text) + 1)
    _explain(text[:at] + choices.text(40) + text[at:] if choices.chance(2) else text)


def _run_settings(data: bytes) -> None:
    """Read settings: every mistake is told, on lines of its own."""
    try:
        parse_settings(data.decode("utf-8", "replace"))
    except SettingsError as error:
        for problem in error.problems:
            check_lines(str(problem), "a problem of the settings")


def _run_settings_values(data: bytes) -> None:
    choices = Choices(data)
    document = mutated(_settings(), choices)
    _run_settings(written([document]).encode("utf-8", "replace"))


def _run_documents(data: bytes) -> None:
    """Read any YAML or JSON."""
    try:
        for document in read_documents(
            data.decode("utf-8", "replace"), aliases=bool(len(data) % 2)
        ):
            is_manifest(document)
    except SpecError as error:
        check_lines(str(error), "what a document says")


@cache
def _settings() -> object:
    return yaml.safe_load(SETTINGS)


def _text_seeds() -> Iterable[bytes]:
    for text in texts():
        yield text.encode()
    yield b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nkind: Job\napiVersion: batch/v1\n"
    huge = "0x" + "f" * 5000
    yield f"kind: ConfigMap\napiVersion: v1\nmetadata: {{name: c}}\ndata: {{a: {huge}}}\n".encode()
    yield f"kind: Job\napiVersion: batch/v1\nspec: {{parallelism: {huge}}}\n".encode()
    yield from (text.encode("utf-8", "replace") for text in TEXTS)


def _settings_seeds() -> Iterable[bytes]:
    yield SETTINGS.encode()
    for section in SETTINGS.split("\n"):
        yield section.encode()


def _choice_seeds() -> Iterable[bytes]:
    for number in range(0, 200, 3):
        yield bytes((number, 1, number, 0, 7, 3, 1, 1, number, 2, 0, 5, 1, 1))


TARGETS = (
    Target(
        name="manifest-texts",
        run=_run_text,
        seeds=_text_seeds,
        dictionary=_WORDS,
        max_bytes=12 * 1024,
        seconds=3.0,
        begins=(b"", b"kind: Job\napiVersion: batch/v1\nmetadata: "),
    ),
    Target(
        name="manifest-objects", run=_run_objects, seeds=_choice_seeds, max_bytes=400, seconds=3.0
    ),
    Target(
        name="documents",
        run=_run_documents,
        seeds=_text_seeds,
        dictionary=_WORDS,
        begins=(b"", b"a: ", b"a: [", b"a: 1"),
    ),
    Target(
        name="settings-texts",
        run=_run_settings,
        seeds=_settings_seeds,
        dictionary=_WORDS,
        max_bytes=4096,
        begins=(b"", b"a: ", b"a: [", b"a: 1"),
    ),
    Target(name="settings-values", run=_run_settings_values, seeds=_choice_seeds, max_bytes=200),
)
