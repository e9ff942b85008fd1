"""`/mutate` decides, steers and writes down; `/validate` believes nothing of it."""

from __future__ import annotations

import asyncio
import base64
import io
import time
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import jsonpatch
import orjson
import pytest

from admission.codes import Action, Mode, Steer
from admission.estimates import AskingPool
from admission.handling.asked import Asked
from admission.handling.judging import Judging
from admission.handling.mutating import Mutating
from admission.handling.policies import Policies
from admission.policy_settings import PolicySettings, SteeringSettings
from admission.reader import ReviewReader
from admission.review import Route, parse_review
from admission.steer.notes import DIGEST, ENOUGH, LEAST, VERDICT
from admission.steer.operations import Operation
from admission.steer.terms import RECORD
from estimator.units import GIB, MIB
from tests.admission.steer.scene import A10, A10_RESERVATION, A100, T4, gt, nodes
from tests.admission.test_handler import FITS, TOO_LARGE, Bench, job, logged, review_of
from tests.admission.test_server import Site, post, running

__all__ = ["logged"]

MIDDLE = 200
"""A batch that takes 20 GiB: more than a T4 has, less than an A10."""
OVER = 20 * GIB // MIB + A10_RESERVATION - 1
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def bench(
    policy: PolicySettings | None = None, *, steering: SteeringSettings | None = None
) -> Bench:
    """Return a handler in a cluster with T4 and A10, in mode enforce unless *policy* says so."""
    return Bench(policy, nodes=nodes((T4, A10)), steering=steering)


class Departure(asyncio.Event):
    """Lets an estimate through, once every node has left the cluster."""

    def __init__(self, where: Bench) -> None:
        super().__init__()
        self._where = where

    async def wait(self) -> Literal[True]:
        """Let the nodes go."""
        self._where.cluster.has()
        return True


async def mutated(
    where: Bench, obj: Mapping[str, Any], **review: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the response of `/mutate` and *obj* as it leaves it."""
    response = await where.response(review_of(obj, **review), route=Route.MUTATE)
    return response, patched(obj, response)


def patched(obj: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    """Return *obj* as the API server makes it with the response."""
    if "patch" not in response:
        return deepcopy(dict(obj))
    assert response["patchType"] == "JSONPatch"
    found: dict[str, Any] = jsonpatch.JsonPatch(
        orjson.loads(base64.b64decode(response["patch"]))
    ).apply(obj)
    return found


def affinity_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the node affinity of a Job's pods, empty if they have none."""
    affinity = obj["spec"]["template"]["spec"].get("affinity") or {}
    found: dict[str, Any] = affinity.get("nodeAffinity") or {}
    return found


def notes_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations of an object."""
    found: dict[str, str] = obj["metadata"]["annotations"]
    return found


async def test_job_is_steered_to_the_cards_that_hold_it_and_fits_there() -> None:
    """The warning that it may land on a T4 is gone: it no longer may."""
    where = bench()

    response, obj = await mutated(where, job(batch_size=MIDDLE))

    assert affinity_of(obj)[REQUIRED]["nodeSelectorTerms"] == [{"matchExpressions": [gt(OVER)]}]
    assert response["auditAnnotations"]["verdict"] == "fits"
    assert "warnings" not in response
    assert where.series("vramgate_steered_total") == {'{kind="Job"}': 1}
    assert where.series("vramgate_reviews_total") == {
        '{action="allow",kind="Job",mode="enforce",verdict="fits"}': 1
    }


async def test_the_same_job_is_steered_alike_until_the_nodes_change() -> None:
    """What was found of the nodes is remembered, and forgotten with them."""
    where = bench()
    terms = []

    for cards in ((T4, A10), (T4, A10), (T4, A100)):
        where.cluster.has(*nodes(cards))
        for _ in range(2):
            _, obj = await mutated(where, job(batch_size=MIDDLE))
            terms.append(affinity_of(obj)[REQUIRED]["nodeSelectorTerms"])

    fresh = Bench(nodes=nodes((T4, A100)))
    _, obj = await mutated(fresh, job(batch_size=MIDDLE))
    assert terms[0] == [{"matchExpressions": [gt(OVER)]}]
    assert terms[:4] == terms[:1] * 4
    assert terms[4:] == [affinity_of(obj)[REQUIRED]["nodeSelectorTerms"]] * 2
    assert terms[4] != terms[0]


async def test_nodes_that_leave_while_a_job_is_estimated_are_missed_by_the_next_review() -> None:
    """It is steered by the cards that it was judged on, and by the labels that those had then."""
    where, still = bench(), bench()
    where.workers.may_answer = Departure(where)

    _, obj = await mutated(where, job(batch_size=MIDDLE))

    _, same = await mutated(still, job(batch_size=MIDDLE))
    assert affinity_of(obj) == affinity_of(same)
    _, later = await mutated(where, job(batch_size=MIDDLE))
    assert affinity_of(later) != affinity_of(obj)


async def test_what_was_found_is_written_on_the_job_and_its_pods() -> None:
    """For people, controllers and metrics."""
    _, obj = await mutated(bench(), job(batch_size=MIDDLE))

    for notes in (notes_of(obj), notes_of(obj["spec"]["template"])):
        assert notes[VERDICT] == "fits"
        assert notes[LEAST] == notes[ENOUGH] == str(20 * GIB)
        assert notes[DIGEST].startswith("sha256:")
    assert RECORD not in notes_of(obj)
    container = obj["spec"]["template"]["spec"]["containers"][0]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


async def test_audit_log_has_the_terms_that_the_pods_were_given() -> None:
    """By pod template, as they are written down beside them; of no patch there are none."""
    where = bench()

    response, obj = await mutated(where, job(batch_size=MIDDLE))
    silent, _ = await mutated(where, job(gpus=0))

    record = orjson.loads(notes_of(obj["spec"]["template"])[RECORD])
    assert orjson.loads(response["auditAnnotations"]["steered"]) == {"spec.template": record}
    assert "steered" not in silent["auditAnnotations"]


async def test_job_too_large_is_denied_here_already() -> None:
    """And nothing is patched."""
    response, _ = await mutated(bench(), job(batch_size=TOO_LARGE))

    assert response["allowed"] is False
    assert "25.6 GiB" in response["status"]["message"]
    assert "patch" not in response


async def test_job_too_large_is_let_in_noted_where_only_a_warning_is_asked_for() -> None:
    """Led nowhere: no card holds it."""
    response, obj = await mutated(bench(PolicySettings()), job(batch_size=TOO_LARGE))

    assert response["warnings"]
    assert notes_of(obj)[VERDICT] == "oom"
    assert affinity_of(obj) == {}


@pytest.mark.parametrize(
    ("install", "default", "namespace", "label", "key"),
    [
        (Mode.ENFORCE, None, None, None, REQUIRED),
        (Mode.WARN, None, None, None, PREFERRED),
        (Mode.WARN, Steer.REQUIRED, None, None, REQUIRED),
        (Mode.ENFORCE, Steer.OFF, None, None, None),
        (Mode.ENFORCE, None, Steer.PREFERRED, None, PREFERRED),
        (Mode.ENFORCE, None, Steer.OFF, "required", REQUIRED),
        (Mode.ENFORCE, None, Steer.REQUIRED, "off", None),
        (Mode.ENFORCE, None, None, "hard", REQUIRED),
    ],
)
async def test_how_hard_to_steer(
    install: Mode, default: Steer | None, namespace: Steer | None, label: str | None, key: str
) -> None:
    """The object's label beats the namespace's, that the settings, those the mode."""
    where = bench(PolicySettings(mode=install), steering=SteeringSettings(default=default))
    if namespace is not None:
        where.cluster.steers["team"] = namespace
    labels = {"vramgate.dev/steer": label} if label else {}

    _, obj = await mutated(where, job(batch_size=MIDDLE, labels=labels))

    assert [name for name in (REQUIRED, PREFERRED) if name in affinity_of(obj)] == (
        [key] if key else []
    )


async def test_what_a_controller_made_is_left_alone_where_nothing_is_known_of_it() -> None:
    """Its owner's annotations may say more than can be read of it."""
    obj = job(batch_size=MIDDLE)
    del obj["metadata"]["annotations"]["vramgate.dev/spec"]
    obj["metadata"]["annotations"][ENOUGH] = "1"
    owner = {"apiVersion": "kaito.sh/v1beta1", "kind": "Workspace", "controller": True}
    obj["metadata"]["ownerReferences"] = [owner]

    unknown, _ = await mutated(bench(), obj)
    known = deepcopy(obj)
    known["metadata"]["annotations"] |= job(batch_size=MIDDLE)["metadata"]["annotations"]
    found, _ = await mutated(bench(), known)

    assert unknown == {**unknown, "allowed": True}
    assert "patch" not in unknown
    assert "patch" in found


async def test_mode_off_patches_nothing() -> None:
    """Silent, and still counted."""
    response, _ = await mutated(bench(PolicySettings(mode=Mode.OFF)), job(batch_size=MIDDLE))

    assert "patch" not in response
    assert response["allowed"] is True


async def test_job_without_gpus_is_not_touched() -> None:
    """There is nothing to say of it."""
    response, _ = await mutated(bench(), job(gpus=0))

    assert "patch" not in response


async def test_dry_run_gets_the_same_patch() -> None:
    """A patch leaves no trace with us."""
    where = bench()

    tried, _ = await mutated(where, job(batch_size=MIDDLE), dry_run=True)
    real, _ = await mutated(where, job(batch_size=MIDDLE))

    assert tried == real


async def test_job_whose_name_is_to_be_generated_is_steered(logged: io.StringIO) -> None:
    """At `/mutate` it has no name yet; the log says what it will begin with."""
    obj = job(batch_size=MIDDLE)
    del obj["metadata"]["name"]
    obj["metadata"]["generateName"] = "train-"
    review = review_of(obj)
    review["request"]["name"] = ""

    response = await bench().response(review, route=Route.MUTATE)

    assert affinity_of(patched(obj, response))
    line = orjson.loads(logged.getvalue().splitlines()[-1])
    assert (line["name"], line["route"]) == ("train-", "mutate")
    assert line["operations"] > 0


async def test_second_call_has_no_patch() -> None:
    """`reinvocationPolicy: IfNeeded` asks again after other webhooks."""
    where = bench()
    _, obj = await mutated(where, job(batch_size=MIDDLE))

    response, _ = await mutated(where, obj)

    assert "patch" not in response
    assert response["auditAnnotations"]["verdict"] == "fits"
    assert where.workers.num_asked == 1


async def test_changed_job_is_judged_without_the_terms_of_the_old_one() -> None:
    """A smaller batch may go to the T4 again, whatever `Gt` it carries."""
    where = bench()
    _, large = await mutated(where, job(batch_size=MIDDLE, suspend=True))
    small = deepcopy(large)
    fresh = job(batch_size=FITS)
    small["metadata"]["annotations"] |= fresh["metadata"]["annotations"]

    _, obj = await mutated(where, small, old=large)

    (term,) = affinity_of(obj)[REQUIRED]["nodeSelectorTerms"]
    (expression,) = term["matchExpressions"]
    assert int(expression["values"][0]) < T4[1]


async def test_started_job_is_left_as_it_is() -> None:
    """Its template is immutable: a patch of it would fail the update."""
    started = job(batch_size=MIDDLE, started=True)

    response, _ = await mutated(bench(), started, old=started)

    assert "patch" not in response


async def test_validate_says_nothing_new_of_a_job_that_mutate_steered() -> None:
    """The reading is made again, the estimate is remembered, the verdict is the same."""
    where = bench()
    _, obj = await mutated(where, job(batch_size=MIDDLE))

    response = await where.response(review_of(obj))

    assert response["allowed"] is True
    assert "warnings" not in response
    assert response["auditAnnotations"]["verdict"] == "fits"
    assert where.workers.num_asked == 1
    assert where.series("vramgate_spec_source_total") == {'{source="annotation"}': 1}


async def test_validate_denies_what_was_changed_after_mutate() -> None:
    """The annotations of a job that fitted are no ticket for another."""
    where = bench()
    _, obj = await mutated(where, job(batch_size=FITS))
    other = deepcopy(obj)
    other["metadata"]["annotations"] |= job(batch_size=TOO_LARGE)["metadata"]["annotations"]

    response = await where.response(review_of(other))

    assert response["allowed"] is False


async def test_validate_does_not_wait_long_for_what_mutate_was_late_with() -> None:
    """It was told once: at most a second, and no second warning."""
    where = bench()
    where.workers.may_answer.clear()
    first, obj = await mutated(where, job(batch_size=MIDDLE))
    assert notes_of(obj)[VERDICT] == "unknown"

    again = await where.response(review_of(obj), timeout_text="30s")

    assert first["warnings"]
    assert again == {**again, "allowed": True}
    assert "warnings" not in again
    await where.pool.close()


async def test_annotation_shortens_nothing_where_mutate_is_not_asked() -> None:
    """Whoever writes a job can write that it was judged."""
    where = bench()
    obj = job(batch_size=TOO_LARGE)
    obj["metadata"]["annotations"][VERDICT] = "fits"
    where.workers.may_answer.clear()

    response = await where.response(review_of(obj), timeout_text="550ms")

    assert response["warnings"]
    await where.pool.close()


async def test_patch_that_must_not_be_sent_is_dropped(logged: io.StringIO) -> None:
    """The job passes as it is; the fault is logged and counted."""

    def broken(_before: object, _after: object) -> tuple[Operation, ...]:
        return ({"op": "replace", "path": "/spec/template/spec/containers", "value": []},)

    where = bench()
    mutating = Mutating(
        judging=Judging(reader=ReviewReader(), sources=None, clock=time.monotonic),
        policies=Policies(
            policy=PolicySettings(), steering=SteeringSettings(), cluster=where.cluster
        ),
        metrics=where.metrics,
        between=broken,
    )
    now = time.monotonic()
    asked = Asked(
        review=parse_review(review_of(job(batch_size=MIDDLE))),
        estimator=AskingPool(where.pool),
        classes=where.cluster.classes,
        started=now,
        ends=now + 30,
        is_small=True,
    )

    judgement, patch = await mutating.mutated(asked)

    assert (judgement.action, patch) == (Action.WARN, ())
    assert where.series("vramgate_patches_dropped_total") == {'{kind="Job"}': 1}
    assert where.series("vramgate_steered_total") == {}
    assert "patch dropped" in logged.getvalue()


async def test_large_job_is_patched_like_any() -> None:
    """Beside the event loop, with the same result."""
    obj = job(batch_size=MIDDLE)
    large = deepcopy(obj)
    large["metadata"]["annotations"]["script"] = "x" * 20_000

    _, small_patched = await mutated(bench(), obj)
    _, large_patched = await mutated(bench(), large)

    assert large_patched["spec"] == small_patched["spec"]


async def test_patch_arrives_over_tls(tmp_path: Path) -> None:
    """The route of the mutating webhook."""
    site = Site(tmp_path, drain_seconds=0)
    async with running(site) as session:
        url = f"{site.base}/mutate?timeout=5s"
        status, body = await post(session, url, review_of(job(batch_size=FITS)))

    response = orjson.loads(body)["response"]
    assert (status, response["patchType"]) == (200, "JSONPatch")
    assert notes_of(patched(job(batch_size=FITS), response))[VERDICT] == "fits"
