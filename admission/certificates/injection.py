"""Put the CA into a registration.

    ValidatingWebhookConfiguration or MutatingWebhookConfiguration, CAs -> what to change in it

Pure.
"""

from __future__ import annotations

import base64

from admission.values import Json


def injection(configuration: Json, bundle: bytes) -> Json | None:
    """Return the changes that give each webhook of *configuration* the *bundle*, or None.

    The changes are a strategic merge, joined by the webhooks' names, and name the version that was
    read. Source: `patchMergeKey:"name"` in kubernetes v1.36.3
    `staging/src/k8s.io/api/admissionregistration/v1/types.go`.
    """
    wanted = base64.b64encode(bundle).decode()
    without = [
        webhook["name"]
        for webhook in configuration.get("webhooks") or ()
        if (webhook.get("clientConfig") or {}).get("caBundle") != wanted
    ]
    if not without:
        return None
    return {
        "metadata": {"resourceVersion": configuration["metadata"]["resourceVersion"]},
        "webhooks": [{"name": name, "clientConfig": {"caBundle": wanted}} for name in without],
    }
