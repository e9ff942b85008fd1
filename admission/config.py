"""The settings file of `vramgate serve`.

    YAML -> Settings (frozen), or every problem at once

Keys are camelCase, an unknown key is an error. Flags only choose the file, the kubeconfig and
the log level; nothing is read from the environment.
"""

from __future__ import annotations

from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self

import orjson
from pydantic import Field, ValidationError, field_validator, model_validator

from admission.certificate_settings import CertificateMode, CertificateSettings
from admission.codes import Action, Mode, Steer
from admission.errors import SettingsError
from admission.node_settings import NodeSettings
from admission.section import Section
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


class LateAction(StrEnum):
    """What may happen to a job whose estimate is not ready in time: never a denial."""

    ALLOW = "allow"
    WARN = "warn"


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


class PolicySettings(Section):
    """How a verdict becomes an action."""

    mode: Mode = Mode.WARN
    """`enforce` denies a job that cannot fit, `warn` admits it with a warning, `off` is silent.

    A namespace overrides it by its label `vramgate.dev/mode`. New installs warn.
    """

    on_unknown: Action = Action.WARN
    """What happens to a job that cannot be read. Never more than a warning in mode `warn`."""

    on_late: LateAction = LateAction.WARN
    """What happens to a job whose estimate is not ready within the webhook's timeout."""

    workloads_may_loosen: bool = False
    """Whether the label `vramgate.dev/mode` counts on a workload too.

    Off by default: otherwise whoever may submit a job may also switch its check off.
    """


class SteeringSettings(Section):
    """What `/mutate` writes into the jobs it lets pass."""

    default: Steer | None = None
    """How hard pods are steered to cards that hold them: `required`, `preferred` or `off`.

    Absent: required where the mode is `enforce`, preferred where it is `warn`. The label
    `vramgate.dev/steer` of a namespace overrides it, and that of an object both.
    """

    termination_messages: bool = True
    """Whether training containers get `terminationMessagePolicy: FallbackToLogsOnError`.

    It leaves the end of a failed container's log in the pod's status: there it says out of memory.
    """


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


class HubSettings(Section):
    """The Hugging Face Hub, asked for the configuration of models that the catalog lacks."""

    enabled: bool = True
    """Whether it is asked at all. Off: such a model is unknown."""

    endpoint: str = Field(
        default="https://huggingface.co", pattern=r"^https?://[^/\s?#@]+(/[^\s?#]*)?$"
    )
    """The Hub, or a mirror. A host of your own may have a private address, and `http://`."""

    token_file: Path | None = None
    """File with a token for gated and private models. Never logged."""

    cache_directory: Path | None = None
    """A cache of huggingface_hub that is looked into first, for clusters without the internet."""


class SourceSettings(Section):
    """Where documents come from that a job refers to."""

    seconds: float = Field(default=2.0, gt=0, le=10)
    """How long all of one job's documents may take together. What is late counts as not there."""

    config_maps: bool = True
    """Whether ConfigMaps of the job's own namespace are read, by name. Secrets never are."""

    hub: HubSettings = Field(default_factory=HubSettings)
    """The Hugging Face Hub."""

    allowed_hosts: tuple[str, ...] = ()
    """Hosts that the annotation `vramgate.dev/spec-ref: https://…` may name. No other is asked."""

    proxy: str | None = Field(default=None, pattern=r"^https?://[^\s]+$")
    """Proxy for the Hub and the allowed hosts. It resolves names, and so guards addresses."""


_PATH = r"^[A-Za-z]\w*(\[\*\])?(\.[A-Za-z]\w*(\[\*\])?)*$"
"""Names joined by dots; `[*]` behind one stands for each item of a list or a mapping."""


class KindTemplate(Section):
    """Where the pods of one role of a kind are described."""

    path: str = Field(pattern=_PATH, max_length=200)
    """Field path of the pod template: `spec.template`, `spec.roles[*].template`."""

    role: str = Field(default="", max_length=63)
    """What the role is called. Absent: the name of what `[*]` stands for, or `main`."""

    replicas_path: str | None = Field(default=None, pattern=_PATH, max_length=200)
    """Field path of the number of pods: `[*]` stands for the same as in `path`. Absent: one."""


class KindSettings(Section):
    """A kind of object that runs pods and that Vramgate does not know by itself."""

    group: str = Field(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    """API group: `example.com`."""

    kind: str = Field(max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")
    """As `kind:` in its manifests."""

    templates: tuple[KindTemplate, ...] = Field(max_length=16)
    """Where its pod templates stand: at least one."""

    framework: Framework | None = None
    """What its jobs are written in, where nothing in them says otherwise."""

    observe_only: bool = False
    """Interactive or serving: counted, never warned about or denied."""

    @field_validator("templates")
    @classmethod
    def _some(cls, value: tuple[KindTemplate, ...]) -> tuple[KindTemplate, ...]:
        if not value:
            raise ValueError("at least one place of pod templates is needed")
        return value


class WorkloadSettings(Section):
    """Which objects are read."""

    kinds: tuple[KindSettings, ...] = Field(default=(), max_length=64)
    """Kinds beyond those that are built in. The webhook's rules must name them too."""


class LogSettings(Section):
    """What is logged to standard error."""

    level: LogLevel = LogLevel.INFO
    """The least severe line written. `info` has one line a decision."""

    format: LogFormat = LogFormat.JSON
    """`json` for machines, `console` for a person."""


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
    logs: LogSettings = Field(default_factory=LogSettings)

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


def package_version() -> str:
    """Return the installed version, or `unknown` in a tree that is not installed."""
    try:
        return version("vramgate")
    except PackageNotFoundError:
        return "unknown"


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
