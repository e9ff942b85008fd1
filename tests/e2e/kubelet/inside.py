"""Become a container's program: a Python module with the pod's address and service account.

    python inside.py MODULE ARGUMENT… (in a container's environment) -> the module as the program

Stands in for a network and a file system of the container's own, which need rights that a test has
not: what binds to every address binds to the pod's, and the client of the cluster finds its token
where the test kubelet put it. The program itself sees neither.
"""

from __future__ import annotations

import os
import runpy
import socket
import sys

from kubernetes.config import incluster_config

ADDRESS = "TEST_KUBELET_ADDRESS"
"""Where the pod is on this machine."""
ACCOUNT = "TEST_KUBELET_ACCOUNT"
"""What stands for `/var/run/secrets/kubernetes.io/serviceaccount`; absent without one."""

ANYWHERE = ("", "0.0.0.0")


class PodSocket(socket.socket):
    """A socket that knows no address but the pod's."""

    def bind(self, address: object) -> None:
        """Bind to *address*, or to the pod's where that is every one."""
        if self.family is socket.AF_INET and isinstance(address, tuple) and address[0] in ANYWHERE:
            address = (os.environ[ADDRESS], *address[1:])
        super().bind(address)  # type: ignore[arg-type] # any family's


def main() -> None:
    """Run the module that the first argument names with those after it."""
    sys.path.pop(0)  # this folder
    sys.argv = sys.argv[1:]
    socket.socket = PodSocket  # type: ignore[misc] # for everybody who makes one
    if folder := os.environ.get(ACCOUNT):
        incluster_config.SERVICE_TOKEN_FILENAME = f"{folder}/token"
        incluster_config.SERVICE_CERT_FILENAME = f"{folder}/ca.crt"
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
