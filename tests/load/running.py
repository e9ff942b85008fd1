"""One run: what is right is worked out first, then the server is loaded, then it ends.

Plan, faults -> Outcome
"""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench.figures import used_seconds
from tests.load import faults, processes
from tests.load.answering import Judge, Kept, Review
from tests.load.cases import Case, cases
from tests.load.cluster import Cluster
from tests.load.expected import NO_HINTS, WHOLE, Oracle, oracle
from tests.load.faults import Fault, Scene
from tests.load.memory import Memory
from tests.load.sending import Plan, Reviews, Sender
from tests.load.serving import Serving, free_port, parsed, serving, settings_text, until
from tests.load.specs import NAMESPACES, config_map
from tests.load.states import BASE, STATES, Timeline

REVIEWS = re.compile(r"^vramgate_reviews_total\{.*\} (\S+)$", re.MULTILINE)
REST_SECONDS = 60.0
"""How long the server may take to let go of everything once nobody asks any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What the server holds at one moment without clients."""

    descriptors: Mapping[str, int]
    children: int
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run found."""

    plan: Plan
    sender: Sender
    judge: Judge
    scene: Scene
    memory: Memory
    seconds: float
    used: tuple[float, float]
    """Seconds of processor time: of the server without its children, and of this process."""
    counted: int
    """Reviews that the server says it has answered."""
    before: Left
    after: Left
    status: int
    """With which the server ended."""
    left_behind: int
    """Processes of the server's that outlived it."""
    tracebacks: int
    errors: list[str]
    compared: Counter[str]
    """Answers about unseen specs beside those of the handler in this process."""


async def run(
    plan: Plan, *, kinds: tuple[Fault, ...], each: int, say: Callable[[str], None]
) -> Outcome:
    """Return what came of *plan*, each of *kinds* of faults injected *each* times."""
    with tempfile.TemporaryDirectory(prefix="vramgate-load-") as name:
        folder, port = Path(name), free_port()
        cluster = Cluster(namespaces=NAMESPACES, nodes=STATES[BASE], config_map=config_map)
        async with AsyncExitStack() as stack:
            kubeconfig = await stack.enter_async_context(cluster.serving(folder))
            text = settings_text(
                folder=folder, port=port, hub=cluster.hub, uses_torch=plan.uses_torch
            )
            right = await stack.enter_async_context(oracle(parsed(text)))
            asked = cases(uses_torch=plan.uses_torch)
            known = {}
            for state in STATES:
                known[state] = [await right.answers(case.body, state) for case in asked]
                say(f"the answers to {len(asked)} cases are known, nodes: {state}")
            server = serving(text, port=port, kubeconfig=kubeconfig, folder=folder)
            running = await stack.enter_async_context(server)
            rng = random.Random(plan.seed + 1)
            judge = Judge(known=known, sample=min(200, plan.reviews // 100), rng=rng)
            sender = Sender(
                plan=plan,
                port=port,
                context=running.context,
                reviews=Reviews(plan, asked),
                judge=judge,
                timeline=Timeline(),
            )
            scene = Scene(
                serving=running,
                cluster=cluster,
                sender=sender,
                series={state: right.shown_classes(state) for state in STATES},
                rng=rng,
            )
            return await _loaded(_Run(scene, asked, right, kinds, each, say))


@dataclass(frozen=True, slots=True)
class _Run:
    scene: Scene
    cases: tuple[Case, ...]
    right: Oracle
    kinds: tuple[Fault, ...]
    each: int
    say: Callable[[str], None]


async def _loaded(run: _Run) -> Outcome:
    """Return what comes of the load, the server being ready."""
    scene, sender, serve = run.scene, run.scene.sender, run.scene.serving
    await _warm(run)
    before = await _at_rest(serve, run.scene.cluster.port)
    run.say(f"serve is warm, without clients: {before}")
    counted = await _counted(serve) - sender.num_answered
    memory = Memory(pid=serve.pid, seconds=0.2 if sender.plan.reviews < 50_000 else 2.0)
    watching = asyncio.create_task(memory.watch(lambda: sender.num_answered))
    planned = faults.schedule(
        run.kinds, reviews=sender.plan.reviews, each=run.each, rng=random.Random(sender.plan.seed)
    )
    began, used = time.perf_counter(), (used_seconds(serve.pid), time.process_time())
    injecting = asyncio.create_task(faults.inject(planned, scene))
    telling = asyncio.create_task(_told(run, memory))
    try:
        await sender.run(injecting.done)
        await injecting
    finally:
        for task in (injecting, telling, watching):
            task.cancel()
        await asyncio.gather(injecting, telling, watching, return_exceptions=True)
    seconds = time.perf_counter() - began
    used = used_seconds(serve.pid) - used[0], time.process_time() - used[1]
    memory.look(sender.num_answered)
    after = await _at_rest(serve, scene.cluster.port, wanted=before)
    counted = await _counted(serve) - counted
    below = processes.descendants(serve.pid)
    status = await serve.stop()
    left = {*processes.left_behind(serve.pid), *filter(processes.is_estimator, below)}
    tracebacks, errors = serve.complaints(num_killed=scene.injected["template_killed"])
    return Outcome(
        plan=sender.plan,
        sender=sender,
        judge=sender.judge,
        scene=scene,
        memory=memory,
        seconds=seconds,
        used=used,
        counted=counted,
        before=before,
        after=after,
        status=status,
        left_behind=len(left),
        tracebacks=tracebacks,
        errors=errors,
        compared=await _compared(run.right, sender.judge.kept),
    )


async def _warm(run: _Run) -> None:
    """Ask about every case until it is answered in full: the cache has it then."""
    sender = run.scene.sender

    async def is_known(review: Review) -> bool:
        return await sender.ask_alone(review) == WHOLE

    for number, case in enumerate(run.cases):
        is_warm = partial(is_known, sender.reviews.case(number))
        try:
            await until(is_warm, what=f"the answer to {case.name}")
        except TimeoutError:
            run.say("\n".join(sender.judge.wrong))
            raise
    run.say(f"asked {sender.num_answered} times until all were answered")
    sender.forget()


async def _told(run: _Run, memory: Memory) -> None:
    """Say how far it is, every half minute."""
    while True:
        await asyncio.sleep(30)
        sender, wrong = run.scene.sender, run.scene.sender.judge.num_wrong
        run.say(
            f"{sender.num_answered} answered, {wrong} wrong, {sender.num_lost} lost,"
            f" {run.scene.injected.total()} faults, serve {memory.samples[-1].serve:.1f} MiB"
        )


async def _at_rest(serve: Serving, cluster_port: int, *, wanted: Left | None = None) -> Left:
    """Return what *serve* holds once no worker is left, and no more than *wanted* if that comes."""
    found = None

    async def is_at_rest() -> bool:
        nonlocal found
        below = processes.descendants(serve.pid)
        found = Left(
            descriptors=processes.descriptors(serve.pid, cluster_port=cluster_port),
            children=len(below),
            threads=processes.num_threads(serve.pid),
        )
        is_busy = bool(processes.forks(serve.pid))
        return not is_busy and (wanted is None or not exceeding(found, wanted))

    with suppress(TimeoutError):  # what is left then is told, and counts against it
        await until(is_at_rest, what="a server at rest", seconds=REST_SECONDS)
    assert found is not None
    return found


def exceeding(after: Left, before: Left) -> list[str]:
    """Return what there is more of, in words; connections to the API server are kept for later."""
    kinds = sorted((after.descriptors.keys() | before.descriptors.keys()) - {"cluster"})
    counts = {
        kind: (before.descriptors.get(kind, 0), after.descriptors.get(kind, 0)) for kind in kinds
    }
    counts["children"] = (before.children, after.children)
    return [
        f"{kind}: {had} before, {has} after" for kind, (had, has) in counts.items() if has > had
    ]


async def _counted(serve: Serving) -> int:
    """Return how many reviews *serve* says it has answered."""
    return int(sum(map(float, REVIEWS.findall((await serve.metrics()).decode()))))


async def _compared(right: Oracle, kept: list[Kept]) -> Counter[str]:
    """Return how many answers about unseen specs are those of the handler in this process."""
    found: Counter[str] = Counter()
    for each in kept:
        wholes = [await right.answers(each.body, state) for state in each.states]
        kinds = [answers[each.answer] for answers in wholes if each.answer in answers]
        found[min(kinds, key=(WHOLE, NO_HINTS).index) if kinds else "another answer"] += 1
    return found
