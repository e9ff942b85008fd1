"""Values that the chart refuses, before anything is installed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.codes import Mode, Steer
from admission.config import parse_settings
from tests.chart.generating import SCHEMA
from tests.chart.rendering import CHART, RenderError, Values, helm, of_kind, parsed, rendered
from tests.e2e.controlplane.build import KUBERNETES_VERSION

pytestmark = pytest.mark.e2e


def test_schema_names_every_problem_of_the_values() -> None:
    """All at once, each with its path, as the settings file does."""
    values = {
        "replicas": 0,
        "replica": 3,
        "certificates": {"mode": "acme"},
        "config": {"policy": {"mode": "strict"}, "workers": {"threads": 4}},
    }
    with pytest.raises(RenderError) as caught:
        rendered(values)

    message = str(caught.value)
    for expected in (
        "'/replicas': minimum",
        "'replica' not allowed",
        "'/certificates/mode': value must be one of 'builtin', 'certManager', 'files'",
        "'/config/policy/mode': value must be one of 'enforce', 'warn', 'off'",
        "'/config/workers': additional properties 'threads' not allowed",
    ):
        assert expected in message


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"certificates": {"mode": "files"}}, "/certificates/secretName"),
        ({"certificates": {"caBundle": "QUJD"}}, "/certificates/caBundle"),
        ({"config": {"server": {"port": 1}}}, "'port' not allowed"),
        ({"config": {"server": {"certFile": "/a"}}}, "'certFile' not allowed"),
        ({"config": {"certificates": {"mode": "files"}}}, "'mode' not allowed"),
        ({"config": {"nodes": {"classes": [{"selector": {"-": "a"}}]}}}, "selector"),
        ({"port": 443}, "/port"),
        ({"webhooks": {"timeoutSeconds": 31}}, "/webhooks/timeoutSeconds"),
    ],
)
def test_value_that_cannot_work_is_refused(values: Values, expected: str) -> None:
    """What the chart decides is not said twice; what is missing is asked for."""
    with pytest.raises(RenderError) as caught:
        rendered(values)

    assert expected in str(caught.value)


@pytest.mark.parametrize("word", ["off", '"off"', "Off"])
def test_off_needs_no_quotes(word: str) -> None:
    """YAML 1.1 reads the bare word as false: the chart takes it, and so do the settings."""
    text = f"config: {{policy: {{mode: {word}}}, steering: {{default: {word}}}}}"
    found = parsed(written(text))

    settings = parse_settings(of_kind(found, "ConfigMap")["data"]["settings.yaml"])

    assert settings.policy.mode is Mode.OFF
    assert settings.steering.default is Steer.OFF


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("{}", "warn"),
        ("config: {logs: {level: info}}", "warn"),
        ("config: {policy: {mode: enforce}}", "enforce"),
        ("config: {policy: {mode: off}}", "off"),
    ],
)
def test_notes_name_the_mode(tmp_path: Path, text: str, mode: str) -> None:
    """The first thing an operator reads of an install."""
    # helm prints them where there is a cluster; a template may include them anywhere.
    chart = shutil.copytree(CHART, tmp_path / "chart")
    name = '(print $.Template.BasePath "/NOTES.txt")'
    (chart / "templates" / "notes.yaml").write_text(f"notes: {{{{ include {name} . | toJson }}}}")

    (found,) = parsed(written(text, "--show-only", "templates/notes.yaml", chart=chart))

    assert f"in mode {mode}." in found["notes"]


@pytest.mark.parametrize("word", ["on", "yes", "true", "none"])
def test_other_bare_word_is_refused(word: str) -> None:
    """Of what YAML 1.1 reads as a boolean, false alone has a meaning here."""
    text = f"config: {{policy: {{mode: {word}}}}}"
    with pytest.raises(RenderError) as caught:
        written(text)

    assert "'/config/policy/mode': value must be one of" in str(caught.value)


def test_no_closed_set_has_a_word_that_yaml_reads_as_something_else() -> None:
    """But those whose other reading is accepted: a new setting is not a trap."""
    schema: dict[str, Any] = json.loads(SCHEMA.read_text())

    for words in _enumerations(schema):
        for word in words:
            assert not isinstance(word, str) or yaml.safe_load(word) in words, words


def written(text: str, *arguments: str, chart: Path = CHART) -> str:
    """Return what helm writes for the values in *text*, which it reads itself."""
    argv = ("template", "a", str(chart), "--kube-version", KUBERNETES_VERSION, *arguments)
    return helm(*argv, values=text)


def _enumerations(node: object) -> Iterator[list[Any]]:
    if isinstance(node, dict):
        if isinstance(node.get("enum"), list):
            yield node["enum"]
        for inner in node.values():
            yield from _enumerations(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _enumerations(inner)
