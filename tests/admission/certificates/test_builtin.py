"""The keeper at work beside a server: from the first moment to the last."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
import yaml

from admission.certificate_settings import CertificateSettings
from admission.certificates.builtin import cut_version, kept_certificates
from admission.certificates.issuing import new_authority
from admission.certificates.problems import CertificateProblem, Telling
from admission.certificates.served import StoredCertificate
from admission.cluster import Client, connect
from admission.config import ServerSettings
from admission.response import Answer, allowed
from admission.server import Probes, WebhookServer

WAIT_SECONDS = 20.0
Told = frozenset[CertificateProblem]


class Reviewer:
    """Somebody who allows everything."""

    async def answer(self, body: bytes, **_: object) -> Answer:
        """Return the same to everybody."""
        assert body
        return allowed("uid")


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not is_so():  # noqa: ASYNC110 (a condition of another thread)
            await asyncio.sleep(0.005)


@pytest.fixture
def nobody(tmp_path: Path) -> Client:
    """A client of an API server that is not there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return connect(path)


async def test_start_waits_for_no_api_server(nobody: Client) -> None:
    """Health can be answered at once; what is missing is named, and the end is not held up."""
    told: list[Told] = []
    async with kept_certificates(
        nobody, CertificateSettings(), tell=Telling(problems=told.append)
    ) as keeper:
        assert keeper.not_ready() == "there is no certificate yet"
        await until(lambda: bool(told))
        reason = keeper.not_ready()

    assert told[0] == {CertificateProblem.API_SERVER}
    assert reason == (
        "there is no certificate yet: the Secret cannot be read: the API server does not answer"
    )


async def test_fault_of_ours_is_told(nobody: Client) -> None:
    """A keeper that died would otherwise be noticed a year later; it goes on after a while."""
    told: list[Told] = []

    def tell(problems: Told) -> None:
        told.append(problems)
        if len(told) == 1:
            raise RuntimeError("a bug")

    settings = CertificateSettings()
    async with kept_certificates(nobody, settings, tell=Telling(problems=tell), fault_seconds=0.01):
        await until(lambda: len(told) >= 3)

    assert told[1:3] == [{CertificateProblem.FAULT}, {CertificateProblem.API_SERVER}]


async def test_server_takes_up_what_it_is_handed() -> None:
    """From a certificate that nobody trusts to one that a client believes, on the same port."""
    authority = new_authority()
    expiries: list[float] = []
    certificate = StoredCertificate("localhost")
    server = WebhookServer(
        ServerSettings(host="127.0.0.1", port=0, drain_seconds=0),
        reviewer=Reviewer(),
        probes=Probes(not_ready=lambda: None, metrics=bytes, certificate_loaded=expiries.append),
        certificate=certificate,
        poll_seconds=0.01,
    )
    async with server.running():
        url = f"https://localhost:{server.port}/healthz"
        before = await status_of(url, trust=False)
        untold = list(expiries)
        pair = authority.issue(["localhost"])
        await asyncio.to_thread(certificate.serve, pair)
        after = await status_of(url, trust=authority.bundle)
        await until(lambda: bool(expiries))

    assert (before, after, untold) == (200, 200, [])
    assert certificate.expires is not None
    assert expiries == [certificate.expires.timestamp()]


async def status_of(url: str, *, trust: bytes | bool) -> int:
    """Return the status of *url* for a client that trusts a CA, or checks nothing."""
    import ssl

    secure: ssl.SSLContext | bool = False
    if isinstance(trust, bytes):
        secure = ssl.create_default_context(cadata=trust.decode())
    connector = aiohttp.TCPConnector(ssl=secure)
    async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as answer:
        return answer.status


def test_of_a_watched_object_the_version_is_kept() -> None:
    """A Secret's data never crosses the wire for it, and is never held."""
    whole = {"metadata": {"name": "a", "resourceVersion": "7", "labels": {}}, "data": {"k": "v"}}

    assert cut_version(whole) == {"metadata": {"name": "a", "resourceVersion": "7"}}
