"""Let kwok play the kubelet of some nodes: their pods run, and end when they are told to.

kwok, kubeconfig, a label -> a running kwok that manages the nodes with that label
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.processes import Server, answers, free_ports, retrying_ports, start_ready

STAGES = Path(__file__).with_name("stages.yaml")
DEATHS = Path(__file__).with_name("deaths.yaml")
OOM_ON = "test.vramgate.dev/oom-on"
"""The annotation that says on which nodes a pod dies of CUDA out-of-memory: how they begin."""
EXIT = "test.vramgate.dev/exit"
"""The annotation that ends a pod with the status it says."""


@contextmanager
def playing(
    program: Path,
    *,
    kubeconfig: Path,
    selector: str,
    directory: Path,
    stages: Sequence[Path] = (STAGES,),
) -> Iterator[None]:
    """Run kwok for the nodes of *selector*, whose pods do what *stages* say.

    Raises:
        ServerError: if it does not come up; the message ends with its log.
    """

    def begin() -> Server:
        (port,) = free_ports(1)
        argv = [str(program), f"--kubeconfig={kubeconfig}"]
        argv += [f"--config={path}" for path in stages]
        argv += [f"--manage-nodes-with-label-selector={selector}", "--manage-all-nodes=false"]
        argv += [f"--server-address=127.0.0.1:{port}", "--node-lease-duration-seconds=0"]
        url = f"http://127.0.0.1:{port}/healthz"
        return start_ready("kwok", argv, directory=directory, is_ready=lambda: answers(url))

    server = retrying_ports(begin)
    try:
        yield
    finally:
        server.stop()
