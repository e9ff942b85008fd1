"""docs/reserved.md is made of accounts and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from estimator.device import Device
from estimator.pipeline import Job as EstimatedJob
from estimator.report.job import account_on
from estimator.report.records import JobAccount
from estimator.spec import parse_spec
from estimator.units import MIB
from tests.bench.accuracy.builders import case_of
from tests.bench.accuracy.cases import Metric, View
from tests.bench.reserved.jobs import Job, example_spec, jobs
from tests.bench.reserved.page import page, reading
from tests.estimator.stub import StubFrontend, card, spec_of

CARD = card()


def account(device: Device = CARD) -> JobAccount:
    """Return the account of the stub's job: 640 MiB."""
    return account_on(EstimatedJob(spec=spec_of(8), frontend=StubFrontend()), device)


def job_of(title: str = "A job") -> Job:
    """Return a job without a reading."""
    return Job(title=title, sentences=("A sentence.",), spec={}, gpu="t4")


def test_the_same_accounts_give_the_same_page() -> None:
    """There is no clock in it."""
    assert page([(job_of(), account())]) == page([(job_of(), account())])


def test_the_page_has_every_job_and_no_place_left_to_fill() -> None:
    """In the order they are given."""
    text = page([(job_of("First"), account()), (job_of("Second"), account())])

    assert text.index("## First") < text.index("## Second")
    assert text.count("### The 4 largest takings of 4") == 2
    assert "$" not in text


@pytest.mark.parametrize(("view", "counted"), [(View.CARD, 512), (View.PROCESS, 0)])
def test_a_reading_is_compared_with_what_is_beside_the_allocator_taken_off(
    view: View, counted: int
) -> None:
    """100 MiB more than the account are 640 of 740: the reservation counts on a whole card."""
    found = account()
    nbytes = found.usage.device_bytes + (100 + counted) * MIB
    case = case_of(nbytes=nbytes, metric=Metric.DEVICE, view=view)

    text = reading(case, found, is_fitted=False)

    assert f"| less the driver's reservation | {counted}.0 |" in text
    assert "| leaves reserved | 740.0 |" in text
    assert "| reserved by this account | 640.0 |" in text
    assert "| account against reading | -13.5 % |" in text


@pytest.mark.parametrize("is_fitted", [True, False])
def test_a_reading_that_chose_a_rule_is_no_test_of_it(is_fitted: bool) -> None:
    """The page says which it is."""
    text = reading(case_of(nbytes=1000 * MIB), account(), is_fitted=is_fitted)

    assert ("no independent test" in text) is is_fitted


def test_a_job_with_a_reading_shows_it() -> None:
    """And one without does not."""
    job = replace(job_of(), case=case_of(nbytes=1000 * MIB, metric=Metric.DEVICE))

    assert "### Beside the public reading" in page([(job, account())])
    assert "### Beside the public reading" not in page([(job_of(), account())])


def test_the_three_jobs_are_a_public_example_and_two_measured_cases() -> None:
    """Each is a spec that is accepted."""
    found = jobs()

    assert [parse_spec(job.spec).input.batch_size for job in found] == [256, 128, 32]
    assert [job.case is not None for job in found] == [False, True, True]


def test_the_example_is_what_the_webhook_reads() -> None:
    """The model, batch and optimizer of the manifest's command line."""
    spec = example_spec("resnet50-b256-fp32.yaml")

    assert (spec["model"]["name"], spec["training"]["optimizer"]["name"]) == ("resnet50", "sgd")
