"""What aiohttp alone takes: a TLS server that reads a body and answers with one that it was given.

    certificate, key, folder with a body a route -> POST /mutate, /validate -> that body

`python -m tests.bench.echo CERTIFICATE KEY FOLDER PORT`: what `vramgate serve` is compared with.
"""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

from aiohttp import web


def application(bodies: dict[str, bytes]) -> web.Application:
    """Return what answers POST /NAME with the body of that name."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        body = bodies[request.match_info["name"]]
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_post("/{name}", answer)
    return app


def main(certificate: str, key: str, folder: str, port: str) -> None:
    """Serve until SIGTERM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    bodies = {path.stem: path.read_bytes() for path in Path(folder).glob("*.json")}
    web.run_app(
        application(bodies),
        host="127.0.0.1",
        port=int(port),
        ssl_context=context,
        access_log=None,
        print=None,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
