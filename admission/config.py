"""The settings file of `vramgate serve`, `vramgate controller` and `vramgate agent`.

    YAML -> Settings (frozen), or every problem at once

Keys are camelCase, an unknown key is an error. Flags only choose the file, the kubeconfig and
the log level; nothing is read from the environment.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Self

import orjson
from pydantic import Field, ValidationError, model_validator

from admission.agent_settings import AgentSettings
from admission.certificate_settings import CertificateMode, CertificateSettings
from admission.controller_settings import ControllerSettings
from admission.errors import SettingsError
from admission.node_settings import NodeSettings
from admission.policy_settings import PolicySettings, SteeringSettings
from admission.section import Section
from admission.source_settings import SourceSettings
from admission.workload_settings import WorkloadSettings
from estimator.documents import read_documents
from estimator.errors import Problem, SpecError
from estimator.spec import Framework
from estimator.spec.problems import problems_of
from estimator.units import GIB


class LogFormat(StrEnum):
    """How a log line is written."""

    JSON = "json"
    CONSOLE = "console"


class LogLevel(StrEnum):
    """The least severe line that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ServerSettings(Section):
    """Where the webhook listens, and with which certificate."""

    host: str = "0.0.0.0"  # noqa: S104 (a Service reaches a pod on its own address)
    """Address to listen on. The default is every IPv4 address of the pod."""

    port: int = Field(default=8443, ge=0, le=65535)
    """Port of the reviews. 0 takes a free one and logs it."""

    cert_file: Path = Path("/etc/vramgate/tls/tls.crt")
    """PEM file with the serving certificate and its chain. Read again when it changes.

    Given, the certificate is somebody else's, cert-manager's say: see `certificates.mode`.
    """

    key_file: Path = Path("/etc/vramgate/tls/tls.key")
    """PEM file with the private key of that certificate."""

    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    """Port for `/metrics`, `/healthz` and `/readyz` without TLS as well. Absent: only on `port`."""

    drain_seconds: float = Field(default=4.0, ge=0, le=60)
    """How long open connections are still served after SIGTERM. The default lost no review."""


class WorkerIsolation(StrEnum):
    """What becomes of estimates where the kernel lacks what isolates their processes."""

    REQUIRED = "required"
    PREFERRED = "preferred"


class WorkerSettings(Section):
    """The child processes that estimate."""

    preload: tuple[Framework, ...] = (Framework.PYTORCH,)
    """Frameworks whose template process starts with the server instead of on first use."""

    max_concurrent: int = Field(default=2, ge=1, le=64)
    """How many estimates run at once. The default is one a core of a small pod."""

    timeout_seconds: float = Field(default=60.0, gt=0, le=600)
    """An estimate is ended after this long. Longer than a review: late answers fill the cache."""

    memory_bytes: int = Field(default=3 * GIB, ge=GIB // 4, le=1024 * GIB)
    """Private memory one estimate may take beyond its template. Most take under 200 MiB."""

    isolation: WorkerIsolation = WorkerIsolation.PREFERRED
    """`required`: nothing is estimated where the kernel lacks seccomp or Landlock (Linux 5.13).

    `preferred` goes on without, with a line in the log and `vramgate_estimator_isolation` 0.
    """


class CacheSettings(Section):
    """What is remembered between reviews."""

    entries: int = Field(default=2000, ge=1, le=1_000_000)
    """How many estimates are kept, one a spec and card. One takes about 6 KiB."""

    failure_seconds: float = Field(default=600.0, ge=0)
    """How long a failure of ours is remembered before the same job is tried again."""

    timeout_failure_seconds: float = Field(default=120.0, ge=0)
    """The same for an estimate that ran out of time: a quieter machine may finish it.

    Doubled each time the same job runs out of time again, up to `failureSeconds`.
    """


class LogSettings(Section):
    """What is logged to standard error."""

    level: LogLevel = LogLevel.INFO
    """The least severe line written. `info` has one line a decision."""

    format: LogFormat = LogFormat.JSON
    """`json` for machines, `console` for a person."""


class MetricSettings(Section):
    """What `/metrics` shows beside what it always shows."""

    workloads: int = Field(default=0, ge=0, le=200)
    """Of how many jobs, those admitted last, the estimates are shown by namespace and name.

    Off by default: the names are then read by whoever reads the metrics. About 0.7 KiB each.
    """


class Settings(Section):
    """The whole settings file. Every section and key may be left out."""

    server: ServerSettings = Field(default_factory=ServerSettings)
    certificates: CertificateSettings = Field(default_factory=CertificateSettings)
    policy: PolicySettings = Field(default_factory=PolicySettings)
    steering: SteeringSettings = Field(default_factory=SteeringSettings)
    workers: WorkerSettings = Field(default_factory=WorkerSettings)
    cache: CacheSettings = Field(default_factory=CacheSettings)
    nodes: NodeSettings = Field(default_factory=NodeSettings)
    sources: SourceSettings = Field(default_factory=SourceSettings)
    workloads: WorkloadSettings = Field(default_factory=WorkloadSettings)
    metrics: MetricSettings = Field(default_factory=MetricSettings)
    logs: LogSettings = Field(default_factory=LogSettings)
    controller: ControllerSettings = Field(default_factory=ControllerSettings)
    agent: AgentSettings = Field(default_factory=AgentSettings)

    @property
    def certificate_mode(self) -> CertificateMode:
        """Return who makes the certificate: files that are named are meant to be read."""
        names_files = bool({"cert_file", "key_file"} & self.server.model_fields_set)
        unsaid = CertificateMode.FILES if names_files else CertificateMode.BUILTIN
        return self.certificates.mode or unsaid

    @model_validator(mode="after")
    def _one_certificate(self) -> Self:
        names_files = {"cert_file", "key_file"} & self.server.model_fields_set
        if names_files and self.certificates.mode is CertificateMode.BUILTIN:
            raise ValueError("certificates.mode builtin does not go with server.certFile, keyFile")
        return self


def load_settings(path: Path | None) -> Settings:
    """Return the settings of the file at *path*, or every default without a file.

    Raises:
        SettingsError: with every problem of the file.
    """
    if path is None:
        return Settings()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise SettingsError([Problem(path=str(path), message=str(reason).lower())]) from error
    return parse_settings(text)


def parse_settings(text: str) -> Settings:
    """Return the settings of one YAML document.

    Raises:
        SettingsError: with every problem, each with its path, the value seen, what is accepted.
    """
    try:
        documents = [document for document in read_documents(text) if document is not None]
    except SpecError as error:
        raise SettingsError(error.problems) from error
    if not documents:
        return Settings()
    if len(documents) > 1:
        raise SettingsError([Problem(path="", message=f"{len(documents)} documents, not one")])
    (document,) = documents
    if not isinstance(document, dict):
        raise SettingsError([Problem(path="", message="settings are a mapping of keys to values")])
    try:
        # By way of JSON: strict about types (no "8443" for a port), yet a list is a tuple.
        return Settings.model_validate_json(
            orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS),
            strict=True,
            by_alias=True,
            by_name=False,
        )
    except ValidationError as error:
        raise SettingsError(problems_of(error)) from error
    except TypeError as error:
        message = "holds a value that is neither text, number, list nor mapping"
        raise SettingsError([Problem(path="", message=message)]) from error
