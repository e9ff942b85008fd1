"""Rows about the webhook itself: replicas, certificate, problems, and what the API server sees."""

from __future__ import annotations

from deploy.monitoring.dashboards.parts import COUNT, SECONDS, SHARE, Kind, Panel, Query, Row

RATE = "$__rate_interval"
RANGE = "$__range"

HEALTH = Row(
    title="Health",
    panels=(
        Panel(
            title="Replicas",
            description="That are scraped, by version.",
            unit=COUNT,
            kind=Kind.NUMBER,
            width=6,
            height=5,
            queries=(
                Query(
                    expr="count by (version) (vramgate_build_info and on (job, instance) "
                    "vramgate_policy_enabled)",
                    legend="{{version}}",
                ),
            ),
        ),
        Panel(
            title="Certificate lasts",
            description="The replica whose certificate ends first.",
            unit=SECONDS,
            kind=Kind.NUMBER,
            width=6,
            height=5,
            warn_below=30 * 86400,
            queries=(Query(expr="min(vramgate_certificate_expiry_seconds)"),),
        ),
        Panel(
            title="Switched on",
            description="Share of the replicas whose settings have policy.enabled.",
            unit=SHARE,
            kind=Kind.NUMBER,
            width=6,
            height=5,
            warn_below=1,
            queries=(Query(expr="avg(vramgate_policy_enabled)"),),
        ),
        Panel(
            title="caBundle put back",
            description="More than a few are somebody's edits.",
            unit=COUNT,
            kind=Kind.NUMBER,
            width=6,
            height=5,
            warn_above=5,
            queries=(Query(expr=f"sum(increase(vramgate_ca_bundle_injections_total[{RANGE}]))"),),
        ),
        Panel(
            title="Problems",
            description="Certificates and watches: 1 while something is in the way, in any "
            "replica.",
            unit=COUNT,
            queries=(
                Query(
                    expr="max by (problem) (vramgate_certificate_problems)",
                    legend="certificate: {{problem}}",
                ),
                Query(
                    expr="max by (resource) (vramgate_watch_interrupted)",
                    legend="watch: {{resource}}",
                ),
            ),
        ),
        Panel(
            title="Settings and patches",
            description="Changes of the settings file by what became of them; patches not sent.",
            unit=COUNT,
            queries=(
                Query(
                    expr=f"sum by (outcome) (increase(vramgate_settings_reloads_total[{RATE}]))",
                    legend="settings: {{outcome}}",
                ),
                Query(
                    expr=f"sum(increase(vramgate_patches_dropped_total[{RATE}]))",
                    legend="patches dropped",
                ),
            ),
        ),
    ),
)

_OURS = 'name=~".+\\\\.vramgate\\\\.dev"'
CALLS = Row(
    title="As the API server sees it",
    needs="the API server's metrics",
    panels=(
        Panel(
            title="Time of a call",
            description="With TLS and network. 99 of a hundred are faster.",
            unit=SECONDS,
            warn_above=4,
            queries=(
                Query(
                    expr="histogram_quantile(0.99, sum by (le, name) (rate("
                    f"apiserver_admission_webhook_admission_duration_seconds_bucket{{{_OURS}}}"
                    f"[{RATE}])))",
                    legend="{{name}}",
                ),
            ),
        ),
        Panel(
            title="Calls that failed and were ignored",
            description="Each is a job that was admitted unreviewed.",
            unit=COUNT,
            queries=(
                Query(
                    expr="sum by (name) (increase("
                    f"apiserver_admission_webhook_fail_open_count{{{_OURS}}}[{RATE}]))",
                    legend="{{name}}",
                ),
            ),
        ),
    ),
)
