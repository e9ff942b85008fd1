"""What the controller has learnt, as `serve` follows it.

    client, namespace -> Learnt, kept up to date until the block ends

One ConfigMap, by name. While it is not there, or may not be read, nothing is known.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from admission.cluster import Client, Resource
from admission.learning import residuals_text
from admission.learning.corrections import corrections_of
from admission.learning.deaths import CONFIG_MAP, KEY, read_deaths
from admission.learning.floors import Learnt
from admission.outages import Outages
from admission.values import Json
from admission.watch import Snapshot, Watch
from admission.workloads.fields import part, words_of


@contextlib.contextmanager
def followed_learnt(client: Client | None, *, namespace: str, outages: Outages) -> Iterator[Learnt]:
    """Know what the ConfigMap in *namespace* says; nothing without a cluster to ask."""
    learnt = Learnt()
    if client is None:
        yield learnt
        return

    def publish(snapshot: Snapshot) -> None:
        data = snapshot[CONFIG_MAP]["data"] if CONFIG_MAP in snapshot else {}
        measured = residuals_text.read(data.get(residuals_text.KEY))
        learnt.take(read_deaths(data.get(KEY, "")), corrections_of(measured))

    watch = Watch(client, _resource(namespace), publish, outages=outages)
    watch.start()
    try:
        yield learnt
    finally:
        watch.stop()


def _resource(namespace: str) -> Resource:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    return Resource(path=path, cut=_cut, name=CONFIG_MAP)


def _cut(document: Json) -> Json:
    data = words_of(part(document).get("data"))
    return {"data": {key: data.get(key, "") for key in (KEY, residuals_text.KEY)}}
