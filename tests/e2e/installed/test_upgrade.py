"""What changes of a release do to reviews, and what is left when it is taken away."""

from __future__ import annotations

import pytest
from kubernetes import client

from tests.chart.rendering import NAMESPACE
from tests.e2e.arrivals import Arrivals
from tests.e2e.cluster import ControlPlane
from tests.e2e.installed.release import REGISTRATIONS, Json, Release
from tests.e2e.nodes import T4
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.workloads import unreadable_job

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("namespaces")]

NUM_THREADS = 2
WITHOUT_WORKERS: Json = {"workers": {"preload": []}}
"""Settings that a running process does not take up."""


def test_settings_that_reload_roll_no_pod(api: ApiServer, installed: Release) -> None:
    """The pods that are there take up another policy from their mounted ConfigMap."""
    pods = names(installed)
    silent = {"policy": {"enabled": False}}

    installed.upgrade(silent)

    poll_until(lambda: switches(installed) == {0}, what="the policy off")
    assert api.create(unreadable_job("warn", card=T4), dry_run=True).warnings == ()
    assert names(installed) == pods


def test_upgrade_that_rolls_pods_loses_no_review(plane: ControlPlane, installed: Release) -> None:
    """One replica after the other is replaced, with hooks, drains and endpoints as they are."""
    job = unreadable_job("warn", card=T4)
    installed.upgrade({})
    poll_until(lambda: switches(installed) == {1}, what="the policy on")
    pods = names(installed)

    with Arrivals(plane, job, num_threads=NUM_THREADS) as arrivals:
        arrivals.wait_for(5 * NUM_THREADS)
        installed.upgrade(WITHOUT_WORKERS)
        poll_until(lambda: not names(installed) & pods, what="the end of the old pods")
        arrivals.wait_for(5 * NUM_THREADS)

    unreviewed = [each for each in arrivals.all if not each.is_reviewed]
    longest = max(each.answered - each.sent for each in arrivals.all)
    print(
        f"\n{len(arrivals.all)} jobs while pods were rolled, {len(unreviewed)} of them not"
        f" reviewed; the longest took {longest:.2f} s"
    )
    assert unreviewed == []


def test_uninstall_leaves_nothing_behind(
    api: ApiServer, core: client.CoreV1Api, installed: Release
) -> None:
    """No registration that calls nobody, no key, no pod; jobs pass."""
    installed.uninstall()

    for document in (installed.secret, *map(installed.registration, REGISTRATIONS)):
        assert api.get(document).status == 404
    poll_until(lambda: not installed.pods(), what="the end of the pods")
    left = core.list_namespaced_config_map(NAMESPACE).items
    assert {each.metadata.name for each in left} == {"kube-root-ca.crt"}
    assert core.list_namespaced_secret(NAMESPACE).items == []
    answer = api.create(unreadable_job("enforce", card=T4), dry_run=True)
    assert (answer.status, answer.warnings) == (201, ())


def switches(release: Release) -> set[int]:
    """Return what the replicas say of whether they have a say."""
    return {release.metric("vramgate_policy_enabled", pod) for pod in release.pods()}


def names(release: Release) -> set[str]:
    """Return the names of the pods there are."""
    return {pod.metadata.name for pod in release.pods()}
