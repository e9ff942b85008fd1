"""Register the webhooks of `deploy/install.yaml` with an API server on loopback.

    the product's YAML, URL, CA bundle -> webhook configurations

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

INSTALL = REPOSITORY / "deploy" / "install.yaml"

KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def configurations(
    url: str, *, ca_bundle: bytes, path: Path = INSTALL
) -> tuple[dict[str, Any], ...]:
    """Return the configurations of *path*, calling the server at *url* instead of a Service.

    A Service needs DNS and a cluster network; an URL with a CA bundle needs neither.
    """
    documents: Iterable[Any] = yaml.safe_load_all(path.read_text())
    return tuple(
        calling(document, url=url, ca_bundle=ca_bundle)
        for document in documents
        if document and document["kind"] in KINDS
    )


def calling(document: Mapping[str, Any], *, url: str, ca_bundle: bytes) -> dict[str, Any]:
    """Return the configuration *document* with each webhook calling its path below *url*."""
    made = copy.deepcopy(dict(document))
    for webhook in made["webhooks"]:
        webhook["clientConfig"] = {
            "url": f"{url}{webhook['clientConfig']['service']['path']}",
            "caBundle": base64.b64encode(ca_bundle).decode(),
        }
    return made
