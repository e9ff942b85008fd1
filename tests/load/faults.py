"""What goes wrong while reviews are sent, on a schedule that the seed decides.

    seed -> which fault when; Scene -> the fault, and proof that it happened and is over

Each fault ends when the server has got over it, or is seen to serve on. Waits for conditions; the
pauses of a slow client are the fault itself.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from admission.review import Route
from tests.load import processes
from tests.load.answering import LATE, NO_DOCUMENT, UNSEEN, Review
from tests.load.bodies import body_of
from tests.load.cluster import Cluster
from tests.load.connection import connect
from tests.load.sending import LOST, Sender
from tests.load.serving import Serving, until
from tests.load.specs import carrier, from_hub, heavy_spec
from tests.load.states import BASE, STATES

ASKED = 4
"""Reviews that a fault sends itself, to see it work."""
PIECES = 8
PIECE_SECONDS = 0.1
LOOK_SECONDS = 0.002
"""How often is looked for a worker to kill: it lives for tens of milliseconds."""
BODY_TIMED_OUT = 408


@dataclass(slots=True, kw_only=True)
class Scene:
    """What faults act on, and what they did."""

    serving: Serving
    cluster: Cluster
    sender: Sender
    series: Mapping[str, frozenset[str]]
    """State -> what the server shows of its cards."""
    rng: random.Random
    injected: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    """Faults that did not do what they should, in words."""
    num_left: int = 0
    """Reviews whose client went away after it had sent all of them."""
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1 << 30)))
    state: str = BASE

    def expect(self, holds: bool, words: str) -> None:
        """Note *words* unless *holds*."""
        if not holds:
            self.missed.append(words)

    def heavy(self) -> Review:
        """Return a review that takes a worker long."""
        obj = carrier(number := next(self.numbers), heavy_spec(number))
        obj["metadata"]["name"] = f"heavy-{number}"
        return Review(body=body_of(obj, route=Route.MUTATE), subject=f"heavy-{number}")


async def worker_killed(scene: Scene) -> None:
    """Kill a worker at its work; the review it worked for is answered all the same."""
    killed = False
    while not killed:
        asking = asyncio.create_task(scene.sender.ask_alone(scene.heavy()))
        while not asking.done() and not killed:
            await asyncio.sleep(LOOK_SECONDS)
            killed = any(
                processes.kill_child(fork, parent=template)
                for template in processes.templates(scene.serving.pid)
                for fork in processes.children(template)[:1]
            )
        await asking


async def template_killed(scene: Scene) -> None:
    """Kill a template; another takes its place and estimates."""
    before = processes.templates(scene.serving.pid)
    victim = scene.rng.choice(before)
    killed = processes.kill_child(victim, parent=scene.serving.pid)
    scene.expect(killed, "no template was killed")

    async def is_back() -> bool:
        kind = await scene.sender.ask_alone(scene.sender.reviews.unseen())
        now = processes.templates(scene.serving.pid)
        return victim not in now and len(now) >= len(before) and kind.startswith(UNSEEN)

    await until(is_back, what="a template in place of the one that was killed")


async def certificate_renewed(scene: Scene) -> None:
    """Renew the certificate; some clients connect again, others keep their connection."""
    await scene.serving.renew()
    scene.sender.generation += 1


async def nodes_added(scene: Scene) -> None:
    """Add a node with a card of another kind."""
    await _become(scene, "added")


async def nodes_removed(scene: Scene) -> None:
    """Remove the only node with a card of its kind."""
    await _become(scene, "removed")


async def nodes_changed(scene: Scene) -> None:
    """Give a node larger cards."""
    await _become(scene, "changed")


async def config_maps_slow(scene: Scene) -> None:
    """Answer no question about a ConfigMap for longer than the server waits."""
    scene.cluster.hold("configmaps")
    asked = [scene.sender.reviews.from_config_map() for _ in range(ASKED)]
    kinds = await asyncio.gather(*map(scene.sender.ask_alone, asked))
    scene.cluster.let_go("configmaps")
    scene.expect(_are_without(kinds), f"slow ConfigMaps led to {kinds}")

    async def is_read() -> bool:
        kind = await scene.sender.ask_alone(scene.sender.reviews.from_config_map())
        return kind.startswith(UNSEEN)

    await until(is_read, what="a ConfigMap that is read again")


async def hub_hangs(scene: Scene) -> None:
    """Take questions for the Hub and answer none; other reviews go on, and so do ConfigMaps."""
    scene.cluster.hold("hub")
    asked = []
    for number in range(ASKED):
        obj = from_hub(f"load/model-{next(scene.numbers)}", namespace=f"team-{number}")
        body = body_of(obj, route=Route.MUTATE)
        asked.append(Review(body=body, subject="of the Hub", reads_document=True))
    kinds = await asyncio.gather(*map(scene.sender.ask_alone, asked))
    scene.cluster.let_go("hub")
    scene.expect(_are_without(kinds), f"a Hub that hangs led to {kinds}")


async def client_slow(scene: Scene) -> None:
    """Send a review in pieces with pauses; it is answered like any other."""
    sender, review, uid = scene.sender, scene.sender.reviews.next(), scene.sender.new_uid()
    request = review.body.request(uid, timeout_seconds=sender.plan.timeout_seconds)
    connection = await connect(sender.port, sender.context)
    waiting, mark = connection.expect(), sender.timeline.mark
    size = 1 + len(request) // PIECES
    for start in range(0, len(request), size):
        connection.transport.write(request[start : start + size])
        await asyncio.sleep(PIECE_SECONDS)
    sent = time.perf_counter()
    try:
        reply = await connection.answer(waiting)
    except LOST as error:
        sender.lose(review, error)
    else:
        sender.take(review, uid, reply, mark=mark, sent=sent)
    connection.close()


async def client_stalls(scene: Scene) -> None:
    """Send half a review and wait: the server says that it waits no longer."""
    connection = await connect(scene.serving.port, scene.serving.context)
    request = scene.sender.reviews.next().body.request("-", timeout_seconds=5)
    waiting = connection.expect()
    connection.transport.write(request[: len(request) // 2])
    status, _ = await connection.answer(waiting)
    scene.expect(status == BODY_TIMED_OUT, f"half a body was answered with {status}")
    connection.close()


async def client_leaves(scene: Scene) -> None:
    """Go away in the head, in the body, and while the estimate is made."""
    for part in (0.02, 0.5, 1.0):
        connection = await connect(scene.serving.port, scene.serving.context)
        review = scene.heavy()
        request = review.body.request(scene.sender.new_uid(), timeout_seconds=5)
        connection.expect().add_done_callback(lambda gone: gone.cancelled() or gone.exception())
        connection.transport.write(request[: int(len(request) * part)])
        if part == 1.0:
            scene.num_left += 1
            await _until_at_work(scene)
        connection.transport.abort()
    kind = await scene.sender.ask_alone(scene.sender.reviews.next())
    scene.expect(bool(kind), "no answer after a client had left")


Fault = Callable[[Scene], Awaitable[None]]
SHORT: tuple[Fault, ...] = (
    worker_killed,
    template_killed,
    certificate_renewed,
    nodes_added,
    nodes_removed,
    nodes_changed,
    config_maps_slow,
    hub_hangs,
    client_slow,
    client_leaves,
)
LONG: tuple[Fault, ...] = (*SHORT, client_stalls)
"""With those that take many seconds."""


def schedule(
    faults: tuple[Fault, ...], *, reviews: int, each: int, rng: random.Random
) -> list[tuple[int, Fault]]:
    """Return every fault *each* times: the number of answers after which it begins, in order."""
    places = [
        (rng.randrange(reviews), number % len(faults)) for number in range(each * len(faults))
    ]
    return [(place, faults[number]) for place, number in sorted(places)]


async def inject(plan: list[tuple[int, Fault]], scene: Scene) -> None:
    """Inject the faults of *plan*, one after the other, each at its time or later."""
    for place, fault in plan:
        while scene.sender.num_done < place:  # noqa: ASYNC110 (a count that nobody tells)
            await asyncio.sleep(0.01)
        await fault(scene)
        scene.injected[fault.__name__] += 1
    if scene.state != BASE:
        await _become(scene, BASE)


async def _become(scene: Scene, state: str) -> None:
    """Have the nodes of *state*; of the first state, if it is in force already.

    Each state is one node away from the first, by way of which all go: of two nodes that change
    together a server may see one before the other, and answers by a cluster that is no state.
    """
    before = scene.state
    if before != BASE:
        await _change(scene, BASE)
    if state not in (before, BASE):
        await _change(scene, state)


async def _change(scene: Scene, state: str) -> None:
    """Have the nodes of *state*, and wait until the server shows them."""
    scene.sender.timeline.begin(state)
    scene.cluster.become(STATES[state])
    await until(lambda: scene.serving.shows(scene.series[state]), what=f"nodes: {state}")
    scene.sender.timeline.settle(state)
    scene.state = state


def _are_without(kinds: Sequence[str]) -> bool:
    """Return whether each review says what it lacks, or that there was no time even for that."""
    return set(kinds) <= {NO_DOCUMENT, LATE} and bool(kinds)


async def _until_at_work(scene: Scene) -> None:
    """Wait until the server has begun an estimate: the review of whoever leaves was read."""

    async def is_at_work() -> bool:
        return bool(processes.forks(scene.serving.pid))

    await until(is_at_work, what="an estimate that is being made")
