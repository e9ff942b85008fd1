"""How fast a real API server gets its answers, with both webhooks on: what it measured itself.

    a control plane, a webhook, jobs of one kind -> the share of calls within what is asked

The answers are remembered ones. Client, API server, etcd and webhook share the machine's cores.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from kubernetes import client

from tests.bench.figures import Figure
from tests.e2e.cluster import ControlPlane, control_plane
from tests.e2e.connection import connected
from tests.e2e.controlplane.build import build
from tests.e2e.nodes import T4, create
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook import configurations
from tests.e2e.webhook_process import start_webhook
from tests.e2e.workloads import resnet50_job

NAMESPACES = {"reviewed": {}, "unreviewed": {"vramgate.dev/webhook": "ignore"}}
ASKED_SECONDS = 0.005
"""The bound of the figure asked, and of a bucket of the API server's histogram."""
RATE = 50
"""Jobs a second: each is sent to both webhooks."""
SECONDS = 10
NUM_THREADS = 8

SAMPLE = re.compile(
    r"^apiserver_admission_webhook_admission_duration_seconds_bucket\{(?P<labels>[^}]*)\} (\S+)$",
    re.MULTILINE,
)
KINDS = {"admit": "/mutate", "validating": "/validate"}
"""What the API server calls the two."""

Counts = dict[tuple[str, str], float]
"""Kind of webhook and upper bound of seconds -> calls."""


def cluster_figures() -> Iterator[Figure]:
    """Yield what part of an API server's calls is answered in time, by either webhook."""
    with tempfile.TemporaryDirectory(prefix="vramgate-bench-") as name:
        folder = Path(name)
        with (
            control_plane(build(), directory=folder / "plane") as plane,
            connected(plane.credentials) as core,
        ):
            create(T4, core)
            webhook = start_webhook(
                directory=folder / "webhook",
                kubeconfig=plane.credentials.kubeconfig,
                authority=plane.authority,
            )
            try:
                yield from _measured(plane, core, url=webhook.url)
            finally:
                webhook.stop()


def _measured(plane: ControlPlane, core: client.CoreV1Api, *, url: str) -> Iterator[Figure]:
    api = ApiServer(plane.credentials)
    for name, labels in NAMESPACES.items():
        core.create_namespace({"metadata": {"name": name, "labels": labels}})
    for document in configurations(url, ca_bundle=plane.authority.pem):
        api.create(document)
    poll_until(lambda: _is_known(api), what="an estimate", seconds=180)
    paced(plane, "reviewed", seconds=1)
    alone = statistics.median(paced(plane, "unreviewed"))
    before = counts(core)
    taken = paced(plane, "reviewed")
    after = counts(core)
    api.close()
    added = f"a job takes {statistics.median(taken) - alone:.1f} ms more than an unreviewed one"
    for kind, path in KINDS.items():
        whole = after[kind, "+Inf"] - before.get((kind, "+Inf"), 0)
        bound = (kind, f"{ASKED_SECONDS:g}")
        yield Figure(
            name=f"cached {path} within {1000 * ASKED_SECONDS:.0f} ms for an API server, both on",
            value=100 * (after[bound] - before.get(bound, 0)) / whole,
            unit="%",
            low=99,
            high=100,
            note=f"{whole:.0f} calls at {RATE} jobs/s; {added}",
        )


def paced(plane: ControlPlane, namespace: str, *, seconds: float = SECONDS) -> list[float]:
    """Return the milliseconds of each job, sent on a clock and not one after the other."""
    start, found = time.perf_counter(), list[float]()

    def send(first: int) -> None:
        api = ApiServer(plane.credentials)
        for index in range(first, int(RATE * seconds), NUM_THREADS):
            time.sleep(max(0.0, start + index / RATE - time.perf_counter()))
            began = time.perf_counter()
            api.create(resnet50_job(namespace, batch_size=64, card=T4), dry_run=True)
            found.append((time.perf_counter() - began) * 1000)
        api.close()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(NUM_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def counts(core: client.CoreV1Api) -> Counts:
    """Return what the API server has measured of its calls so far."""
    connection = core.api_client
    request = connection.param_serialize("GET", "/metrics", auth_settings=["BearerToken"])
    text = connection.call_api(*request).response.data.decode()
    found: Counts = {}
    for match in SAMPLE.finditer(text):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', match["labels"]))
        key = (labels["type"], labels["le"])
        found[key] = found.get(key, 0) + float(match[2])
    return found


def _is_known(api: ApiServer) -> bool:
    answer = api.create(resnet50_job("reviewed", batch_size=64, card=T4), dry_run=True)
    annotations = answer.body.get("metadata", {}).get("annotations", {})
    return bool(annotations.get("vramgate.dev/verdict") == "fits")
