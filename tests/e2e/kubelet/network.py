"""The network to pods, as far as the API server needs one: a pod's address leads to loopback.

    CONNECT 10.244.1.2:8443 -> a connection to 127.244.1.2:8443

Kubernetes refuses endpoints on loopback, and only an administrator may give a machine addresses.
So pods have addresses of a network that is nowhere, each with one of loopback behind it, and the
API server goes there as control planes do that have no way to pods: by its EgressSelector
(KEP-1281), here over a Unix socket. With `--enable-aggregator-routing` it takes a ready endpoint
of the Service by itself (k8s.io/apiserver@v0.36.3 pkg/util/proxy/proxy.go), as a kube-proxy would.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType

from tests.e2e.forwarder import pass_on

CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "endpointslice-controller",
    "resourcequota-controller",
)
"""What makes pods of a Deployment and endpoints of them, and counts what a quota allows."""

ESTABLISHED = b"HTTP/1.1 200 OK\r\n\r\n"
UNREACHABLE = b"HTTP/1.1 502 Bad Gateway\r\n\r\n"
LONGEST_HEAD = 1024


def on_loopback(address: str) -> str:
    """Return where what listens at *address* of the pods' network is on this machine."""
    _, _, rest = address.partition(".")
    return f"127.{rest}"


class PodNetwork:
    """A Unix socket that leads to pods, for the length of a `with` block."""

    def __init__(self) -> None:
        # Not where tests write: the path of a Unix socket has at most 107 characters.
        self._directory = Path(tempfile.mkdtemp(prefix="pods-"))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._directory / "socket"))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._sockets = [self._listener]

    @property
    def apiserver_flags(self) -> tuple[str, ...]:
        """Return what makes an API server call Services this way."""
        transport = {"uds": {"udsName": str(self._directory / "socket")}}
        connection = {"proxyProtocol": "HTTPConnect", "transport": transport}
        document = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": connection}],
        }
        path = self._directory / "egress.json"
        path.write_text(json.dumps(document))
        return (f"--egress-selector-config-file={path}", "--enable-aggregator-routing=true")

    def __enter__(self) -> PodNetwork:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _end(self._listener)
        self._threads[0].join()
        for one in self._sockets:
            _end(one)
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()
        shutil.rmtree(self._directory)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:  # the listener was ended
                return
            self._sockets.append(near)
            self._start(self._connect, near)

    def _connect(self, near: socket.socket) -> None:
        """Lead *near* where it asks to go, and pass bytes on until an end closes."""
        try:
            host, port = _target(near)
            far = socket.create_connection((on_loopback(host), port))
        except (OSError, ValueError):
            with contextlib.suppress(OSError):
                near.sendall(UNREACHABLE)
            _end(near)
            return
        self._sockets.append(far)
        near.sendall(ESTABLISHED)
        self._start(pass_on, far, near)
        pass_on(near, far)

    def _start(self, target: object, *args: socket.socket) -> None:
        assert callable(target)
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()


def _target(near: socket.socket) -> tuple[str, int]:
    """Return the host and port that a CONNECT request names.

    Raises:
        ValueError: if it is none.
    """
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = near.recv(LONGEST_HEAD)
        head += data
        if not data or len(head) > LONGEST_HEAD:
            raise ValueError("no request")
    method, target, _ = head.decode("ascii").split(maxsplit=2)
    host, _, port = target.rpartition(":")
    if method != "CONNECT":
        raise ValueError(method)
    return host, int(port)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
