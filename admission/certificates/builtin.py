"""Run the built-in certificates beside the server.

client, settings -> a Keeper whose turns follow every change, until the block ends
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from admission.certificate_settings import CertificateSettings
from admission.certificates.keeper import Keeper
from admission.certificates.problems import Telling
from admission.cluster import Client, Resource
from admission.objects import ClusterObjects
from admission.outages import Outages
from admission.values import Json
from admission.watch import Snapshot, Watch
from admission.workloads.fields import part

FAULT_SECONDS = 60.0
"""A bug that one state of the cluster brings out may be over with the next."""


@contextlib.asynccontextmanager
async def kept_certificates(
    client: Client,
    settings: CertificateSettings,
    *,
    tell: Telling,
    outages: Outages | None = None,
    fault_seconds: float = FAULT_SECONDS,
) -> AsyncIterator[Keeper]:
    """Yield a keeper that is at work. Serving may begin at once: nothing is waited for."""
    keeper = Keeper(ClusterObjects(client), settings, tell=tell)
    woken = asyncio.Event()
    with _watching(client, keeper, woken, outages):
        task = asyncio.create_task(_keep_on(keeper, woken, fault_seconds))
        try:
            yield keeper
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _keep_on(keeper: Keeper, woken: asyncio.Event, fault_seconds: float) -> None:
    """Take turns for ever; a fault of ours is told by its kind only, its values may be keys."""
    while True:
        turns = asyncio.create_task(_keep(keeper, woken))
        try:
            await asyncio.wait([turns])
        finally:
            turns.cancel()
        if (error := turns.exception()) is not None:
            keeper.failed(error)
        await asyncio.sleep(fault_seconds)


async def _keep(keeper: Keeper, woken: asyncio.Event) -> None:
    """Take a turn whenever something changed, and when it is time."""
    while True:
        woken.clear()
        pause = await asyncio.to_thread(keeper.turn)
        await asyncio.sleep(pause.least)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause.most - pause.least):
                await woken.wait()


@contextlib.contextmanager
def _watching(
    client: Client, keeper: Keeper, woken: asyncio.Event, outages: Outages | None
) -> Iterator[None]:
    """Wake the keeper when the Secret or a registration changes: their versions are followed."""
    loop = asyncio.get_running_loop()

    def wake(_: Snapshot) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(woken.set)

    places = [(keeper.secret.name, keeper.secret.collection), *keeper.registrations.places()]
    followed = [
        Resource(path=path, cut=cut_version, metadata_only=True, name=name) for name, path in places
    ]
    watches = [Watch(client, resource, wake, outages=outages) for resource in followed]
    for watch in watches:
        watch.start()
    try:
        yield
    finally:
        for watch in watches:
            watch.stop()


def cut_version(document: Json) -> Json:
    """Return the name and the version of an object: what it holds is read by the keeper."""
    metadata = part(part(document).get("metadata"))
    return {"metadata": {key: metadata.get(key) for key in ("name", "resourceVersion")}}
