"""What was answered before is answered again, as long as nothing that it rests on has changed."""

from __future__ import annotations

import asyncio
import copy
import io
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from admission.cache import Retention
from admission.codes import Mode, Steer
from admission.floor import Floor
from admission.handler import Handler
from admission.handling import judging
from admission.handling.recalling import MAX_TEXT, MOST_ASKED, nameless, question_of
from admission.judge.judging import judge_views
from admission.learning.deaths import Death
from admission.learning.fingerprint import fingerprint
from admission.learning.floors import Learnt
from admission.policy_settings import ExemptionSettings, PolicySettings, SteeringSettings
from admission.review import Route
from admission.values import Document
from admission.workloads import KINDS, read_workload
from estimator.errors import TraceError
from estimator.units import GIB
from tests.admission.test_handler import Bench, FailingSources, job, logged, review_of
from tests.bench.manifests.compare import cases
from tests.builders import gpu_labels, node

__all__ = ["logged"]
FITS, TOO_LARGE = 8, 1000
OWN = ("uid", "name", "creationTimestamp")


class Judged:
    """Counts how often something was judged."""

    def __init__(self) -> None:
        self.times = 0

    async def __call__(self, *given: Any, **named: Any) -> Any:
        """Judge."""
        self.times += 1
        return await judge_views(*given, **named)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Judged:
    """Return who counts what is judged from now on."""
    counting = Judged()
    monkeypatch.setattr(judging, "judge_views", counting)
    return counting


def called(obj: Mapping[str, Any], name: str, *, uid: str = "0815") -> dict[str, Any]:
    """Return the review of *obj* by another name."""
    own = {"name": name, "uid": uid, "creationTimestamp": f"2030-01-01T00:00:{len(name):02}Z"}
    named = {**obj, "metadata": {**obj["metadata"], **own}}
    review = review_of(named, uid=uid)
    review["request"]["name"] = name
    return review


async def warmed(bench: Bench, obj: Mapping[str, Any], *routes: Route) -> None:
    """Let *bench* answer *obj* until it is remembered."""
    for route in routes or tuple(Route):
        for number in range(3):
            await bench.response(called(obj, f"before-{number}"), route=route)


@pytest.mark.parametrize("route", Route)
@pytest.mark.parametrize("batch_size", [FITS, TOO_LARGE])
async def test_the_same_job_by_another_name_is_not_judged_again(
    route: Route, batch_size: int, judged: Judged, logged: io.StringIO
) -> None:
    """Its answer has its own uid, it is counted and logged by its own name."""
    bench, fresh, obj = Bench(), Bench(), job(batch_size=batch_size)
    await warmed(bench, obj, route)
    counted, times = sum(bench.series("vramgate_reviews_total").values()), judged.times

    response = await bench.response(called(obj, "another", uid="4711"), route=route)

    assert judged.times == times
    line = orjson.loads(logged.getvalue().splitlines()[-1])
    assert (line["name"], line["uid"], line["cache"]) == ("another", "4711", "hit")
    assert sum(bench.series("vramgate_reviews_total").values()) == counted + 1
    await fresh.response(called(obj, "warm"), route=route)
    assert response == await fresh.response(called(obj, "another", uid="4711"), route=route)
    assert response["uid"] == "4711"


async def test_what_is_recalled_counts_like_what_is_judged() -> None:
    """Every series but those of time says the same."""
    recalling, judging_each = Bench(), Bench()
    obj = job(batch_size=FITS)
    for number in range(6):
        review = called(obj, f"train-{number}")
        other = called({**obj, "apiVersion": "batch/v1", "kind": "Job", "n": number}, f"t-{number}")
        for route in Route:
            await recalling.response(review, route=route)
            await judging_each.response(other, route=route)

    names = ("reviews_total", "spec_source_total", "steered_total", "cache_requests_total")
    for name in (*names, "admitted_predicted_bytes_total", "would_deny_total"):
        series = f"vramgate_{name}"
        assert recalling.series(series) == judging_each.series(series), name


async def test_a_job_without_a_name_is_not_told_by_the_name_of_its_like(
    logged: io.StringIO,
) -> None:
    """The API server will make one up for it."""
    bench, obj = Bench(), job()
    obj["metadata"]["generateName"] = "sweep-"
    await warmed(bench, obj, Route.VALIDATE)
    review = called(obj, "")
    del review["request"]["object"]["metadata"]["name"]

    await bench.response(review)

    line = orjson.loads(logged.getvalue().splitlines()[-1])
    assert (line["name"], line["cache"]) == ("sweep-", "hit")


Change = Callable[[Bench], None]
ENFORCE = PolicySettings(mode=Mode.ENFORCE)


def settings(policy: PolicySettings, steering: SteeringSettings | None = None) -> Change:
    """Return what lets a handler answer by other settings."""
    return lambda bench: bench.handler.use(
        policy=policy, steering=steering or SteeringSettings(), kinds=KINDS, sources=None
    )


def larger(bench: Bench) -> None:
    """Let the cluster have a card that holds everything."""
    bench.cluster.has(node("big", labels=gpu_labels(product="NVIDIA-B300", memory="288000")))


def _mode(bench: Bench) -> None:
    bench.cluster.modes["team"] = Mode.WARN


def _steer(bench: Bench) -> None:
    bench.cluster.steers["team"] = Steer.OFF


CHANGES: Mapping[str, Change] = {
    "nodes": larger,
    "mode of the namespace": _mode,
    "steering of the namespace": _steer,
    "settings": settings(PolicySettings(mode=Mode.WARN)),
    "the switch": settings(PolicySettings(mode=Mode.ENFORCE, enabled=False)),
    "an exemption": settings(
        PolicySettings(
            mode=Mode.ENFORCE,
            exemptions=(
                ExemptionSettings(
                    namespace="team",
                    name="ano*",
                    until=datetime(2026, 12, 31, tzinfo=UTC),
                    reason="OPS-7",
                ),
            ),
        )
    ),
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("route", Route)
@pytest.mark.parametrize("batch_size", [FITS, TOO_LARGE])
async def test_an_answer_is_what_it_would_be_without_memory(
    change: Change, route: Route, batch_size: int
) -> None:
    """Whatever changes, the next review is answered by what holds then."""
    bench, fresh, obj = Bench(), Bench(), job(batch_size=batch_size)
    await warmed(bench, obj)

    change(bench)
    change(fresh)

    review = called(obj, "another")
    assert await bench.response(review, route=route) == await fresh.response(review, route=route)


async def test_an_exemption_that_ends_ends_in_memory_too() -> None:
    """The clock is asked at each review."""
    bench, obj = Bench(), job(batch_size=TOO_LARGE)
    CHANGES["an exemption"](bench)
    for number in range(4):
        assert (await bench.response(called(obj, f"ano-{number}")))["allowed"]
    assert not (await bench.response(called(obj, "train")))["allowed"]

    bench.now += timedelta(days=365)

    assert not (await bench.response(called(obj, "ano-5")))["allowed"]


@pytest.mark.parametrize(
    "change",
    [
        {"namespace": "others"},
        {"userInfo": {"username": "eve"}},
        {"dryRun": True},
        {"options": {"fieldManager": "other"}},
    ],
    ids=str,
)
async def test_another_asker_is_another_question(change: dict[str, Any], judged: Judged) -> None:
    """What one tenant was told is never found by another: who asks is part of the question."""
    bench, obj = Bench(), job()
    await warmed(bench, obj, Route.VALIDATE)
    times, review = judged.times, called(obj, "train")
    review["request"].update(change)

    await bench.response(review)

    assert judged.times == times + 1


@pytest.mark.parametrize(
    "path",
    [("metadata", "labels", "x"), ("metadata", "annotations", "x"), ("spec", "x"), ("status", "x")],
)
async def test_another_object_is_another_question(path: tuple[str, ...], judged: Judged) -> None:
    """All of it counts but its name and what the API server keeps of it."""
    bench, obj = Bench(), job()
    await warmed(bench, obj, Route.VALIDATE)
    times, other = judged.times, copy.deepcopy(obj)
    place = other
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = "other"

    await bench.response(called(other, "train"))

    assert judged.times == times + 1


async def test_an_estimate_that_is_forgotten_takes_the_answer_with_it() -> None:
    """An answer stands on estimates that are there: else they are asked for again."""
    bench, obj = Bench(), job()
    await warmed(bench, obj, Route.VALIDATE)
    assert bench.workers.num_asked == 1

    bench.pool.retain(Retention(entries=0))
    bench.pool.retain(Retention())
    await bench.response(called(obj, "another"))

    assert bench.workers.num_asked == 2


async def test_recalled_answers_keep_their_estimates_young() -> None:
    """The job that is asked about most is the last whose estimate makes room."""
    bench, obj = Bench(), job()
    bench.pool.retain(Retention(entries=2))
    await warmed(bench, obj, Route.VALIDATE)

    for size in range(100, 110):
        await bench.response(review_of(job(batch_size=size)))
        await bench.response(called(obj, "another"))

    assert bench.workers.num_asked == 1 + 10


async def test_a_failure_is_not_remembered_as_an_answer() -> None:
    """It has a time of its own."""
    bench, obj = Bench(), job()
    bench.workers.failure = TraceError("no")
    for _ in range(4):
        assert "verdict" in (await bench.response(called(obj, "a")))["auditAnnotations"]
    bench.workers.failure = None
    bench.pool.retain(Retention(entries=0))
    bench.pool.retain(Retention())

    response = await bench.response(called(obj, "a"))

    assert response["auditAnnotations"]["verdict"] == "fits"


async def test_an_answer_without_its_hints_is_not_remembered() -> None:
    """What would fit could not be found out; the next review may hear of it."""
    bench, obj = Bench(), job(batch_size=TOO_LARGE)
    bench.pool.retain(Retention(failure_seconds=0.0))
    fit = bench.workers.fit

    async def failing(*_: Any) -> Any:
        raise TraceError("no")

    bench.workers.fit = failing  # type: ignore[method-assign,assignment]
    for number in range(4):
        response = await bench.response(called(obj, f"train-{number}"))
    assert "batch size 500" not in response["status"]["message"]

    bench.workers.fit = fit  # type: ignore[method-assign]
    response = await bench.response(called(obj, "train"))

    assert "batch size 500" in response["status"]["message"]


async def test_a_job_whose_variables_have_its_name_is_judged_each_time(judged: Judged) -> None:
    """Volcano tells each container the hosts of the others, by the job's name."""
    pod = job()["spec"]["template"]["spec"]
    task = {"name": "worker", "replicas": 1, "template": {"spec": pod}}
    obj = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": job()["metadata"],
        "spec": {"plugins": {"svc": []}, "tasks": [task]},
    }
    bench, kind = Bench(), {"group": "batch.volcano.sh", "version": "v1alpha1", "kind": "Job"}

    for number in range(4):
        review = called(obj, f"train-{number}")
        review["request"]["kind"] = kind
        assert (await bench.response(review))["auditAnnotations"]["verdict"] == "fits"

    assert judged.times == 4


async def test_what_rests_on_documents_is_read_again(judged: Judged) -> None:
    """Whoever owns a ConfigMap may change it at any time."""
    sources = FailingSources({"configmap/spec": Document(problem="is not there")})
    bench = Bench(sources=sources)
    obj = job(spec={}, annotations={"vramgate.dev/spec-ref": "configmap/spec/spec.yaml"})

    for number in range(4):
        await bench.response(called(obj, f"train-{number}"))

    assert judged.times == 4


async def test_where_jobs_have_died_names_count(judged: Judged) -> None:
    """What a death taught holds for the job of that name, from the next review on."""
    learnt, obj = Learnt(), job(batch_size=FITS)
    bench = Bench()
    bench.handler = Handler(
        policy=ENFORCE,
        cluster=bench.cluster,
        pool=bench.pool,
        metrics=bench.metrics,
        learnt=learnt,
    )
    await warmed(bench, obj, Route.MUTATE)
    workload = read_workload(obj)
    floor = Floor(container="train", nbytes=20 * GIB, gave=15 * GIB, card="Tesla-T4", when="")
    text = fingerprint(workload.units[0], workload)
    named = ("Job.batch/train",)
    times = judged.times

    learnt.take((Death(namespace="team", names=named, fingerprint=text, floor=floor),))
    died = await bench.response(called(obj, "train"), route=Route.MUTATE)
    other = await bench.response(called(obj, "other"), route=Route.MUTATE)

    assert judged.times > times
    assert died["auditAnnotations"]["verdict"] == "tight"
    assert other["auditAnnotations"]["verdict"] == "fits"


async def test_an_update_is_always_judged(judged: Judged) -> None:
    """It is about two objects."""
    bench, obj = Bench(), job()

    for _ in range(3):
        await bench.response(review_of(obj, old=job(batch_size=9)))

    assert judged.times == 3


async def test_deep_objects_are_refused_as_ever() -> None:
    """What nobody has walked is walked before it is judged, remembered or not."""
    bench, obj = Bench(), job()
    deep: Any = "x"
    for _ in range(120):
        deep = [deep]
    obj["spec"]["deep"] = deep

    statuses = [(await bench.answer(called(obj, f"a-{number}"))).status for number in range(4)]

    assert statuses == [400] * 4


def test_long_objects_are_no_question() -> None:
    """What is kept is bounded."""
    obj = job(annotations={"note": "x" * MAX_TEXT})

    assert question_of(called(obj, "train"), Route.MUTATE) is None
    assert MOST_ASKED * MAX_TEXT < 64 << 20


def published() -> list[dict[str, Any]]:
    """Return the objects of the corpus that are judged, in the namespace `team`."""
    bodies = [dict(item.body) for case in cases() for item in case.manifests.workloads]
    return [{**body, "metadata": {**body["metadata"], "namespace": "team"}} for body in bodies]


@pytest.mark.parametrize("route", Route)
async def test_no_published_job_is_answered_by_the_name_of_another(route: Route) -> None:
    """What a name changes is not recalled: a Volcano job's hosts, for one."""
    bench, fresh = Bench(), Bench()
    objects = published()
    assert len(objects) > 60
    for obj in objects:
        group, _, version = obj["apiVersion"].rpartition("/")
        for name in ("one", "two", "three", "four"):
            review = called(obj, name)
            review["request"]["kind"] = {"group": group, "version": version, "kind": obj["kind"]}
            answer = await bench.answer(review, route=route)
        assert answer == await fresh.answer(review, route=route), obj["kind"]


_ACTS = (*CHANGES, *("fits", "too large"))


@examples(max_examples=12)
@given(st.lists(st.sampled_from(_ACTS), min_size=2, max_size=10))
def test_no_order_of_changes_brings_back_an_old_answer(acts: list[str]) -> None:
    """Beside a handler that has just started and knows nothing of before."""

    async def scene() -> None:
        bench, done = Bench(), list[Change]()
        for number, act in enumerate((*acts, "fits", "too large")):
            if act in CHANGES:
                done.append(CHANGES[act])
                CHANGES[act](bench)
                continue
            obj = job(batch_size=FITS if act == "fits" else TOO_LARGE)
            fresh = Bench()
            for change in done:
                change(fresh)
            for route in Route:
                review = called(obj, f"train-{number}")
                found = await bench.response(review, route=route)
                assert found == await fresh.response(review, route=route)

    asyncio.run(scene())


def test_an_object_without_its_name_is_whole_otherwise() -> None:
    """Nothing else is left out, and what has no metadata stays as it is."""
    obj = job()

    assert nameless(obj) == {
        **obj,
        "metadata": {key: value for key, value in obj["metadata"].items() if key not in OWN},
    }
    assert nameless({"metadata": None}) == {"metadata": None}
