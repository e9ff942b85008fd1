"""`vramgate controller`: what happens to jobs after they were admitted.

    settings, kubeconfig -> Lease -> watches, duties, workers, until SIGTERM

Puts the parts together and holds no logic of its own. A controller that loses its Lease ends with
status 3: the new one reads everything again. Imports no framework.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path

import click
import structlog

from admission.cluster import Client, connect
from admission.commands.following import followed_inventory, own_namespace
from admission.commands.live import pool_of, workers_of
from admission.commands.options import FILE, Word
from admission.commands.signals import told_to_stop
from admission.config import LogLevel, Settings, load_settings
from admission.controller.acting import Acting
from admission.controller.clock import ClusterClock
from admission.controller.duties import NAMES, duties_of
from admission.controller.exposition import Exposition
from admission.controller.judging import Judges
from admission.controller.learning import Learning
from admission.controller.lease import Lease
from admission.controller.parts import Parts
from admission.controller.predicted import nodes_of, predicted_of
from admission.controller.refs import Discovery
from admission.controller.store import Store
from admission.controller.watching import Watching
from admission.controller.working import Working
from admission.detect import load_parts
from admission.errors import AdmissionError
from admission.estimates import EstimatePool
from admission.handling.asked import NoBooks
from admission.handling.judging import Judging
from admission.handling.mutating import Mutating
from admission.handling.policies import Policies
from admission.inventory import Inventory
from admission.learning.floors import Learnt
from admission.logs import configure_logs
from admission.objects import WritableObjects
from admission.outages import Outages
from admission.probes import Probes, answering
from admission.reader import ReviewReader
from admission.sources.setup import fetcher_of
from admission.version import package_version
from admission.workloads import KINDS
from admission.workloads.custom import with_custom
from estimator.processes.jail import hide_memory

LISTED_SECONDS = 60.0

_log = structlog.get_logger()


@click.command()
@click.option("--config", type=FILE, help="Settings file (YAML). Without it every default holds.")
@click.option("--kubeconfig", type=FILE, help="How to reach the API server, outside a cluster.")
@click.option("--log-level", type=Word(LogLevel), help="Instead of the level in the settings.")
def command(config: Path | None, kubeconfig: Path | None, log_level: LogLevel | None) -> None:
    """Look after jobs once they were admitted, until SIGTERM."""
    hide_memory()  # before the token is read: workers run as the same user
    settings = load_settings(config)
    configure_logs(log_level or settings.logs.level, form=settings.logs.format)
    try:
        asyncio.run(control(settings, connect(kubeconfig)))
    except AdmissionError:
        raise
    except Exception:
        _log.exception("controller failed")
        raise


class LeaseLostError(AdmissionError):
    """Another controller may be at work now: this one ends."""


@dataclass(slots=True)
class _State:
    """What the plain routes tell."""

    unready: str | None = "it has just started"
    failed: str | None = None


async def control(settings: Settings, client: Client) -> None:
    """Lead and work until SIGTERM or SIGINT.

    Raises:
        SettingsError: if the port is taken.
        LeaseLostError: if the Lease was lost: nothing more is written.
    """
    load_parts()
    clock = ClusterClock()
    objects = WritableObjects(client, dated=clock.saw)
    namespace = own_namespace()
    lease = Lease(
        objects,
        namespace=namespace,
        name=settings.controller.lease_name,
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        seconds=settings.controller.lease_seconds,
        now=clock.now,
    )
    state = _State()
    queue: list[Working] = []
    exposition = Exposition(duties=NAMES, queued=lambda: sum(each.length for each in queue))
    probes = Probes(
        unhealthy=lambda: state.failed, not_ready=lambda: state.unready, metrics=exposition.text
    )
    section = settings.controller
    with (
        told_to_stop() as told,
        answering(section.host, section.port, probes, setting="controller.port") as port,
    ):
        _log.info("listening", version=package_version(), port=port)
        state.unready = None  # whoever waits for the Lease is ready to take it
        try:
            if await _leads(lease, told):
                exposition.leads(True)
                _log.info("leading", namespace=namespace, name=section.lease_name)
                await _work(
                    settings, client, objects, lease, clock, exposition, queue, namespace, told
                )
        finally:
            await asyncio.to_thread(lease.release)
    _log.info("stopped")


async def _leads(lease: Lease, told: asyncio.Event) -> bool:
    """Wait for the Lease; return False if told to stop before."""
    while not told.is_set():
        if await asyncio.to_thread(lease.turn):
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(lease.pause):
                await told.wait()
    return False


async def _renewed(lease: Lease) -> None:
    """Renew the Lease until it is lost."""
    while True:
        await asyncio.sleep(lease.pause)
        if not await asyncio.to_thread(lease.turn) and not lease.is_held:
            raise LeaseLostError("the lease was lost: another controller may be at work")


async def _work(
    settings: Settings,
    client: Client,
    objects: WritableObjects,
    lease: Lease,
    clock: ClusterClock,
    exposition: Exposition,
    queue: list[Working],
    namespace: str,
    told: asyncio.Event,
) -> None:
    outages = Outages(exposition.watches_interrupted)
    workers = workers_of(settings)
    pool = pool_of(settings, workers, exposition)
    store = Store()
    async with contextlib.AsyncExitStack() as stack:
        inventory = await stack.enter_async_context(
            followed_inventory(
                settings, client, changed=lambda _: store.classes_changed(), outages=outages
            )
        )
        stack.push_async_callback(workers.close)
        stack.push_async_callback(pool.close)
        discovery = Discovery(objects)
        judges = _judges(settings, client, objects, discovery, pool, inventory)
        parts = Parts(
            settings=settings.controller,
            store=store,
            judges=judges,
            inventory=inventory,
            exposition=exposition,
            namespace=namespace,
            now=clock.now,
        )
        learning = Learning(objects, namespace=namespace, now=clock.now)
        working = Working(
            duties_of(parts),
            Acting(
                objects,
                discovery,
                moved=exposition.moved,
                told=exposition.told,
                learn=learning.learn,
                remember=learning.remember,
                now=clock.now,
            ),
            may_act=lambda: lease.is_held,
            count=exposition.acted,
        )
        queue.append(working)
        exposition.show(
            lambda: predicted_of(store.pods(), inventory.classes),
            (lambda: nodes_of(inventory.classes)) if settings.controller.node_series else None,
        )
        store.tell(working)
        watching = Watching(client, discovery, store, outages=outages, also=working.followed())
        await workers.start()
        tasks = [
            asyncio.create_task(_renewed(lease)),
            asyncio.create_task(watching.run()),
            asyncio.create_task(_working(working, store, inventory)),
            asyncio.create_task(told.wait()),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _working(working: Working, store: Store, inventory: Inventory) -> None:
    """Work once everything is known: half a list would make half a cluster's pods wrong."""
    await inventory.listed()
    try:
        async with asyncio.timeout(LISTED_SECONDS):
            await store.listed()
    except TimeoutError:
        # A kind that may not be listed: its watch has told so.
        _log.warning("working without some kinds", seconds=LISTED_SECONDS)
    await working.run()


def _judges(
    settings: Settings,
    client: Client,
    objects: WritableObjects,
    discovery: Discovery,
    pool: EstimatePool,
    inventory: Inventory,
) -> Judges:
    """Return who judges as the webhook would, with the webhook's settings."""
    policies = Policies(policy=settings.policy, steering=settings.steering, cluster=inventory)
    judging = Judging(
        reader=ReviewReader(kinds=with_custom(KINDS, settings.workloads.kinds)),
        sources=fetcher_of(settings.sources, client=client),
        clock=asyncio.get_running_loop().time,
        # What was learnt of an object is written on it: the ConfigMap is for what is made anew.
        learnt=Learnt(),
    )
    return Judges(
        objects=objects,
        discovery=discovery,
        pool=pool,
        judging=judging,
        mutating=Mutating(judging=judging, policies=policies, metrics=NoBooks()),
        policies=policies,
        clock=asyncio.get_running_loop().time,
    )
