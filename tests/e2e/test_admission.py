"""Submit jobs to a real control plane and see what people, the scheduler and metrics see."""

from __future__ import annotations

import pytest
from kubernetes import client

from tests.e2e.nodes import A100, T4
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook
from tests.e2e.workloads import (
    job_without_gpus,
    resnet50_cronjob,
    resnet50_job,
    resnet50_pytorchjob,
    script_config_map,
    scripted_job,
    unreadable_job,
)

pytestmark = pytest.mark.e2e


@pytest.mark.usefixtures("webhook")
def test_job_too_large_for_its_cards_is_denied_with_the_reason(api: ApiServer) -> None:
    """The client's error says what batch 256 needs and what a 16 GiB card has."""
    job = resnet50_job("enforce", batch_size=256, card=T4)

    answer = api.create(job)

    assert answer.status == 403
    assert "denied the request" in answer.message
    assert "GiB" in answer.message
    assert T4.product in answer.message
    assert api.get(job).status == 404


@pytest.mark.usefixtures("webhook")
def test_job_that_fits_is_admitted_and_scheduled_on_its_card(
    api: ApiServer, core: client.CoreV1Api
) -> None:
    """Batch 64 passes without a word and its pod lands on the 16 GiB node."""
    job = resnet50_job("enforce", batch_size=64, card=T4)

    answer = api.create(job)

    assert (answer.status, answer.warnings) == (201, ())
    assert node_of_job(core, job["metadata"]["name"]) == T4.name


@pytest.mark.usefixtures("webhook")
def test_job_too_large_for_one_card_is_admitted_for_a_larger_one(
    api: ApiServer, core: client.CoreV1Api
) -> None:
    """Batch 256 passes where it asks for 40 GiB cards and its pod lands on such a node."""
    job = resnet50_job("enforce", batch_size=256, card=A100)

    answer = api.create(job)

    assert (answer.status, answer.warnings) == (201, ())
    assert node_of_job(core, job["metadata"]["name"]) == A100.name


@pytest.mark.usefixtures("webhook")
def test_job_too_large_passes_with_a_warning_in_a_warn_namespace(api: ApiServer) -> None:
    """The job that `enforce` denies is created in mode `warn`, with the reason as a warning."""
    job = resnet50_job("warn", batch_size=256, card=T4)

    answer = api.create(job)

    assert answer.status == 201
    assert any("GiB" in warning for warning in answer.warnings)
    assert api.get(job).status == 200


@pytest.mark.usefixtures("webhook")
def test_job_too_large_passes_silently_in_an_off_namespace(api: ApiServer) -> None:
    """Mode `off` says nothing and stops nothing."""
    job = resnet50_job("off", batch_size=256, card=T4)

    answer = api.create(job)

    assert (answer.status, answer.warnings) == (201, ())


@pytest.mark.usefixtures("webhook")
def test_unreadable_job_passes_with_a_warning(api: ApiServer) -> None:
    """A GPU job that hides its model is admitted, even where the webhook enforces."""
    job = unreadable_job("enforce", card=T4)

    answer = api.create(job)

    assert answer.status == 201
    assert answer.warnings


@pytest.mark.usefixtures("webhook")
def test_job_whose_script_is_in_a_config_map_is_judged_by_it(api: ApiServer) -> None:
    """The script is fetched from the API server; batch 256 is denied, batch 32 passes."""
    answers = []
    for batch_size in (256, 32):
        config_map = script_config_map("enforce", batch_size=batch_size)
        assert api.create(config_map).status == 201
        name = config_map["metadata"]["name"]
        answers.append(api.create(scripted_job("enforce", config_map=name, card=T4)))

    assert [answer.status for answer in answers] == [403, 201]
    assert "GiB" in answers[0].message
    assert answers[1].warnings == ()


@pytest.mark.usefixtures("webhook")
def test_job_whose_config_map_is_not_there_passes_and_is_told_so(api: ApiServer) -> None:
    """Somebody may apply it a moment later: that is no reason to refuse the job."""
    answer = api.create(scripted_job("enforce", config_map="comes-later", card=T4))

    assert answer.status == 201
    assert any("comes-later" in warning for warning in answer.warnings)


def test_job_without_gpus_passes_untouched_and_unreviewed(api: ApiServer, webhook: Webhook) -> None:
    """The match conditions keep a job that asks for no GPU away from the webhook."""
    job = job_without_gpus("enforce")
    reviewed = webhook.num_reviews()

    answer = api.create(job)

    assert (answer.status, answer.warnings) == (201, ())
    assert webhook.num_reviews() == reviewed
    assert not answer.body["metadata"].get("annotations")
    stored = answer.body["spec"]["template"]["spec"]
    assert not {"affinity", "nodeSelector", "schedulingGates"} & stored.keys()


@pytest.mark.usefixtures("webhook")
def test_pytorchjob_too_large_for_its_cards_is_denied(api: ApiServer) -> None:
    """A kind of Kubeflow's is judged like a Job, by the template of its replicas."""
    document = resnet50_pytorchjob("enforce", batch_size=256, card=T4)

    answer = api.create(document)

    assert answer.status == 403
    assert T4.product in answer.message


@pytest.mark.usefixtures("webhook")
def test_cronjob_too_large_for_its_cards_is_denied(api: ApiServer) -> None:
    """A CronJob is refused when it is written, not each night when it runs."""
    document = resnet50_cronjob("enforce", batch_size=256, card=T4)

    answer = api.create(document)

    assert answer.status == 403
    assert T4.product in answer.message


@pytest.mark.usefixtures("webhook")
def test_dry_run_answers_the_same_and_creates_nothing(api: ApiServer) -> None:
    """`--dry-run=server` tells a person beforehand what a real submission would."""
    too_large = resnet50_job("enforce", batch_size=256, card=T4)
    fitting = resnet50_job("enforce", batch_size=64, card=T4)

    tried, refused = api.create(too_large, dry_run=True), api.create(too_large)
    admitted = api.create(fitting, dry_run=True)

    assert (tried.status, tried.message) == (refused.status, refused.message)
    assert tried.status == 403
    assert (admitted.status, admitted.warnings) == (201, ())
    assert api.get(fitting).status == 404


def test_review_is_counted_in_the_metrics(api: ApiServer, webhook: Webhook) -> None:
    """A denial counts once, under its kind, verdict and action."""
    labels = {"kind": "Job", "verdict": "oom", "action": "deny", "mode": "enforce"}
    before = webhook.num_reviews(**labels)

    api.create(resnet50_job("enforce", batch_size=256, card=T4))

    assert webhook.num_reviews(**labels) == before + 1


def test_jobs_pass_while_the_webhook_is_stopped(api: ApiServer, webhook: Webhook) -> None:
    """`failurePolicy: Ignore` lets a job in that nobody reviews; the next one is denied again."""
    unreviewed = resnet50_job("enforce", batch_size=256, card=T4)
    reviewed = resnet50_job("enforce", batch_size=256, card=T4)

    with webhook.stopped():
        passed = api.create(unreviewed)

    assert passed.status == 201
    assert api.get(unreviewed).status == 200
    poll_until(
        lambda: api.create(reviewed, dry_run=True).status == 403,
        what="a denial by the webhook started again",
    )


def node_of_job(core: client.CoreV1Api, job: str, namespace: str = "enforce") -> str:
    """Return the node that the scheduler gave the first pod of *job*."""
    selector = f"batch.kubernetes.io/job-name={job}"

    def nodes() -> list[str]:
        pods = core.list_namespaced_pod(namespace, label_selector=selector).items
        return [str(pod.spec.node_name) for pod in pods if pod.spec.node_name]

    poll_until(lambda: bool(nodes()), what=f"a scheduled pod of job {job}")
    return nodes()[0]
