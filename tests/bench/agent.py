"""What the node agent costs: a full node, looked at once a second.

    a control plane, a stub of NVML, eight cards, a hundred pods -> memory and processor time

Modules are compiled before, as in an image. What a driver's own calls take is not in it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from estimator.units import GIB
from tests.bench.figures import Figure, resident_mib
from tests.e2e.agent import Agent, pod, report, run_process
from tests.e2e.cluster import ControlPlane, control_plane
from tests.e2e.controlplane.build import build
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.nvml.stub import Nvml, card, compiled, process

NODE = "node-of-the-bench"
NUM_CARDS, NUM_PODS, NUM_PROCESSES = 8, 100, 64
SECONDS = 30.0


def agent_figures() -> Iterator[Figure]:
    """Yield the resident memory and the share of a core of an agent at one look a second."""
    with tempfile.TemporaryDirectory(prefix="vramgate-bench-") as name:
        folder = Path(name)
        with control_plane(build(), directory=folder / "plane") as plane:
            agent = _agent(plane, folder)
            try:
                # The first start compiles: what the compiler takes stays with the process.
                agent.begin()
                agent.stop()
                agent.begin()
                yield from _measured(agent)
            finally:
                agent.stop()


def _agent(plane: ControlPlane, folder: Path) -> Agent:
    """Return the agent of a node with its pods; each of the first has a process on a card."""
    api = ApiServer(plane.credentials)
    path = "/api/v1/namespaces/default/serviceaccounts/default"
    poll_until(lambda: api.read(path).status == 200, what="a service account")
    nvml = Nvml(compiled(folder / "nvml"), folder / "cards")
    for number in range(NUM_PODS):
        document = pod(f"train-{number}", "train", node=NODE)
        (container,) = document["spec"]["containers"]
        container["env"] = [{"name": f"NAME_{n}", "value": 100 * "x"} for n in range(50)]
        container_id = hashlib.sha256(str(number).encode()).hexdigest()
        api.create(document)
        report(api, document, {"train": container_id})
        if number < NUM_PROCESSES:
            run_process(folder / "proc", 5000 + number, container_id)
    hold(nvml, 4 * GIB)
    api.close()
    kubeconfig = plane.credentials.kubeconfig
    environment = {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        # As the chart has it.
        "MALLOC_ARENA_MAX": "1",
        "PYTHONNODEBUGRANGES": "1",
    }
    settings = {"annotationSeconds": 10}
    return Agent(
        folder,
        kubeconfig,
        nvml,
        folder / "proc",
        NODE,
        settings=settings,
        environment=environment,
    )


def _measured(agent: Agent) -> Iterator[Figure]:
    for round_, nbytes in enumerate((4 * GIB, 8 * GIB), start=1):
        hold(agent.nvml, nbytes)
        poll_until(partial(_are_written, agent, round_ * NUM_PROCESSES), what="marks on every pod")
    assert agent.server is not None
    pid = agent.server.process.pid
    began, before = time.monotonic(), processor_seconds(pid)
    time.sleep(SECONDS)
    share = 100 * (processor_seconds(pid) - before) / (time.monotonic() - began)
    note = f"{NUM_CARDS} cards, {NUM_PODS} pods, {NUM_PROCESSES} processes, one look a second"
    yield Figure(name="agent resident", value=resident_mib(pid), unit="MiB", high=60, note=note)
    yield Figure(name="agent, of one core", value=share, unit="%", high=1, note=note)


def hold(nvml: Nvml, nbytes: int) -> None:
    """Let every process hold *nbytes* of its card."""
    names = [f"GPU-{number:08d}-0000-0000-0000-000000000000" for number in range(NUM_CARDS)]
    lines = [card(name, total=80 * GIB, used=40 * GIB, reserved=GIB // 2) for name in names]
    for number in range(NUM_PROCESSES):
        lines.append(process(names[number % NUM_CARDS], 5000 + number, nbytes))
    nvml.say(*lines)


def _are_written(agent: Agent, count: int) -> bool:
    return agent.value("agent_annotations_total", outcome="done") == count


def processor_seconds(pid: int) -> float:
    """Return the processor time of *pid* so far, its kernel time included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
