"""The HTTPS server in front of the handler.

    POST /mutate, /validate -> handler -> Answer; GET /healthz, /readyz, /metrics, /report

Takes up a changed certificate, and on the way out answers what is in flight. Knows nothing of
verdicts.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Protocol
from urllib.parse import parse_qsl

import structlog
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader

from admission.certificates.problems import CertificateProblem, Problems, TellProblems
from admission.certificates.served import Certificate, ServedCertificate
from admission.config import ServerSettings
from admission.errors import SettingsError
from admission.response import Answer, errored
from admission.review import Route
from estimator.errors import Problem

MAX_BODY_BYTES = 8 << 20
"""The API server takes requests of 3 MiB; a review may hold the object twice."""
KEEP_ALIVE_SECONDS = 600.0
READ_SECONDS = 10.0
"""A body that takes longer than this to arrive is from nobody who waits for the answer."""
BACKLOG = 1024
"""Connections that wait to be taken."""
CLOSE_SECONDS = 6.0
"""After draining, how long answers still in the making may take: longer than any deadline."""

_log = structlog.get_logger()


_Respond = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Reviewer(Protocol):
    """Who answers reviews."""

    async def answer(
        self, body: bytes, *, content_type: str, timeout_text: str | None, route: Route
    ) -> Answer:
        """Return the answer to one review; never raises."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """What the other routes ask."""

    not_ready: Callable[[], str | None]
    """Why reviews cannot be answered well yet, or None."""
    metrics: Callable[[], bytes]
    certificate_loaded: Callable[[float], None]
    """Told when a served certificate expires (seconds since 1970)."""
    certificate_problems: TellProblems = lambda _: None
    """Told what is wrong with a certificate in files."""
    report: Callable[[], bytes] = bytes
    """The denials that were withheld, as JSON."""


class _Site(web.TCPSite):
    """A listener that takes one connection each time around the loop.

    asyncio takes as many as may wait, and where there is no descriptor left it fails as often, with
    a traceback and a timer each: with a thousand that holds up every review (Python 3.11
    `asyncio/selector_events.py`, `_accept_connection`).
    """

    def __init__(
        self,
        runner: web.ServerRunner,
        host: str,
        port: int,
        *,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(runner, host, port, ssl_context=ssl_context, backlog=1)

    async def start(self) -> None:
        """Listen."""
        await super().start()
        assert isinstance(self._server, asyncio.Server)
        for each in self._server.sockets:
            with each.dup() as listening:
                listening.listen(BACKLOG)


class WebhookServer:
    """One process' server: `async with server.running(): …`."""

    def __init__(
        self,
        settings: ServerSettings,
        *,
        reviewer: Reviewer,
        probes: Probes,
        certificate: Certificate | None = None,
        poll_seconds: float = 1.0,
    ) -> None:
        self._settings = settings
        self._reviewer = reviewer
        self._probes = probes
        self._poll_seconds = poll_seconds
        self._has_files = certificate is None
        self._certificate = certificate or ServedCertificate(settings.cert_file, settings.key_file)
        self._draining = False
        self._routes: Mapping[str, tuple[str, _Respond]] = {
            "/mutate": ("POST", partial(self._review, route=Route.MUTATE)),
            "/validate": ("POST", partial(self._review, route=Route.VALIDATE)),
            "/healthz": ("GET", self._healthz),
            "/readyz": ("GET", self._readyz),
            "/metrics": ("GET", self._metrics),
            "/report": ("GET", self._report),
        }
        self._runner = web.ServerRunner(
            web.Server(
                self._respond,
                request_factory=_request,
                access_log=None,
                keepalive_timeout=KEEP_ALIVE_SECONDS,
                auto_decompress=False,
            ),
            shutdown_timeout=CLOSE_SECONDS,
        )
        self._sites: list[_Site] = []

    @property
    def port(self) -> int:
        """Return the port of the reviews: the one the system chose if the settings say 0."""
        return self._sites[0].port

    @property
    def metrics_port(self) -> int | None:
        """Return the port of the plain routes, if there is one."""
        return self._sites[1].port if len(self._sites) > 1 else None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen for the length of an `async with` block, then drain.

        Raises:
            SettingsError: if the certificate cannot be loaded or a port is taken.
        """
        await self._load_certificate()
        await self._runner.setup()
        watch: asyncio.Task[None] | None = None
        try:
            await self._listen()
            watch = asyncio.create_task(self._watch_certificate())
            yield
        finally:
            await self._drain()
            if watch is not None:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
            await self._runner.cleanup()

    async def _listen(self) -> None:
        settings = self._settings
        self._sites.append(
            _Site(self._runner, settings.host, settings.port, ssl_context=self._certificate.context)
        )
        if settings.metrics_port is not None:
            self._sites.append(_Site(self._runner, settings.host, settings.metrics_port))
        for site, path in zip(self._sites, ("server.port", "server.metricsPort"), strict=False):
            try:
                await site.start()
            except OSError as error:
                reason = error.strerror or "cannot listen"
                raise SettingsError([Problem(path=path, message=reason.lower())]) from error
        _log.info("listening", port=self.port, metrics_port=self.metrics_port)

    async def _drain(self) -> None:
        """Stop listening and tell every connection that comes back to close; lose no review.

        Idle connections stay open for the while: the API server may be writing to one right now.
        """
        self._draining = True
        for site in list(self._runner.sites):
            await site.stop()
        server = self._runner.server
        _log.info("draining", connections=len(server.connections) if server else 0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain_seconds):
                while server and server.connections:  # noqa: ASYNC110 (aiohttp tells nobody)
                    await asyncio.sleep(0.05)

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer in JSON whatever happens, and end the connection while draining.

        aiohttp's router and its middlewares take longer than all else of its part in an answer.
        """
        method, respond = self._routes.get(request.path, (None, None))
        response: web.StreamResponse
        if respond is None:
            response = _not_served(request, 404)
        elif request.method != method and (request.method, method) != ("HEAD", "GET"):
            response = _not_served(request, 405)
            response.headers["Allow"] = "GET,HEAD" if method == "GET" else "POST"
        else:
            response = await respond(request)
        if self._draining:
            response.force_close()
        return response

    async def _review(self, request: web.BaseRequest, *, route: Route) -> web.StreamResponse:
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        try:
            body = await _body(request)
        except web.HTTPRequestEntityTooLarge:
            message = f"the body is longer than {MAX_BODY_BYTES} bytes"
            return _response(errored(message, code=413))
        except TimeoutError:
            message = f"the body did not arrive within {READ_SECONDS:.0f} s"
            return _last_response(errored(message, code=408))
        except OSError:  # whoever asked is gone: nobody reads this, and nothing of ours failed
            return _last_response(errored("the connection ended in the body"))
        answer = await self._reviewer.answer(
            body,
            content_type=request.headers.get("Content-Type", ""),
            timeout_text=_timeout_text(request.rel_url.raw_query_string),
            route=route,
        )
        return _response(answer)

    async def _healthz(self, _: web.BaseRequest) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.BaseRequest) -> web.Response:
        reason = "shutting down" if self._draining else self._probes.not_ready()
        return web.Response(status=503 if reason else 200, text=f"{reason or 'ok'}\n")

    async def _metrics(self, _: web.BaseRequest) -> web.Response:
        text = self._probes.metrics()
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=text, headers=headers)

    async def _report(self, _: web.BaseRequest) -> web.Response:
        return web.Response(body=self._probes.report(), content_type="application/json")

    async def _load_certificate(self) -> None:
        try:
            await asyncio.to_thread(self._certificate.refresh)
        except (OSError, ValueError) as error:
            raise SettingsError(
                [Problem(path="server.certFile, server.keyFile", message=_reason(error))],
                hint="both are PEM files, and the key belongs to the certificate",
            ) from error
        self._tell_expiry()

    async def _watch_certificate(self) -> None:
        """Look at the files every second; a pair that cannot be served is told once."""
        problems = Problems(self._probes.certificate_problems) if self._has_files else None
        while True:
            found: dict[CertificateProblem, str] = {}
            try:
                if await asyncio.to_thread(self._certificate.refresh):
                    self._tell_expiry()
                    _log.info("certificate loaded", expires=str(self._certificate.expires))
            except (OSError, ValueError) as error:
                found[CertificateProblem.FILES_REFUSED] = _reason(error)
            except Exception as error:  # no thread to look in, say: it is looked at again
                found[CertificateProblem.FAULT] = type(error).__name__
            expires = self._certificate.expires
            if expires is not None and expires <= datetime.now(UTC):
                found[CertificateProblem.EXPIRED] = f"the certificate expired at {expires}"
            if problems is not None:
                problems.settle(found)
            await asyncio.sleep(self._poll_seconds)

    def _tell_expiry(self) -> None:
        if self._certificate.expires is not None:
            self._probes.certificate_loaded(self._certificate.expires.timestamp())


@functools.lru_cache(maxsize=64)
def _timeout_text(query: str) -> str | None:
    """Return what *query* says of the time there is: the API server always says the same."""
    return next((value for key, value in parse_qsl(query) if key == "timeout"), None)


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    """Return a request whose body may have `MAX_BODY_BYTES`."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES
    )


async def _body(request: web.BaseRequest) -> bytes:
    """Return the body of *request*; what came with its head is there already.

    Raises:
        HTTPRequestEntityTooLarge: if it is longer than `MAX_BODY_BYTES`.
        TimeoutError: if it does not arrive within `READ_SECONDS`.
        OSError: if the connection ends.
    """
    if request.content.is_eof() and request.content.total_bytes <= MAX_BODY_BYTES:
        return request.content.read_nowait()
    async with asyncio.timeout(READ_SECONDS):
        return await request.read()


def _not_served(request: web.BaseRequest, status: int) -> web.Response:
    reason = HTTPStatus(status).phrase.lower()
    message = f"{request.method} {request.path[:200]}: {reason}"
    return _response(errored(message, code=status))


def _response(answer: Answer) -> web.Response:
    return web.Response(body=answer.body, status=answer.status, content_type="application/json")


def _last_response(answer: Answer) -> web.Response:
    """Return *answer* as the last of its connection."""
    response = _response(answer)
    response.force_close()
    return response


def _reason(error: OSError | ValueError) -> str:
    """Return what is wrong with the pair, without OpenSSL's file names and line numbers."""
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return " ".join(str(reason).lower().replace("_", " ").split())[:200]
