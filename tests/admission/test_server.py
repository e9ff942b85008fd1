"""The server over real TLS: bad input, live certificates, a drain that loses nothing."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import signal
import socket
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import structlog
import yaml

from admission.certificates.issuing import Authority, new_authority
from admission.certificates.problems import CertificateProblem
from admission.config import ServerSettings
from admission.errors import SettingsError
from admission.judge.views import Views, read_views
from admission.reader import Reader
from admission.response import Answer, allowed
from admission.review import DEFAULT_TIMEOUT_SECONDS, Route
from admission.server import MAX_BODY_BYTES, Probes, WebhookServer
from admission.steer.permission import FIXED_OWNERS
from admission.values import Documents, NodeClass, Workload
from estimator.units import KIB, MIB
from tests.admission.test_handler import FITS, FIVE_MISTAKES, TOO_LARGE, Bench, job, review_of
from tests.builders import node

NAMES = ("localhost", "127.0.0.1")
WAIT_SECONDS = 20.0
HIDDEN = "the process that serves lets nobody but root look into it"


class Site:
    """A running server, the CA its clients trust, and what its probes say."""

    def __init__(self, directory: Path, *, read: Reader = read_views, **settings: Any) -> None:
        self.authority = new_authority()
        self.directory = directory
        certificate, key = self.authority.issue(NAMES).write(directory)
        self.bench = Bench(read=read)
        self.not_ready: str | None = None
        self.expiries: list[float] = []
        self.certificate_problems: list[frozenset[CertificateProblem]] = []
        self.server = WebhookServer(
            ServerSettings(
                host="127.0.0.1", port=0, cert_file=certificate, key_file=key, **settings
            ),
            reviewer=self.bench.handler,
            probes=Probes(
                not_ready=lambda: self.not_ready,
                metrics=self.bench.metrics.text,
                certificate_loaded=self.expiries.append,
                certificate_problems=self.certificate_problems.append,
                report=self.bench.handler.report,
            ),
            poll_seconds=0.01,
        )

    @property
    def base(self) -> str:
        """Return the address of the server."""
        return f"https://localhost:{self.server.port}"

    def session(self) -> aiohttp.ClientSession:
        """Return a client that trusts the CA."""
        return session_for(self.authority)


def session_for(authority: Authority) -> aiohttp.ClientSession:
    """Return a client that trusts *authority* alone, and waits for nothing forever."""
    trust = ssl.create_default_context(cadata=authority.bundle.decode())
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trust),
        timeout=aiohttp.ClientTimeout(total=WAIT_SECONDS),
    )


@asynccontextmanager
async def running(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    """Run the server of *site* and yield a client for it."""
    async with site.server.running(), site.session() as session:
        yield session


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not is_so():  # noqa: ASYNC110 (a condition of another process or thread)
            await asyncio.sleep(0.005)


async def post(
    session: aiohttp.ClientSession,
    url: str,
    body: object,
    *,
    content_type: str = "application/json",
) -> tuple[int, bytes]:
    """Return status and body of the answer to a POST."""
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    headers = {"Content-Type": content_type}
    async with session.post(url, data=io.BytesIO(data), headers=headers) as answer:
        return answer.status, await answer.read()


async def test_review_is_answered_over_tls(tmp_path: Path) -> None:
    """The whole way: bytes in, denial out, counted in `/metrics`."""
    site = Site(tmp_path, drain_seconds=0)
    async with running(site) as session:
        url = f"{site.base}/validate?timeout=5s"
        status, body = await post(session, url, review_of(job(batch_size=TOO_LARGE)))
        async with session.get(f"{site.base}/metrics") as answer:
            metrics = await answer.text()
            content_type = answer.headers["Content-Type"]

    assert status == 200
    assert orjson.loads(body)["response"]["allowed"] is False
    assert 'verdict="oom"} 1.0' in metrics
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"


BAD_INPUT: dict[str, tuple[object, str, int]] = {
    "no JSON": (b"{", "application/json", 400),
    "nothing": (b"", "application/json", 400),
    "binary": (b"\x80\x81" * 500, "application/json", 400),
    "nested without end": (b"[" * 100_000, "application/json", 400),
    "another content type": (review_of(job()), "application/yaml", 400),
    "another version": (
        {**review_of(job()), "apiVersion": "admission.k8s.io/v1beta1"},
        "application/json",
        400,
    ),
    "no uid": (review_of(job(), uid=""), "application/json", 400),
    "no object": (review_of(None), "application/json", 400),
    "longer than 8 MiB": (b" " * (MAX_BODY_BYTES + 1), "application/json", 413),
    "an unknown kind": (
        review_of({"apiVersion": "v1", "kind": "Secret", "metadata": {}}),
        "application/json",
        200,
    ),
    "five mistakes in the annotation": (
        review_of(job(spec=FIVE_MISTAKES)),
        "application/json",
        200,
    ),
    "a batch of 10^12": (review_of(job(batch_size=10**12)), "application/json", 200),
}


@pytest.mark.parametrize("name", BAD_INPUT)
async def test_bad_input_gets_its_status_and_the_next_review_an_answer(
    tmp_path: Path, name: str
) -> None:
    """Nothing hangs, no traceback leaves the process, and nobody is denied for it."""
    body, content_type, expected = BAD_INPUT[name]
    site = Site(tmp_path, drain_seconds=0)
    async with running(site) as session:
        url = f"{site.base}/validate"
        status, answer = await post(session, url, body, content_type=content_type)
        after, _ = await post(session, url, review_of(job(batch_size=FITS)))

    assert (status, after) == (expected, 200)
    assert b"Traceback" not in answer
    document = orjson.loads(answer)
    if expected == 200:
        assert document["response"]["allowed"] is True
    else:
        assert (document["kind"], document["code"]) == ("Status", expected)
        assert document["message"]


async def test_body_of_8_mib_is_still_read(tmp_path: Path) -> None:
    """The limit is on what is longer: a padded review of just that size is answered."""
    body = orjson.dumps(review_of(job(batch_size=FITS)))
    site = Site(tmp_path, drain_seconds=0)
    async with running(site) as session:
        padded = body.ljust(MAX_BODY_BYTES)
        status, _ = await post(session, f"{site.base}/validate", padded)

    assert status == 200


@pytest.mark.parametrize(
    ("method", "path", "expected", "allow"),
    [
        ("GET", "/mutate", 405, "POST"),
        ("GET", "/validate", 405, "POST"),
        ("PUT", "/validate", 405, "POST"),
        ("GET", "/", 404, None),
        ("GET", "/" + "x" * 7000, 404, None),
        ("POST", "/readyz", 405, "GET,HEAD"),
    ],
)
async def test_other_routes_answer_with_a_status_object(
    tmp_path: Path, method: str, path: str, expected: int, allow: str | None
) -> None:
    """Also where there is nothing, the answer is short JSON."""
    site = Site(tmp_path, drain_seconds=0)
    async with running(site) as session, session.request(method, f"{site.base}{path}") as answer:
        document = await answer.json()

    assert (answer.status, document["code"]) == (expected, expected)
    assert len(document["message"]) < 300
    assert answer.headers.get("Allow") == allow


async def test_probes_may_ask_for_the_head_alone(tmp_path: Path) -> None:
    """As load balancers do."""
    site = Site(tmp_path, drain_seconds=0)
    async with running(site) as session, session.head(f"{site.base}/healthz") as answer:
        assert (answer.status, await answer.read()) == (200, b"")


@pytest.mark.parametrize("form", ["whole", "in pieces", "asked for"])
async def test_review_is_read_however_it_is_sent(tmp_path: Path, form: str) -> None:
    """In one piece, in chunks, or once we said that it may come (`Expect: 100-continue`)."""
    body = orjson.dumps(review_of(job(batch_size=FITS)))

    async def pieces() -> AsyncIterator[bytes]:
        yield body[:100]
        yield body[100:]

    data = pieces() if form == "in pieces" else body
    site = Site(tmp_path, drain_seconds=0)
    async with running(site) as session:
        request = session.post(
            f"{site.base}/validate",
            data=data,
            headers={"Content-Type": "application/json"},
            expect100=form == "asked for",
        )
        async with request as answer:
            response = (await answer.json())["response"]

    assert (answer.status, response["allowed"]) == (200, True)


@pytest.mark.parametrize(("name", "route"), [("mutating", "/mutate"), ("validating", "/validate")])
def test_api_server_is_told_to_call_what_is_served(name: str, route: str) -> None:
    """The configuration's path, timeout and policies are those the server is made for."""
    webhooks = webhooks_of(name)

    for webhook in webhooks:
        assert webhook["clientConfig"] == {
            "service": {
                "name": "vramgate",
                "namespace": "vramgate-system",
                "path": route,
                "port": 443,
            }
        }
        assert webhook["timeoutSeconds"] == DEFAULT_TIMEOUT_SECONDS
        assert webhook["failurePolicy"] == "Ignore"
        assert webhook["sideEffects"] == "None"
        assert webhook["admissionReviewVersions"] == ["v1"]
        assert all("/" not in name for rule in webhook["rules"] for name in rule["resources"])


def webhooks_of(name: str) -> list[dict[str, Any]]:
    """Return the webhooks of a configuration that is shipped."""
    path = Path(__file__).parents[2] / "deploy" / "install.yaml"
    kind = f"{name.capitalize()}WebhookConfiguration"
    documents = (found for found in yaml.safe_load_all(path.read_text()) if found)
    (document,) = (found for found in documents if found["kind"] == kind)
    webhooks: list[dict[str, Any]] = document["webhooks"]
    return webhooks


def test_pods_that_are_sent_are_those_that_may_be_steered() -> None:
    """The condition of the webhook names the owners that the code knows."""
    (pods,) = (one for one in webhooks_of("mutating") if one["name"] == "pods.vramgate.dev")
    (condition,) = (one["expression"] for one in pods["matchConditions"] if "owner" in one["name"])

    named = set(re.findall(r"'([a-z0-9.]+\.[a-z]+/[A-Za-z]+)'", condition))

    assert named == {"/".join(owner) for owner in FIXED_OWNERS}


async def test_compressed_body_is_not_unpacked(tmp_path: Path) -> None:
    """The API server sends none, and a small one could unpack to gigabytes."""
    import gzip

    site = Site(tmp_path, drain_seconds=0)
    async with running(site) as session:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        data = gzip.compress(orjson.dumps(review_of(job())))
        async with session.post(f"{site.base}/validate", data=data, headers=headers) as answer:
            assert answer.status == 400


async def test_client_that_hangs_up_harms_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Half a handshake, half a request, then the next review. No error of ours is logged."""
    site = Site(tmp_path, drain_seconds=0)
    async with running(site) as session:
        with socket.create_connection(("127.0.0.1", site.server.port)) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        trust = ssl.create_default_context(cadata=site.authority.bundle.decode())
        _, writer = await asyncio.open_connection("localhost", site.server.port, ssl=trust)
        head = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
        writer.write(head + b"{")
        await writer.drain()
        writer.transport.abort()

        status, _ = await post(session, f"{site.base}/validate", review_of(job()))

    assert status == 200
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


class Spinning:
    """Reads without a pause until it is told to end, as a hostile script makes it."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    def __call__(
        self, workload: Workload, *, classes: Sequence[NodeClass], documents: Documents
    ) -> Views:
        """Return what the real one reads, late where it does not hold up the loop."""
        if threading.current_thread() is not threading.main_thread():
            while not self.may_end.is_set():
                pass
        return read_views(workload, classes=classes, documents=documents)


async def test_hostile_review_leaves_the_server_awake(tmp_path: Path) -> None:
    """While a large body is read, health and other reviews are answered."""
    spin = Spinning()
    site = Site(tmp_path, read=spin, drain_seconds=0)
    hostile = job()
    hostile["metadata"]["annotations"]["script"] = "x" * 106_000
    url = "/validate?timeout=25s"
    async with running(site) as session:
        await post(session, site.base + url, review_of(job()))

        reading = asyncio.create_task(post(session, site.base + url, review_of(hostile)))
        async with asyncio.timeout(WAIT_SECONDS):
            for _ in range(4):
                async with session.get(f"{site.base}/healthz") as answer:
                    assert answer.status == 200
                assert (await post(session, site.base + url, review_of(job())))[0] == 200
        is_over = reading.done()
        spin.may_end.set()
        status, _ = await reading

    assert status == 200
    assert not is_over


async def test_readiness_follows_its_probe(tmp_path: Path) -> None:
    """503 with the reason until the nodes are listed; alive all the time."""
    site = Site(tmp_path, drain_seconds=0)
    async with running(site) as session:
        found = []
        for site.not_ready in ("the nodes are not listed yet", None):
            async with session.get(f"{site.base}/readyz") as answer:
                found.append((answer.status, await answer.text()))
        async with session.get(f"{site.base}/healthz") as answer:
            found.append((answer.status, await answer.text()))

    assert found == [(503, "the nodes are not listed yet\n"), (200, "ok\n"), (200, "ok\n")]


async def test_metrics_have_a_plain_port_if_wanted(tmp_path: Path) -> None:
    """Prometheus need not know our CA."""
    site = Site(tmp_path, drain_seconds=0, metrics_port=0)
    async with running(site) as session:
        port = site.server.metrics_port
        async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            status = answer.status

    assert port != site.server.port
    assert status == 200


async def test_changed_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    """A client that trusts only the new CA gets in, and one from before keeps its connection."""
    site = Site(tmp_path, drain_seconds=0)
    async with running(site) as before:
        url = f"{site.base}/validate"
        await post(before, url, review_of(job()))
        renewed = new_authority("another")

        renewed.issue(NAMES).write(tmp_path)
        await until(lambda: len(site.expiries) == 2)

        async with session_for(renewed) as after:
            assert (await post(after, url, review_of(job())))[0] == 200
        assert (await post(before, url, review_of(job())))[0] == 200
        async with site.session() as stranger:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await post(stranger, url, review_of(job()))


@pytest.mark.parametrize("spoiled", ["rubbish", "nothing"])
async def test_broken_certificate_leaves_the_old_one_in_place(tmp_path: Path, spoiled: str) -> None:
    """It is told once, and once more when there is a pair again; meanwhile the old one stays."""
    site = Site(tmp_path, drain_seconds=0)
    refused = frozenset({CertificateProblem.FILES_REFUSED})
    with structlog.testing.capture_logs() as lines:
        async with running(site):
            spoil = write_rubbish if spoiled == "rubbish" else Path.unlink
            spoil(tmp_path / "tls.crt")
            await until(lambda: site.certificate_problems[-3:] == [refused] * 3)
            async with site.session() as session:
                assert (await post(session, f"{site.base}/validate", review_of(job())))[0] == 200
            site.authority.issue(NAMES).write(tmp_path)
            await until(lambda: not site.certificate_problems[-1])

    told = [line["event"] for line in lines if "certificate problem" in line["event"]]
    assert told == ["certificate problem", "certificate problem over"]


async def test_expired_certificate_in_files_is_told_once(tmp_path: Path) -> None:
    """Nobody renews it here: its owner must be told, and it is served on."""
    site = Site(tmp_path, drain_seconds=0)
    now = datetime.now(UTC)
    expired = site.authority.issue(NAMES, lifetime=timedelta(hours=1), now=now - timedelta(days=1))
    expired.write(tmp_path)
    told = frozenset({CertificateProblem.EXPIRED})
    with structlog.testing.capture_logs() as lines:
        async with site.server.running():
            await until(lambda: site.certificate_problems[-3:] == [told] * 3)

    problems = [line for line in lines if line["event"] == "certificate problem"]
    assert [line["problem"] for line in problems] == ["expired"]


def write_rubbish(path: Path) -> None:
    """Write what is no certificate."""
    path.write_text("rubbish")


async def test_pair_that_does_not_belong_together_does_not_start(tmp_path: Path) -> None:
    """The problem names both settings, and not OpenSSL's source files."""
    site = Site(tmp_path)
    (tmp_path / "tls.key").write_bytes(new_authority().issue(NAMES).key)

    with pytest.raises(SettingsError, match=r"server\.certFile, server\.keyFile") as caught:
        async with site.server.running():
            pass

    assert "_ssl.c" not in str(caught.value)


async def test_taken_port_does_not_start(tmp_path: Path) -> None:
    """The problem names the setting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        site = Site(tmp_path)
        settings = ServerSettings(
            host="127.0.0.1",
            port=taken.getsockname()[1],
            cert_file=tmp_path / "tls.crt",
            key_file=tmp_path / "tls.key",
        )
        probes = Probes(not_ready=lambda: None, metrics=bytes, certificate_loaded=lambda _: None)
        server = WebhookServer(settings, reviewer=site.bench.handler, probes=probes)

        with pytest.raises(SettingsError, match=r"server\.port: .*in use"):
            async with server.running():
                pass


class SlowReviewer:
    """Allows everything, once it may."""

    def __init__(self) -> None:
        self.num_waiting = 0
        self.may_answer = asyncio.Event()

    async def answer(
        self, body: bytes, *, content_type: str, timeout_text: str | None, route: Route
    ) -> Answer:
        """Return the answer, late."""
        assert (content_type, timeout_text, route) == ("application/json", None, Route.VALIDATE)
        self.num_waiting += 1
        await self.may_answer.wait()
        return allowed(orjson.loads(body)["request"]["uid"])


async def test_drain_answers_what_is_in_flight_and_closes(tmp_path: Path) -> None:
    """Reviews being answered at SIGTERM get their answer, and the word to close."""
    site = Site(tmp_path, drain_seconds=5)
    slow = SlowReviewer()
    server = WebhookServer(
        ServerSettings(
            host="127.0.0.1",
            port=0,
            cert_file=tmp_path / "tls.crt",
            key_file=tmp_path / "tls.key",
        ),
        reviewer=slow,
        probes=Probes(not_ready=lambda: None, metrics=bytes, certificate_loaded=lambda _: None),
    )
    async with site.session() as session:
        context = server.running()
        await context.__aenter__()
        port = server.port
        url = f"https://localhost:{port}/validate"

        async def review(number: int) -> tuple[int, str, str]:
            body = orjson.dumps(review_of(job(), uid=str(number)))
            headers = {"Content-Type": "application/json"}
            async with session.post(url, data=body, headers=headers) as answer:
                uid = orjson.loads(await answer.read())["response"]["uid"]
                return answer.status, answer.headers.get("Connection", ""), uid

        reviews = [asyncio.create_task(review(number)) for number in range(20)]
        await until(lambda: slow.num_waiting == 20)
        leaving = asyncio.create_task(context.__aexit__(None, None, None))
        await until(lambda: not is_listening(port))
        slow.may_answer.set()

        assert await asyncio.gather(*reviews) == [(200, "close", str(n)) for n in range(20)]
        await leaving


def is_listening(port: int) -> bool:
    """Return whether somebody accepts connections on *port*."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_drain_closes_idle_connections_only_at_its_end(tmp_path: Path) -> None:
    """A review that comes on an open connection while draining is still answered."""
    site = Site(tmp_path, drain_seconds=30)
    async with site.session() as session:
        context = site.server.running()
        await context.__aenter__()
        url = f"{site.base}/validate"
        await post(session, url, review_of(job()))
        leaving = asyncio.create_task(context.__aexit__(None, None, None))
        await until(lambda: not is_listening(site.server.port))

        body = orjson.dumps(review_of(job()))
        headers = {"Content-Type": "application/json"}
        async with session.post(url, data=body, headers=headers) as answer:
            assert (answer.status, answer.headers["Connection"]) == (200, "close")
        async with asyncio.timeout(WAIT_SECONDS):
            await leaving


class Served:
    """`vramgate serve` as a process of its own, without a cluster or workers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = new_authority()
        certificate, key = self.authority.issue(NAMES).write(directory)
        (directory / "nodes.yaml").write_text(yaml.safe_dump({"kind": "List", "items": [node()]}))
        settings = {
            "server": {
                "host": "127.0.0.1",
                "port": 0,
                "certFile": str(certificate),
                "keyFile": str(key),
            },
            "policy": {"mode": "enforce"},
            "nodes": {"file": str(directory / "nodes.yaml")},
            "workers": {"preload": []},
        }
        self.settings = directory / "settings.yaml"
        self.settings.write_text(yaml.safe_dump(settings))
        self.lines: list[dict[str, Any]] = []

    @asynccontextmanager
    async def running(
        self, *, holds_log: bool = False
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Start it, wait until it listens, and end it if the test did not.

        *holds_log*: from then on nobody reads its log, until `may_read`.
        """
        self.may_read = asyncio.Event()
        if not holds_log:
            self.may_read.set()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "admission",
            "serve",
            "--config",
            str(self.settings),
            stderr=asyncio.subprocess.PIPE,
            limit=4 * KIB if holds_log else 64 * KIB,
            env={**os.environ, "KUBERNETES_SERVICE_HOST": ""},
        )
        reading = asyncio.create_task(self._read(process))
        try:
            await until(lambda: any(line["event"] == "listening" for line in self.lines))
            yield process
        finally:
            self.may_read.set()
            if process.returncode is None:
                process.kill()
            await process.wait()
            await reading

    @property
    def port(self) -> int:
        """Return the port it logged."""
        (port,) = (line["port"] for line in self.lines if line["event"] == "listening")
        return int(port)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self.lines.append(orjson.loads(line))
            if self.lines[-1]["event"] == "listening":
                await self.may_read.wait()


async def test_serve_loses_no_review_when_told_to_stop(tmp_path: Path) -> None:
    """Reviews stream over open connections through SIGTERM; each sent is answered."""
    served = Served(tmp_path)
    answered, refused = [], []
    async with served.running() as process, session_for(served.authority) as session:
        url = f"https://localhost:{served.port}/validate"

        async def stream(client: int) -> None:
            for number in range(100_000):
                uid = f"{client}-{number}"
                try:
                    status, body = await post(session, url, review_of(job(gpus=0), uid=uid))
                except aiohttp.ClientConnectorError:
                    refused.append(uid)
                    return
                assert status == 200
                assert orjson.loads(body)["response"]["uid"] == uid
                answered.append(uid)

        clients = [asyncio.create_task(stream(client)) for client in range(8)]
        await until(lambda: len(answered) > 200)
        process.send_signal(signal.SIGTERM)
        await asyncio.gather(*clients)
        status = await asyncio.wait_for(process.wait(), WAIT_SECONDS)

    assert status == 0
    assert len(refused) == 8
    events = [line["event"] for line in served.lines]
    assert "draining" in events
    assert events[-1] == "stopped"


async def test_serve_holds_little_memory(tmp_path: Path) -> None:
    """At most 120 MiB resident after a review: no framework is imported where reviews wait."""
    served = Served(tmp_path)
    async with served.running() as process, session_for(served.authority) as session:
        url = f"https://localhost:{served.port}/validate"
        await post(session, url, review_of(job(gpus=0)))
        status = told_of(process.pid, "status").splitlines()

    (line,) = (line for line in status if line.startswith("VmRSS"))
    assert int(line.split()[1]) * KIB <= 120 * MIB


@pytest.mark.skipif(os.getuid() != 0, reason=HIDDEN)
async def test_serve_holds_no_framework(tmp_path: Path) -> None:
    """Its libraries would be among what the process has mapped."""
    served = Served(tmp_path)
    async with served.running() as process, session_for(served.authority) as session:
        url = f"https://localhost:{served.port}/validate"
        await post(session, url, review_of(job(gpus=0)))
        maps = told_of(process.pid, "maps")

    assert "libc" in maps
    assert "libtorch" not in maps


def told_of(pid: int, name: str) -> str:
    """Return what the kernel says of a process."""
    return Path(f"/proc/{pid}/{name}").read_text()
