"""The metrics of those who may be there beside the webhook, as text of the exposition.

    a job's namespace and name -> agent, controller, dcgm-exporter, kube-state-metrics, API server

Controller and agent are their real expositions; the others are written by hand, both spellings of
dcgm-exporter's labels among them. Figures mean nothing.
Names: NVIDIA/dcgm-exporter etc/default-counters.csv and internal/pkg/collector; kubernetes/
kube-state-metrics docs/metrics; k8s.io/apiserver pkg/admission/metrics.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from admission.agent.exposition import Exposition as OfAgent
from admission.agent.marks import Ending
from admission.agent.pods import Pod
from admission.agent.reading import Card
from admission.agent.sampling import View
from admission.controller.duties import NAMES
from admission.controller.exposition import Exposition as OfController
from admission.controller.predicted import NodeGpus, State
from estimator.units import GIB

SHOWN_BY_BOTH = ("vramgate_build_info", "vramgate_watch_interrupted")


def exposition(namespace: str, job: str, *, product: str) -> str:
    """Return what all of them show of one pod of *job*."""
    pod = f'namespace="{namespace}",pod="{job}-x7f2p"'
    exported = f'exported_namespace="{namespace}",exported_pod="{job}-q8k4z"'
    gpu = 'resource="nvidia_com_gpu",unit="integer"'
    ours = 'name="jobs.vramgate.dev",type="validating"'
    lines = [
        *(
            f'DCGM_FI_DEV_FB_{part}{{gpu="0",modelName="Tesla T4",{where}}} 1000'
            for part in ("USED", "FREE", "RESERVED")
            for where in (f'hostname="new",{pod}', f'Hostname="old",{exported}')
        ),
        f'kube_pod_status_phase{{{pod},phase="Pending"}} 1',
        f'kube_pod_status_phase{{{pod},phase="Running"}} 0',
        f'kube_pod_container_resource_requests{{{pod},container="train",{gpu}}} 1',
        f'kube_node_status_allocatable{{node="new",{gpu}}} 1',
        f"apiserver_admission_webhook_fail_open_count{{{ours}}} 0",
        *(
            f'apiserver_admission_webhook_admission_duration_seconds_bucket{{{ours},le="{le}"}} 3'
            for le in ("0.5", "+Inf")
        ),
    ]
    return controller(product) + agent(namespace, job, product) + "".join(f"{x}\n" for x in lines)


def controller(product: str) -> str:
    """Return what a controller at work shows, every series it can have among them."""
    exposition = OfController(duties=NAMES, queued=lambda: 1)
    exposition.leads(True)
    nodes = (NodeGpus(node="gpu-0", product=product, gpus=1, total_bytes=16 * GIB),)
    exposition.show(lambda: {(product, State.RUNNING.value): 4 * GIB}, lambda: nodes)
    return exposition.text().decode()


def agent(namespace: str, job: str, product: str) -> str:
    """Return what an agent with one card and one pod of *job* shows.

    Less what a controller shows too: both are one target here.
    """
    card = Card(gpu="GPU-1", index="0", product=product, total=16 * GIB, used=3 * GIB, reserved=0)
    pod = Pod(uid="1", namespace=namespace, name=f"{job}-x7f2p")
    view = View(cards=(card,), marks=((pod, {("train", "GPU-1"): 3 * GIB}),))
    exposition = OfAgent(lambda: view)
    exposition.ended(Ending(ended="succeeded", ratio=0.98))
    lines = exposition.text().decode().splitlines(keepends=True)
    return "".join(line for line in lines if not any(name in line for name in SHOWN_BY_BOTH))


@contextmanager
def shown(text: str, port: int) -> Iterator[None]:
    """Answer *text* to every GET on *port* of loopback for the length of a `with` block."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
