"""A client that takes little of a processor itself: requests as bytes, over TLS, one thread each.

requests, seconds -> answers counted
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Sequence
from itertools import cycle, islice

NUM_THREADS = 8
SECONDS_TO_ANSWER = 30
_LENGTH = b"content-length:"


def request_of(path: str, body: bytes, *, port: int) -> bytes:
    """Return one POST as it goes over the wire."""
    lines = (
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*lines, "", "")).encode() + body


def hammer(
    requests: Sequence[bytes], *, port: int, context: ssl.SSLContext, seconds: float
) -> tuple[int, float]:
    """Return how many requests were answered with 200, and in how many seconds.

    Each thread keeps one connection and sends the next request once it has the last answer.

    Raises:
        ConnectionError: if one is answered otherwise, or not.
    """
    counts: list[int] = []
    start = threading.Barrier(NUM_THREADS + 1)
    ends = [0.0]

    def run(number: int) -> None:
        with _connected(port, context) as connection:
            _post(connection, requests[number % len(requests)])
            start.wait()
            mine, num_answered = islice(cycle(requests), number, None, NUM_THREADS), 0
            while time.perf_counter() < ends[0]:
                _post(connection, next(mine))
                num_answered += 1
        counts.append(num_answered)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(NUM_THREADS)]
    for thread in threads:
        thread.start()
    ends[0] = float("inf")
    start.wait()
    began = time.perf_counter()
    ends[0] = began + seconds
    for thread in threads:
        thread.join()
    if len(counts) < NUM_THREADS:
        raise ConnectionError("a request was not answered")
    return sum(counts), time.perf_counter() - began


def post(request: bytes, *, port: int, context: ssl.SSLContext) -> bytes:
    """Return the body that *request* is answered with."""
    with _connected(port, context) as connection:
        return _post(connection, request)


def _connected(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_TO_ANSWER)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def _post(connection: ssl.SSLSocket, request: bytes) -> bytes:
    connection.sendall(request)
    answer = b""
    while (end := answer.find(b"\r\n\r\n")) < 0:
        answer += _received(connection)
    head, body = answer[:end].lower(), answer[end + 4 :]
    if not head.startswith(b"http/1.1 200 "):
        raise ConnectionError(answer[:200])
    length = int(head.partition(_LENGTH)[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += _received(connection)
    return body


def _received(connection: ssl.SSLSocket) -> bytes:
    piece = connection.recv(1 << 16)
    if not piece:
        raise ConnectionError("the connection was closed")
    return piece
