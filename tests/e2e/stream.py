"""A constant stream of reviews and of handshakes, of which none may fail.

control plane, port of a replica -> how many passed, and every failure
"""

from __future__ import annotations

import socket
import ssl
import threading
import time

from tests.e2e.builtin import NAMESPACE, PROPAGATION_SECONDS, SERVER_NAME, bundles
from tests.e2e.cluster import ControlPlane
from tests.e2e.nodes import T4
from tests.e2e.rest import ApiServer
from tests.e2e.workloads import unreadable_job

STREAMS = 2


class Stream:
    """Jobs that are submitted one after the other, from several threads, as a dry run."""

    def __init__(self, plane: ControlPlane, *, port: int) -> None:
        self._plane = plane
        self._port = port
        self._ending = threading.Event()
        self.failures: list[str] = []
        self.num_reviewed = 0
        self.num_handshakes = 0
        self._threads = [threading.Thread(target=self._submit) for _ in range(STREAMS)]
        self._threads.append(threading.Thread(target=self._shake_hands))

    def __enter__(self) -> Stream:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _submit(self) -> None:
        api = ApiServer(self._plane.credentials)
        job = unreadable_job(NAMESPACE, card=T4)
        while not self._ending.is_set():
            answer = api.create(job, dry_run=True)
            if answer.status == 201 and answer.warnings:
                self.num_reviewed += 1
            else:
                self.failures.append(f"{answer.status} {answer.message}")
        api.close()

    def _shake_hands(self) -> None:
        """Connect anew all the time, trusting what the registration had a little earlier.

        The API server keeps its connections, so the jobs alone try few handshakes.
        """
        api = ApiServer(self._plane.credentials)
        known, since = bundles(api, port=self._port), time.monotonic()
        while not self._ending.is_set():
            if time.monotonic() - since > PROPAGATION_SECONDS / 4:
                known, since = bundles(api, port=self._port), time.monotonic()
            for bundle in known:
                try:
                    shake_hands(self._port, bundle)
                    self.num_handshakes += 1
                except (OSError, ValueError) as error:
                    self.failures.append(f"handshake: {error}")
        api.close()


def shake_hands(port: int, bundle: bytes) -> None:
    """Connect as a client that trusts *bundle* and calls the server by its Service's name.

    Raises:
        OSError: (`ssl.SSLError`) if the certificate is not believed.
    """
    context = ssl.create_default_context(cadata=bundle.decode())
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as raw,
        context.wrap_socket(raw, server_hostname=SERVER_NAME),
    ):
        pass
