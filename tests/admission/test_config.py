"""The settings file is read strictly, and every problem is said at once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import BaseModel

from admission.codes import Action, Mode, Steer
from admission.config import Settings, load_settings, parse_settings
from admission.errors import SettingsError
from admission.policy_settings import LateAction
from estimator.spec import Framework


def problems(text: str) -> list[str]:
    """Return what is wrong with the settings *text*."""
    with pytest.raises(SettingsError) as caught:
        parse_settings(text)
    return [str(problem) for problem in caught.value.problems]


def test_empty_file_means_every_default() -> None:
    """A new install only warns and starts with PyTorch."""
    settings = parse_settings("# nothing yet\n")

    assert settings == Settings()
    assert settings.policy.mode is Mode.WARN
    assert settings.policy.on_unknown is Action.WARN
    assert settings.steering.default is None
    assert settings.steering.termination_messages
    assert settings.server.port == 8443
    assert settings.workers.preload == (Framework.PYTORCH,)
    assert settings.workers.timeout_seconds == 60.0


@pytest.mark.parametrize("off", ["off", "'off'", "Off"])
def test_off_means_off_without_quotes_too(off: str) -> None:
    """YAML 1.1 reads the bare word as false; nobody who writes it means anything else."""
    settings = parse_settings(f"policy: {{mode: {off}}}\nsteering: {{default: {off}}}")

    assert settings.policy.mode is Mode.OFF
    assert settings.steering.default is Steer.OFF


def test_on_is_no_mode() -> None:
    """What would it mean: warn, or enforce?"""
    (problem,) = problems("policy: {mode: on}")

    assert problem.startswith("policy.mode: True is not one of")


def test_exemption_has_an_end_with_a_time_zone_and_a_reason() -> None:
    """One without either would be forgotten, or end at somebody's midnight."""
    settings = parse_settings(
        """
        policy:
          exemptions:
            - {namespace: team, name: 'sweep-*', until: 2026-12-31T00:00:00Z, reason: OPS-7}
            - {namespace: team, kind: Job, until: '2020-01-01T00:00:00+02:00', reason: over}
        """
    )

    first, second = settings.policy.exemptions
    assert first.until == datetime(2026, 12, 31, tzinfo=UTC)
    assert (first.kind, second.name) == (None, "*")
    assert second.until == datetime(2019, 12, 31, 22, tzinfo=UTC)


def test_every_problem_of_an_exemption_is_said() -> None:
    """Path, value and what is accepted, as of any other setting."""
    found = problems(
        """
        policy:
          exemptions:
            - {namespace: Team, name: '[a]', until: 2026-12-31, reason: ''}
            - {until: 2026-12-31T00:00:00}
        """
    )

    starts = [problem.partition(":")[0] for problem in found]
    assert starts == [
        *(f"policy.exemptions[0].{key}" for key in ("namespace", "name", "until", "reason")),
        *(f"policy.exemptions[1].{key}" for key in ("namespace", "until", "reason")),
    ]


def test_keys_are_camel_case_and_values_typed() -> None:
    """Words become members of their closed sets, lists become tuples, paths become paths."""
    settings = parse_settings(
        """
        server: {host: 127.0.0.1, port: 0, certFile: a.crt, keyFile: a.key, metricsPort: 9090}
        policy: {mode: enforce, onUnknown: deny, onLate: allow, workloadsMayLoosen: true}
        steering: {default: preferred, terminationMessages: false}
        workers: {preload: [pytorch, jax], maxConcurrent: 3, timeoutSeconds: 30}
        nodes: {file: nodes.json, keepDays: 2}
        """
    )

    assert settings.server.cert_file == Path("a.crt")
    assert settings.server.metrics_port == 9090
    assert settings.policy.mode is Mode.ENFORCE
    assert settings.policy.on_late is LateAction.ALLOW
    assert settings.policy.workloads_may_loosen
    assert settings.steering.default is Steer.PREFERRED
    assert not settings.steering.termination_messages
    assert settings.workers.preload == (Framework.PYTORCH, Framework.JAX)
    assert settings.workers.timeout_seconds == 30
    assert settings.nodes.keep_days == 2


def test_every_problem_is_reported_at_once_with_its_path() -> None:
    """Five mistakes in four sections come back as five problems."""
    found = problems(
        """
        server: {port: "8443", cert_file: a.crt}
        policy: {mode: strict}
        workers: {maxConcurrent: 0}
        telemetry: {}
        """
    )

    assert found == [
        "server.port: '8443' is not accepted: input should be a valid integer",
        "server.cert_file: unknown key (value 'a.crt'); did you mean 'certFile'?",
        "policy.mode: 'strict' is not one of 'enforce', 'warn' or 'off'",
        "workers.maxConcurrent: 0 is not accepted: input should be greater than or equal to 1",
        "telemetry: unknown key (value {})",
    ]


def test_late_jobs_can_never_be_denied() -> None:
    """`onLate` has no `deny`: a slow estimate is our problem, not the job's."""
    assert problems("policy: {onLate: deny}") == [
        "policy.onLate: 'deny' is not one of 'allow' or 'warn'"
    ]


@pytest.mark.parametrize(
    "text", ["[1, 2]", "just words", "a: 1\n---\nb: 2", "a: [", "a: &x 1\nb: *x"]
)
def test_what_is_no_mapping_is_refused_with_a_reason(text: str) -> None:
    """Lists, words, two documents, broken YAML and aliases are problems, not crashes."""
    assert problems(text)


def test_missing_file_is_named(tmp_path: Path) -> None:
    """The path of a settings file that is not there is in the message."""
    path = tmp_path / "none.yaml"

    with pytest.raises(SettingsError, match=r"none\.yaml: no such file"):
        load_settings(path)


def test_every_setting_is_documented() -> None:
    """Each field of each section has a docstring under it: meaning, unit, why this default."""
    import ast

    import admission.config

    tree = ast.parse(Path(admission.config.__file__).read_text())
    undocumented = [
        f"{section.name}.{field.target.id}"
        for section in tree.body
        if isinstance(section, ast.ClassDef) and section.name.endswith("Settings")
        for field, after in zip(section.body, [*section.body[1:], None], strict=True)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if section.name != "Settings"
        if not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
    ]

    assert undocumented == []


def test_schema_says_what_each_setting_means() -> None:
    """`vramgate schema settings` describes each section and key."""
    parts = Settings.model_json_schema(by_alias=True)["$defs"]
    sections = {name: part for name, part in parts.items() if "properties" in part}

    silent = [
        f"{name}.{key}"
        for name, section in sections.items()
        for key, field in section["properties"].items()
        if not field.get("description")
    ]

    assert silent == []
    assert all(section["description"] for section in sections.values())
    port = sections["ServerSettings"]["properties"]["port"]
    assert port["description"].startswith("Port of the reviews.")


@pytest.mark.parametrize(
    "text",
    ["a: !!int x", "a: !!bool x", "a: !!timestamp x", "!!python/name:os", "a: \x00", "a: \t- b"],
)
def test_broken_yaml_of_any_kind_is_a_problem_of_the_settings(text: str) -> None:
    """Whatever the parser stumbles over ends with a reason, never with a traceback."""
    assert problems(text)


def test_settings_are_frozen() -> None:
    """Nothing can change what a running server was told."""
    sections = [Settings(), *(value for _, value in Settings() if isinstance(value, BaseModel))]

    assert all(type(section).model_config.get("frozen") for section in sections)
