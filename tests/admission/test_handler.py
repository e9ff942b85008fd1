"""A review becomes an answer; whatever goes wrong on our side lets the object pass."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
import structlog
from prometheus_client import CollectorRegistry

from admission.capacity.classes import classes_of
from admission.codes import Action, Mode, Steer
from admission.config import LogFormat, LogLevel
from admission.estimates import EstimatePool
from admission.handler import (
    FAULT_WARNING,
    UNREAD,
    Handler,
)
from admission.handling.judging import GRACE_SECONDS
from admission.judge.rounds import TimedFetching
from admission.judge.views import Views, read_views
from admission.logs import configure_logs
from admission.metrics import Metrics
from admission.policy_settings import LateAction, PolicySettings, SteeringSettings
from admission.reader import (
    MAX_READING,
    MAX_UNREAD,
    SMALL_BODY,
    SMALL_EXPANSIONS,
    SMALL_UNITS,
    Reader,
    ReviewReader,
)
from admission.response import Answer
from admission.review import Route
from admission.values import Document, Documents, NodeClass, Workload
from estimator.device import Device
from estimator.errors import TraceError
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from tests.admission.workloads.objects import runtime_documents, trainjob
from tests.builders import GPU, estimate, fit, gpu_labels, node, spec_document

JSON = "application/json"
SECRET = "a detail that nobody outside may see"


class FakeWorkers:
    """Says that every job needs 1 GiB for each 10 of its batch, once it may."""

    def __init__(self) -> None:
        self.num_asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.failure: Exception | None = None

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device."""
        spec = spec_of(job)
        self.num_asked += 1
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure
        need = spec.input.batch_size * GIB // 10
        return tuple(estimate(least=need, card=card, spec=spec) for card in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return a batch of half the size for each device."""
        return tuple(fit(largest_batch=spec.input.batch_size // 2) for _ in devices)


class FakeCluster:
    """One node with eight T4 (14.6 GiB each) or others, and namespaces with labels of their own."""

    def __init__(self, *nodes: dict[str, Any]) -> None:
        self.modes: dict[str, Mode] = {}
        self.steers: dict[str, Steer] = {}
        self.is_broken = False
        self.has(*nodes or [node("t4-0")])

    def has(self, *nodes: dict[str, Any]) -> None:
        """Have these nodes from now on."""
        self._classes = classes_of(nodes)

    @property
    def classes(self) -> tuple[NodeClass, ...]:
        """Return the classes."""
        if self.is_broken:
            raise RuntimeError(SECRET)
        return self._classes

    def mode_of(self, namespace: str) -> Mode | None:
        """Return the mode of a namespace."""
        return self.modes.get(namespace)

    def steer_of(self, namespace: str) -> Steer | None:
        """Return how hard a namespace wants its pods to be steered."""
        return self.steers.get(namespace)


class SlowReader:
    """Reads when it may, and notes the threads it was called in."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.may_read = threading.Event()

    def __call__(
        self, workload: Workload, *, classes: Sequence[NodeClass], documents: Documents
    ) -> Views:
        """Return what the real one reads, late; at once where it would hold up the loop."""
        self.threads.append(threading.current_thread())
        if threading.current_thread() is not threading.main_thread():
            self.may_read.wait(30)
        return read_views(workload, classes=classes, documents=documents)


class Bench:
    """A handler with everything around it, in mode enforce."""

    def __init__(
        self,
        policy: PolicySettings | None = None,
        *,
        read: Reader = read_views,
        max_concurrent: int = 8,
        nodes: Sequence[dict[str, Any]] = (),
        steering: SteeringSettings | None = None,
        sources: TimedFetching | None = None,
    ) -> None:
        self.now = datetime(2026, 6, 1, tzinfo=UTC)
        self.workers = FakeWorkers()
        self.cluster = FakeCluster(*nodes)
        self.metrics = Metrics(CollectorRegistry())
        self.pool = EstimatePool(self.workers, max_concurrent=max_concurrent, watcher=self.metrics)
        self.handler = Handler(
            policy=policy or PolicySettings(mode=Mode.ENFORCE),
            steering=steering,
            cluster=self.cluster,
            pool=self.pool,
            metrics=self.metrics,
            now=lambda: self.now,
            reader=ReviewReader(read),
            sources=sources,
        )

    async def answer(
        self,
        review: object,
        *,
        timeout_text: str | None = "5s",
        route: Route = Route.VALIDATE,
    ) -> Answer:
        """Return the answer to a review document."""
        body = review if isinstance(review, bytes) else orjson.dumps(review)
        return await self.handler.answer(
            body, content_type=JSON, timeout_text=timeout_text, route=route
        )

    async def response(
        self,
        review: object,
        *,
        timeout_text: str | None = "5s",
        route: Route = Route.VALIDATE,
    ) -> dict[str, Any]:
        """Return the response in the answer to a review document."""
        answer = await self.answer(review, timeout_text=timeout_text, route=route)
        assert answer.status == 200, answer.body
        assert b"Traceback" not in answer.body
        found: dict[str, Any] = orjson.loads(answer.body)["response"]
        return found

    def series(self, name: str) -> dict[str, float]:
        """Return the series of a metric that are not 0: labels -> value."""
        lines = self.metrics.text().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line.startswith(name + "{"))
        return {key.removeprefix(name): float(value) for key, value in pairs if float(value)}


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Return what is logged."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=stream)
    yield stream
    structlog.reset_defaults()


def job(
    *,
    batch_size: int = 8,
    spec: object = None,
    gpus: int = 1,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    suspend: bool = False,
    owner: str = "",
    started: bool = False,
) -> dict[str, Any]:
    """Return a Job whose annotation says what it trains."""
    document = spec_document(batch_size=batch_size) if spec is None else spec
    annotation = document if isinstance(document, str) else orjson.dumps(document).decode()
    container = {
        "name": "train",
        "image": "example.com/train:1",
        "command": ["python", "train.py"],
        "env": [{"name": "BATCH", "value": str(batch_size)}],
        "resources": {"limits": {GPU: str(gpus)}} if gpus else {},
    }
    owners = [{"kind": "CronJob", "name": owner, "controller": True}] if owner else []
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": "team",
            "labels": dict(labels or {}),
            "annotations": {"vramgate.dev/spec": annotation, **(annotations or {})},
            "ownerReferences": owners,
        },
        "spec": {"suspend": suspend, "template": {"spec": {"containers": [container]}}},
        "status": {"startTime": "2030-01-01T00:00:00Z", "active": 1} if started else {},
    }


def review_of(
    obj: Mapping[str, Any] | None,
    *,
    old: Mapping[str, Any] | None = None,
    operation: str = "",
    dry_run: bool = False,
    uid: str = "0815",
) -> dict[str, Any]:
    """Return the AdmissionReview that creates *obj*, or updates *old* to it."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {"group": "batch", "version": "v1", "kind": "Job"},
            "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
            "namespace": "team",
            "name": "train",
            "operation": operation or ("CREATE" if old is None else "UPDATE"),
            "object": obj,
            "oldObject": old,
            "dryRun": dry_run,
        },
    }


FITS, TOO_LARGE = 8, 256
"""Batch sizes: 0.8 GiB and 25.6 GiB on a card that gives 14.6."""

QUEUED = {"kueue.x-k8s.io/queue-name": "queue"}


async def test_job_that_fits_passes_without_a_word() -> None:
    """Nobody is told what is as it should be."""
    response = await Bench().response(review_of(job(batch_size=FITS)))

    assert (response["uid"], response["allowed"]) == ("0815", True)
    assert "warnings" not in response
    notes = response["auditAnnotations"]
    assert (notes["verdict"], notes["mode"], notes["reason"]) == ("fits", "enforce", "fits")
    assert notes["found"].endswith(f"batch {FITS}, fp32")
    assert int(notes["least-bytes"]) <= int(notes["enough-bytes"])


async def test_validate_reads_again_nothing_that_mutate_has_read() -> None:
    """Nor the next job that differs by its name; another batch is read."""
    num_read = 0

    def counted(workload: Workload, *, classes: Sequence[NodeClass], documents: Documents) -> Views:
        nonlocal num_read
        num_read += 1
        return read_views(workload, classes=classes, documents=documents)

    bench = Bench(read=counted)

    for route in (Route.MUTATE, Route.VALIDATE):
        for name in ("train", "another"):
            obj = job(batch_size=FITS)
            obj["metadata"]["name"] = name
            response = await bench.response(review_of(obj), route=route)
            assert response["auditAnnotations"]["verdict"] == "fits"
    assert num_read == 1

    await bench.response(review_of(job(batch_size=FITS + 1)))
    assert num_read == 2


async def test_many_variables_are_read_in_a_thread_and_once() -> None:
    """What was found there is remembered on the loop."""
    reader = SlowReader()
    reader.may_read.set()
    bench = Bench(read=reader)
    obj = job(annotations={"note": "$" * (SMALL_EXPANSIONS + 1)})

    for _ in range(3):
        response = await bench.response(review_of(obj))
        assert response["auditAnnotations"]["verdict"] == "fits"

    assert len(reader.threads) == 1
    assert reader.threads[0] is not threading.main_thread()


async def test_a_remembered_answer_does_not_wait_for_the_event_loop() -> None:
    """A turn of the loop for each step would let every other review in between."""
    bench = Bench()
    body = orjson.dumps(review_of(job(batch_size=FITS)))
    await bench.answer(body)
    review = bench.handler.answer(body, content_type=JSON, timeout_text="5s")

    with pytest.raises(StopIteration) as ended:
        review.send(None)

    assert orjson.loads(ended.value.value.body)["response"]["allowed"] is True


async def test_job_too_large_is_denied_with_the_reason() -> None:
    """The message names need, card and a way out; the code is 403."""
    response = await Bench().response(review_of(job(batch_size=TOO_LARGE)))

    assert response["allowed"] is False
    assert response["status"]["code"] == 403
    message = response["status"]["message"]
    assert "25.6 GiB" in message
    assert "Tesla-T4" in message
    assert "batch size 128" in message


async def test_install_in_mode_warn_admits_with_a_warning() -> None:
    """A new install tells, and stops nobody."""
    bench = Bench(PolicySettings())

    response = await bench.response(review_of(job(batch_size=TOO_LARGE)))

    assert response["allowed"] is True
    assert any("25.6 GiB" in warning for warning in response["warnings"])


@pytest.mark.parametrize(
    ("mode", "allowed", "warned"),
    [(Mode.ENFORCE, False, False), (Mode.WARN, True, True), (Mode.OFF, True, False)],
)
async def test_namespace_label_overrides_the_install(
    mode: Mode, allowed: bool, warned: bool
) -> None:
    """In both directions: a namespace may be stricter or looser than the install."""
    bench = Bench(PolicySettings(mode=Mode.WARN if mode is Mode.ENFORCE else Mode.ENFORCE))
    bench.cluster.modes["team"] = mode

    response = await bench.response(review_of(job(batch_size=TOO_LARGE)))

    assert response["allowed"] is allowed
    assert bool(response.get("warnings")) is warned
    assert response["auditAnnotations"]["mode"] == mode.value


@pytest.mark.parametrize("may_loosen", [True, False])
async def test_workload_label_counts_only_where_settings_allow_it(may_loosen: bool) -> None:
    """By default whoever submits a job cannot switch its check off."""
    policy = PolicySettings(mode=Mode.ENFORCE, workloads_may_loosen=may_loosen)
    loose = job(batch_size=TOO_LARGE, labels={"vramgate.dev/mode": "off"})

    response = await Bench(policy).response(review_of(loose))

    assert response["allowed"] is may_loosen


async def test_label_that_is_no_mode_changes_nothing() -> None:
    """A typing error does not switch the check off."""
    policy = PolicySettings(mode=Mode.ENFORCE, workloads_may_loosen=True)
    mistyped = job(batch_size=TOO_LARGE, labels={"vramgate.dev/mode": "of"})

    response = await Bench(policy).response(review_of(mistyped))

    assert response["allowed"] is False


async def test_dry_run_is_answered_the_same() -> None:
    """`kubectl apply --dry-run=server` says what a real submission would hear."""
    bench = Bench()

    tried = await bench.answer(review_of(job(batch_size=TOO_LARGE), dry_run=True))
    real = await bench.answer(review_of(job(batch_size=TOO_LARGE)))

    assert tried == real


async def test_deletion_passes_unread() -> None:
    """There is no object and nothing to judge."""
    bench = Bench()

    response = await bench.response(review_of(None, operation="DELETE"))

    assert response == {"uid": "0815", "allowed": True}
    assert bench.series("vramgate_reviews_total") == {}


@pytest.mark.parametrize("kind", ["ConfigMap", "InferenceService"])
async def test_kind_that_is_not_read_passes_and_is_counted_as_other(kind: str) -> None:
    """A rule that sends us too much does no harm."""
    bench = Bench()
    review = review_of({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}})
    review["request"]["kind"] = {"group": "", "version": "v1", "kind": kind}

    response = await bench.response(review)

    assert response["allowed"] is True
    assert bench.series("vramgate_reviews_total") == {
        '{action="allow",kind="other",mode="enforce",verdict="skipped"}': 1
    }


async def test_job_without_gpus_passes_without_an_estimate() -> None:
    """Nobody is asked about a job that needs no card."""
    bench = Bench()

    response = await bench.response(review_of(job(gpus=0)))

    assert response["allowed"] is True
    assert bench.workers.num_asked == 0


async def test_controlled_job_is_never_denied() -> None:
    """A CronJob's controller would create a refused Job again and again."""
    response = await Bench().response(review_of(job(batch_size=TOO_LARGE, owner="nightly")))

    assert response["allowed"] is True


async def test_update_that_makes_a_job_too_large_is_denied() -> None:
    """It has not started and fitted before: the change is what is wrong."""
    bench = Bench()

    response = await bench.response(review_of(job(batch_size=TOO_LARGE), old=job(batch_size=FITS)))

    assert response["allowed"] is False


async def test_update_of_a_job_too_large_before_is_not_denied() -> None:
    """What was let in once can still be labelled or edited."""
    response = await Bench().response(
        review_of(job(batch_size=TOO_LARGE), old=job(batch_size=TOO_LARGE + 1))
    )

    assert response["allowed"] is True
    assert response["warnings"]


async def test_update_of_a_started_job_is_not_denied() -> None:
    """The person could not undo what runs."""
    response = await Bench().response(
        review_of(job(batch_size=TOO_LARGE, started=True), old=job(batch_size=FITS, started=True))
    )

    assert response["allowed"] is True


async def test_resumed_job_is_not_denied() -> None:
    """Kueue takes a suspended job up: that is no moment to refuse it."""
    bench = Bench()
    suspended, resumed = (job(batch_size=TOO_LARGE, suspend=value) for value in (True, False))

    response = await bench.response(review_of(resumed, old=suspended))

    assert response["allowed"] is True
    assert bench.workers.num_asked == 1


@pytest.mark.parametrize(("labels", "expected"), [(QUEUED, True), ({}, False)])
async def test_queue_may_say_where_a_suspended_job_goes(
    labels: Mapping[str, str], expected: bool
) -> None:
    """Before it takes it up, as Kueue does with a TrainJob: it would ask again without end."""
    a100 = gpu_labels(product="NVIDIA-A100-SXM4-40GB", memory="40960", compute=(8, 0))
    bench = Bench(nodes=[node("small"), node("large", labels=a100)])
    waiting, sent = (job(batch_size=TOO_LARGE, suspend=True, labels=labels) for _ in range(2))
    sent["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "small"}

    response = await bench.response(review_of(sent, old=waiting))

    assert response["allowed"] is expected
    assert "warnings" in response or not expected


async def test_resuming_does_not_smuggle_another_job_in() -> None:
    """Taken up with other containers it is a change like any."""
    response = await Bench().response(
        review_of(job(batch_size=TOO_LARGE, suspend=False), old=job(batch_size=FITS, suspend=True))
    )

    assert response["allowed"] is False


async def test_estimate_that_is_late_lets_the_job_pass_with_a_warning() -> None:
    """The answer comes before the API server gives up, and the next review finds the estimate."""
    bench = Bench()
    bench.workers.may_answer.clear()

    first = await bench.response(review_of(job(batch_size=TOO_LARGE)), timeout_text="550ms")
    bench.workers.may_answer.set()
    second = await bench.response(review_of(job(batch_size=TOO_LARGE)))

    assert (first["allowed"], second["allowed"]) == (True, False)
    assert first["warnings"]
    assert bench.workers.num_asked == 1
    assert bench.series("vramgate_review_seconds_count")['{cache="late"}'] == 1
    await bench.pool.close()


async def test_review_is_late_where_the_loop_was_held_up_beyond_its_grace() -> None:
    """Whoever holds the loop up, the deadline comes too late to be met: that is no fault."""
    bench = Bench()
    bench.workers.may_answer.clear()

    asking = asyncio.create_task(bench.response(review_of(job()), timeout_text="550ms"))
    while not (bench.workers.num_asked or asking.done()):  # noqa: ASYNC110 (nobody tells)
        await asyncio.sleep(0)
    time.sleep(0.05 + GRACE_SECONDS + 0.05)  # noqa: ASYNC251 (the loop is what is held up)
    response = await asking

    assert response["auditAnnotations"]["reason"] == "late"
    assert response["warnings"] != [f"vramgate: {FAULT_WARNING}"]
    bench.workers.may_answer.set()
    await bench.pool.close()


async def test_late_jobs_pass_silently_where_settings_say_so() -> None:
    """`onLate: allow` keeps quiet about our slowness."""
    bench = Bench(PolicySettings(mode=Mode.ENFORCE, on_late=LateAction.ALLOW))
    bench.workers.may_answer.clear()

    response = await bench.response(review_of(job()), timeout_text="550ms")

    assert response["allowed"] is True
    assert "warnings" not in response
    await bench.pool.close()


async def test_unreadable_job_follows_the_policy() -> None:
    """`onUnknown: deny` refuses what cannot be read, where the mode enforces."""
    bench = Bench(PolicySettings(mode=Mode.ENFORCE, on_unknown=Action.DENY))
    unreadable = job()
    del unreadable["metadata"]["annotations"]

    response = await bench.response(review_of(unreadable))

    assert response["allowed"] is False
    assert sum(bench.series("vramgate_unknown_total").values()) == 1


FIVE_MISTAKES = {
    "framework": "theano",
    "model": {"source": "torchvision", "name": "resnet50", "colour": "red"},
    "input": {"batchSize": 10**12},
    "training": {"precision": "fp7", "optimizer": {"name": 7}},
}


async def test_annotation_with_five_mistakes_is_unknown_and_names_them() -> None:
    """The job passes with a warning that says where the annotation is wrong."""
    response = await Bench().response(review_of(job(spec=FIVE_MISTAKES)))

    assert response["allowed"] is True
    assert response["auditAnnotations"]["verdict"] == "unknown"
    assert "framework" in " ".join(response["warnings"])


@pytest.mark.parametrize(
    "spec", ["{", "a: &x [*x]", "just words", "x: " + "[" * 3000, "!!python/name:os"]
)
async def test_annotation_that_is_no_spec_is_unknown(spec: str) -> None:
    """Broken, recursive or executable YAML is a warning, never a crash."""
    bench = Bench()

    response = await bench.response(review_of(job(spec=spec)))

    assert response["allowed"] is True
    assert response["auditAnnotations"]["verdict"] == "unknown"
    assert not any(FAULT_WARNING in warning for warning in response["warnings"])


@pytest.mark.parametrize(
    "containers", ["x", {"a": 1}, [7], [{"resources": "gpu"}], [{"resources": {"limits": 1}}]]
)
async def test_malformed_object_is_a_broken_request(containers: object) -> None:
    """HTTP 400 names the field; the API server then fails open."""
    broken = job()
    broken["spec"]["template"]["spec"]["containers"] = containers

    answer = await Bench().answer(review_of(broken))

    document = orjson.loads(answer.body)
    assert (answer.status, document["kind"]) == (400, "Status")
    assert "spec.template.spec.containers" in document["message"]
    assert document["details"] == {"uid": "0815"}


async def test_broken_request_names_the_review_where_it_can() -> None:
    """The uid of a review without an object is in the error."""
    answer = await Bench().answer(review_of(None))

    assert answer.status == 400
    assert orjson.loads(answer.body)["details"] == {"uid": "0815"}


async def test_failed_estimate_lets_the_job_pass_with_a_warning() -> None:
    """A bug in the estimator is ours: unknown, with nothing of it shown."""
    bench = Bench()
    bench.workers.failure = TraceError(SECRET)

    answer = await bench.answer(review_of(job(batch_size=TOO_LARGE)))

    response = orjson.loads(answer.body)["response"]
    assert response["allowed"] is True
    assert response["warnings"]
    assert SECRET.encode() not in answer.body


@pytest.mark.parametrize("where", ["workers", "cluster"])
async def test_fault_of_ours_lets_the_job_pass_and_is_logged(
    where: str, logged: io.StringIO
) -> None:
    """The traceback is in the log and nowhere else; the fault is counted."""
    bench = Bench()
    if where == "workers":
        bench.workers.failure = RuntimeError(SECRET)
    else:
        bench.cluster.is_broken = True

    answer = await bench.answer(review_of(job(batch_size=TOO_LARGE)))

    response = orjson.loads(answer.body)["response"]
    assert response == {"uid": "0815", "allowed": True, "warnings": [f"vramgate: {FAULT_WARNING}"]}
    assert SECRET in logged.getvalue()
    assert bench.series("vramgate_unknown_total") == {'{code="fault"}': 1}


async def test_decision_is_one_log_line(logged: io.StringIO) -> None:
    """With everything a person searches for."""
    await Bench().answer(review_of(job(batch_size=TOO_LARGE), dry_run=True))

    (line,) = (orjson.loads(text) for text in logged.getvalue().splitlines())
    line.pop("timestamp")
    assert line.pop("seconds") >= 0
    assert line == {
        "level": "info",
        "event": "reviewed",
        "route": "validate",
        "operations": 0,
        "uid": "0815",
        "kind": "Job",
        "namespace": "team",
        "name": "train",
        "operation": "CREATE",
        "dry_run": True,
        "verdict": "oom",
        "reason": "too-large",
        "action": "deny",
        "mode": "enforce",
        "cache": "miss",
    }


async def test_review_is_counted_with_its_cache_and_source() -> None:
    """The second review of a job is a hit; the model came from the annotation."""
    bench = Bench()

    for _ in range(2):
        await bench.answer(review_of(job(batch_size=TOO_LARGE)))

    assert bench.series("vramgate_reviews_total") == {
        '{action="deny",kind="Job",mode="enforce",verdict="oom"}': 2
    }
    assert bench.series("vramgate_review_seconds_count") == {
        '{cache="hit"}': 1,
        '{cache="miss"}': 1,
    }
    assert bench.series("vramgate_spec_source_total") == {'{source="annotation"}': 2}


def large(**changes: Any) -> dict[str, Any]:
    """Return a job too large to be read on the loop: a long script, as people paste them."""
    obj = job(**changes)
    obj["metadata"]["annotations"]["script"] = "x" * SMALL_BODY
    return obj


async def test_review_that_takes_long_to_read_is_late_and_holds_nobody_up() -> None:
    """It is answered at its deadline as `onLate` says, is no fault, and others pass meanwhile."""
    reader = SlowReader()
    bench = Bench(read=reader)

    slow = asyncio.create_task(
        bench.response(review_of(large(batch_size=TOO_LARGE)), timeout_text="3s")
    )
    await asyncio.sleep(0)
    other = await bench.response(review_of(job(batch_size=FITS)))
    is_held_up = slow.done()
    response = await slow
    reader.may_read.set()

    assert other["auditAnnotations"]["verdict"] == "fits"
    assert not is_held_up
    assert response["allowed"] is True
    assert response["warnings"] == [f"vramgate: {UNREAD}"]
    assert response["auditAnnotations"] == {
        "verdict": "unknown",
        "mode": "enforce",
        "reason": "late",
    }
    assert bench.series("vramgate_unknown_total") == {'{code="late"}': 1}
    assert bench.series("vramgate_review_seconds_count")['{cache="late"}'] == 1


@pytest.mark.parametrize(
    ("policy", "owner"),
    [
        (PolicySettings(mode=Mode.ENFORCE), "nightly"),
        (PolicySettings(mode=Mode.ENFORCE, on_late=LateAction.ALLOW), ""),
        (PolicySettings(mode=Mode.OFF), ""),
    ],
)
async def test_unread_job_is_silent_where_a_late_one_is(policy: PolicySettings, owner: str) -> None:
    """Controlled objects, `onLate: allow` and mode off hear nothing."""
    reader = SlowReader()

    response = await Bench(policy, read=reader).response(
        review_of(large(owner=owner)), timeout_text="550ms"
    )
    reader.may_read.set()

    assert response["allowed"] is True
    assert "warnings" not in response


async def test_large_review_read_in_time_is_judged_like_any() -> None:
    """Reading in a thread changes nothing but where it happens."""
    reader = SlowReader()
    reader.may_read.set()

    response = await Bench(read=reader).response(review_of(large(batch_size=TOO_LARGE)))

    assert response["allowed"] is False
    assert reader.threads[0] is not threading.main_thread()


async def test_malformed_large_review_is_a_broken_request_too() -> None:
    """What the thread raises reaches the answer: HTTP 400 with the field and the uid."""
    broken = large()
    broken["spec"]["template"]["spec"]["containers"] = "x"

    answer = await Bench().answer(review_of(broken))

    document = orjson.loads(answer.body)
    assert (answer.status, document["details"]) == (400, {"uid": "0815"})
    assert "spec.template.spec.containers" in document["message"]


async def test_update_whose_stored_object_cannot_be_read_in_time_is_not_denied() -> None:
    """The stored object may have been as bad: in doubt for the person."""
    reader = SlowReader()
    bench = Bench(read=reader)
    small = job(batch_size=TOO_LARGE)
    stored = job(batch_size=FITS)
    container = stored["spec"]["template"]["spec"]["containers"][0]
    stored["spec"]["template"]["spec"]["containers"] = [container] * (SMALL_UNITS + 1)

    response = await bench.response(review_of(small, old=stored), timeout_text="800ms")
    reader.may_read.set()

    assert response["allowed"] is True
    assert response["warnings"]


@pytest.mark.parametrize(
    ("annotation", "units", "on_loop"),
    [
        ("plain", 1, True),
        ("plain", SMALL_UNITS, True),
        ("$" * SMALL_EXPANSIONS, 1, True),
        ("plain", SMALL_UNITS + 1, False),
        ("$" * (SMALL_EXPANSIONS + 1), 1, False),
        ("x" * SMALL_BODY, 1, False),
    ],
)
async def test_small_reviews_stay_on_the_loop(annotation: str, units: int, on_loop: bool) -> None:
    """A thread costs more than reading a plain job; many units or variables may take long."""
    reader = SlowReader()
    reader.may_read.set()
    obj = job()
    obj["metadata"]["annotations"]["note"] = annotation
    obj["spec"]["template"]["spec"]["containers"] *= units

    await Bench(read=reader).response(review_of(obj))

    assert [thread is threading.main_thread() for thread in reader.threads] == [on_loop]


async def test_threads_that_read_are_few_and_whoever_waits_is_late() -> None:
    """A flood of large reviews starts no flood of threads, and beyond a bound nobody waits."""
    reader = SlowReader()
    bench = Bench(read=reader)
    review, other = review_of(large()), review_of(large())
    other["request"]["namespace"] = "other"  # one namespace alone has not every thread

    waiting = [
        asyncio.create_task(bench.response(asked, timeout_text="3s"))
        for asked in (review, other) * ((MAX_READING + MAX_UNREAD) // 2)
    ]
    await asyncio.sleep(0)
    over = asyncio.create_task(bench.response(review, timeout_text="20s"))
    first, _ = await asyncio.wait([over, *waiting], return_when=asyncio.FIRST_COMPLETED)
    answers = await asyncio.gather(over, *waiting)
    reader.may_read.set()

    assert len(reader.threads) == MAX_READING
    assert first == {over}
    assert {answer["auditAnnotations"]["reason"] for answer in answers} == {"late"}


async def test_answered_reviews_leave_no_question_that_has_not_begun() -> None:
    """Late reviews of one namespace do not keep the workers from the next for an hour."""
    bench = Bench(max_concurrent=1)
    bench.workers.may_answer.clear()

    await asyncio.gather(
        *(
            bench.response(review_of(job(batch_size=size)), timeout_text="550ms")
            for size in range(1, 11)
        )
    )
    bench.workers.may_answer.set()
    response = await bench.response(review_of(job(batch_size=TOO_LARGE)))

    assert response["allowed"] is False
    assert bench.workers.num_asked == 2
    await bench.pool.close()


class FailingSources:
    """Has the documents once; whoever asks again is too late."""

    seconds = 2.0

    def __init__(self, documents: Documents) -> None:
        self._documents = dict(documents)

    async def fetch(
        self, wanted: Sequence[str], *, namespace: str, seconds: float | None = None
    ) -> Documents:
        """Return what there still is."""
        del namespace, seconds
        late = Document(problem="took longer than 2.0 s")
        return {name: self._documents.pop(name, late) for name in wanted}


async def test_update_is_not_denied_while_what_is_stored_cannot_be_read() -> None:
    """All the time may have gone into the new one; the stored one may have been as bad."""
    bench = Bench(sources=FailingSources(runtime_documents()))
    stored, updated = (trainjob({"resourcesPerNode": {"limits": {GPU: 1}}}) for _ in range(2))
    for document, batch_size in ((stored, FITS), (updated, TOO_LARGE)):
        spec = orjson.dumps(spec_document(batch_size=batch_size)).decode()
        document["metadata"]["annotations"] = {"vramgate.dev/spec": spec}

    response = await bench.response(review_of(updated, old=stored))

    assert response["allowed"] is True
    assert response["warnings"]
