"""The files that are made from the chart and from the settings, and never written by hand.

Settings -> `config` in values.schema.json
chart, default values -> deploy/install.yaml
"""

from __future__ import annotations

import copy
import json
from typing import Any

import yaml

from admission.commands.schema import Document, schema_of
from tests.chart.rendering import CHART, REPOSITORY, rendered

SCHEMA = CHART / "values.schema.json"
INSTALL = REPOSITORY / "deploy" / "install.yaml"

DECIDED = {
    "AgentSettings": ("port", "nodeName"),
    "ControllerSettings": ("port",),
    "ServerSettings": ("port", "metricsPort", "certFile", "keyFile"),
    "CertificateSettings": ("mode", "secret", "service", "webhooks"),
}
"""Settings that the chart decides: nobody may give them in `config`."""

_HEAD = """\
# Vramgate for a cluster without helm: `kubectl apply -f deploy/install.yaml`.
# Made by `make chart` from charts/vramgate with its default values; changes belong there.
"""


def install() -> str:
    """Return deploy/install.yaml."""
    lines = rendered({"createNamespace": True}).splitlines()
    return _HEAD + "".join(f"{line.rstrip()}\n" for line in lines)


def schema() -> str:
    """Return values.schema.json: as it is, with `config` as the settings are now."""
    current: dict[str, Any] = json.loads(SCHEMA.read_text())
    settings = copy.deepcopy(schema_of(Document.SETTINGS))
    definitions: dict[str, Any] = settings.pop("$defs")
    settings.pop("$schema")
    for section, keys in DECIDED.items():
        for key in keys:
            del definitions[section]["properties"][key]
    _close(definitions)
    _unquote(definitions)
    current["$defs"] = dict(sorted({**definitions, "Settings": settings}.items()))
    current["properties"]["config"] = {"$ref": "#/$defs/Settings"}
    return json.dumps(current, indent=2, ensure_ascii=False) + "\n"


def _close(node: object) -> None:
    """Refuse the keys that match no pattern, as the settings do; pydantic leaves that out."""
    if isinstance(node, dict):
        if "patternProperties" in node:
            node["additionalProperties"] = False
        for inner in node.values():
            _close(inner)
    elif isinstance(node, list):
        for inner in node:
            _close(inner)


def _unquote(definitions: dict[str, Any]) -> None:
    """Accept a word of a closed set without its quotes too: YAML 1.1, as helm reads it, has `off`
    for false. What reads the settings takes it as it is meant (`policy_settings._or_off`).
    """
    for definition in definitions.values():
        words = definition.get("enum", ())
        if read := [yaml.safe_load(word) for word in words if yaml.safe_load(word) != word]:
            definition["enum"] = [*words, *read]
            del definition["type"]


def write() -> None:
    """Write both files."""
    SCHEMA.write_text(schema())
    INSTALL.write_text(install())
