"""Every query of every dashboard, asked of a real Prometheus that scrapes the real webhook."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.cluster import ControlPlane
from tests.e2e.nodes import T4
from tests.e2e.processes import free_ports, poll_until
from tests.e2e.prometheus.others import exposition, shown
from tests.e2e.prometheus.server import Prometheus, Target, prometheus
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook
from tests.e2e.workloads import resnet50_job
from tests.monitoring.asked import Asked, asked, boards, spanned

pytestmark = pytest.mark.e2e

NAMESPACE = "enforce"
OF_SERVE = [query for query in asked() if not query.is_hidden]
OF_OTHERS = [query for query in asked() if query.is_hidden]
CALL = re.compile(r"label_values\((?P<match>\w+(?:\{.*\})?), (?P<label>\w+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A Prometheus that has scraped a webhook with a job admitted and one denied."""

    prometheus: Prometheus
    others_port: int
    job: str
    """The name of the job that was admitted."""
    since: float

    def chosen(self, expr: str) -> str:
        """Return *expr* as Grafana sends it when all, or the job, is chosen."""
        return spanned(expr, span="5m", rate="1m", namespace=NAMESPACE, workload=self.job)

    def answer(self, query: Asked) -> list[Any]:
        """Return the series that *query* brings."""
        expr = self.chosen(query.expr)
        if query.is_instant:
            return self.prometheus.query(expr)
        return self.prometheus.query_range(expr, since=self.since, until=time.time())


@pytest.fixture(scope="module")
def scene(
    plane: ControlPlane,
    api: ApiServer,
    webhook: Webhook,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scene]:
    """Scrape the webhook before and after two jobs."""
    since = time.time()
    (others,) = free_ports(1)
    targets = (
        Target(job="vramgate", port=webhook.port, authority=plane.authority.path),
        Target(job="others", port=others),
    )
    with prometheus(tmp_path_factory.mktemp("prometheus"), *targets) as server:
        poll_until(lambda: bool(server.query("vramgate_build_info")), what="a first scrape")
        job = resnet50_job(NAMESPACE, batch_size=64, card=T4)
        admitted = api.create(job)
        denied = api.create(resnet50_job(NAMESPACE, batch_size=256, card=T4))
        assert (admitted.status, denied.status) == (201, 403)
        name = job["metadata"]["name"]
        scraped = f'vramgate_workload_estimate_bytes{{workload="{name}"}} and '
        scraped += f"timestamp(vramgate_workload_estimate_bytes) > {time.time() + 1}"
        poll_until(lambda: bool(server.query(scraped)), what="scrapes of what was reviewed")
        yield Scene(prometheus=server, others_port=others, job=name, since=since)
        api.delete(job)


@pytest.fixture(scope="module")
def with_others(scene: Scene) -> Iterator[Scene]:
    """Scrape what may be there beside the webhook too."""
    text = exposition(NAMESPACE, scene.job, product=T4.product)
    with shown(text, scene.others_port):
        seen = (
            "count_over_time(vramgate_oom_total[1m]) >= 3 and on () vramgate:reviews_late:ratio15m"
            " and on () count_over_time(vramgate:estimate_error_ratio_count:increase1h[1m]) >= 3"
            " and on () vramgate:gpus_requested:sum and on () vramgate:gpu_pods_waiting:count"
            " and on () vramgate:dcgm_memory_used:ratio"
        )
        poll_until(lambda: bool(scene.prometheus.query(seen)), what="scrapes of the others")
        yield scene


@pytest.mark.parametrize("query", OF_SERVE, ids=lambda query: query.name)
def test_panel_has_data_where_there_is_the_webhook_alone(scene: Scene, query: Asked) -> None:
    """Every panel that is open at first."""
    assert scene.answer(query)


@pytest.mark.parametrize("board", boards().values(), ids=boards())
def test_variable_has_something_to_choose(scene: Scene, board: dict[str, Any]) -> None:
    """The names that people pick from."""
    for variable in board["templating"]["list"]:
        if variable["type"] != "query":
            continue
        call = CALL.fullmatch(variable["query"]["query"])
        assert call is not None, variable["query"]
        match = call["match"].replace("$namespace", NAMESPACE).replace("$kind", "Job")
        assert scene.prometheus.label_values(call["label"], match), variable["name"]


def test_figures_are_those_of_the_jobs(scene: Scene) -> None:
    """One admitted, one denied, since Prometheus looks."""
    denied = 'vramgate_reviews_total{action="deny",verdict="oom",kind="Job"}'
    (increase,) = scene.prometheus.query(f"sum(delta({denied}[5m])) > 0")
    (peak,) = scene.prometheus.query(
        f'vramgate_workload_estimate_bytes{{workload="{scene.job}",bound="peak"}}'
    )
    (admitted,) = scene.prometheus.query(
        'vramgate_admitted_predicted_bytes_total{product=~".*T4.*"}'
    )

    assert float(increase["value"][1]) > 0
    assert float(admitted["value"][1]) >= float(peak["value"][1]) > 0


def test_rules_are_evaluated_on_what_the_webhook_shows(scene: Scene) -> None:
    """None is refused, and nothing is wrong with a webhook that does its work."""
    wrong = {"VramgateFailsOpen", "VramgateAbsent", "VramgateReviewsFail", "VramgateNotCalled"}
    rules = scene.prometheus.rules()

    assert not [rule for rule in rules if rule.get("lastError")]
    firing = {rule["name"] for rule in rules if rule.get("state") == "firing"}
    assert not firing & wrong


@pytest.mark.parametrize("query", OF_OTHERS, ids=lambda query: query.name)
def test_closed_row_has_data_once_the_others_are_there(with_others: Scene, query: Asked) -> None:
    """Agent, controller, dcgm-exporter, kube-state-metrics, the API server."""
    assert with_others.answer(query)


@pytest.mark.parametrize(
    ("panel", "label", "expected"),
    [
        ("Memory used by node", "node", {"old", "new"}),
        ("Memory used of the GPUs of each pod, and the estimate", "pod", {"x7f2p", "q8k4z"}),
    ],
)
def test_both_spellings_of_dcgm_are_shown(
    with_others: Scene, panel: str, label: str, expected: set[str]
) -> None:
    """`Hostname` and `hostname`, `exported_pod` and `pod`: an upgrade has both for a while."""
    query = next(query for query in OF_OTHERS if query.panel == panel)

    found = {series["metric"][label].split("-")[-1] for series in with_others.answer(query)}

    assert found == expected
