"""Register the webhook of `deploy/webhook/validating.yaml` with an API server on loopback.

    the product's YAML, URL, CA bundle -> ValidatingWebhookConfiguration objects

Rules, selectors and conditions stay the product's: they are what the tests try.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]

CONFIGURATION = REPOSITORY / "deploy" / "webhook" / "validating.yaml"


def configurations(
    url: str, *, ca_bundle: bytes, path: Path = CONFIGURATION
) -> tuple[dict[str, Any], ...]:
    """Return the configurations of *path*, calling *url* in place of what they name.

    A Service needs DNS and a cluster network; an URL with a CA bundle needs neither.
    """
    documents: Iterable[Any] = yaml.safe_load_all(path.read_text())
    return tuple(
        _calling(document, url=url, ca_bundle=ca_bundle)
        for document in documents
        if document and document["kind"] == "ValidatingWebhookConfiguration"
    )


def _calling(document: Mapping[str, Any], *, url: str, ca_bundle: bytes) -> dict[str, Any]:
    """Return *document* with another `clientConfig` in each of its webhooks."""
    made = copy.deepcopy(dict(document))
    for webhook in made["webhooks"]:
        webhook["clientConfig"] = {"url": url, "caBundle": base64.b64encode(ca_bundle).decode()}
    return made
