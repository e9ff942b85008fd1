"""What the pool says to one fork and hears of it.

    socket, request -> answer, and more frames if it goes on

On the event loop; the end of a socket is an answer too: there is none.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

from estimator.processes.frames import HEADER_BYTES, frame_length


async def ask_fork(request: socket.socket, payload: bytes) -> bytes | None:
    """Send *payload* and return the answer, None if the fork ended without one.

    One that estimates nothing answers without having read, and may have ended before it is asked.
    """
    with suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(request, payload)
    return await next_frame(request)


async def next_frame(request: socket.socket) -> bytes | None:
    """Return the next frame of a fork, None if it ended before."""
    try:
        header = await _receive(request, HEADER_BYTES)
        return await _receive(request, frame_length(header))
    except (OSError, EOFError):
        return None


async def _receive(request: socket.socket, length: int) -> bytes:
    loop = asyncio.get_running_loop()
    pieces = bytearray()
    while len(pieces) < length:
        piece = await loop.sock_recv(request, min(length - len(pieces), 1 << 20))
        if not piece:
            raise EOFError
        pieces += piece
    return bytes(pieces)
