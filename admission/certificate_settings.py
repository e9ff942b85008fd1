"""The settings about the certificate that the webhook serves.

YAML -> CertificateSettings (frozen)
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from admission.section import Section

NAME = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
"""Source: kubernetes v1.36.3 apimachinery `pkg/util/validation/validation.go`."""


class CertificateMode(StrEnum):
    """Who makes the certificate."""

    BUILTIN = "builtin"
    FILES = "files"


class SecretPlace(Section):
    """The one Secret of the built-in certificates. It is asked for by the API, never mounted."""

    namespace: str = Field(default="vramgate-system", pattern=LABEL)
    """Where it is."""

    name: str = Field(default="vramgate-certificates", pattern=NAME)
    """What it is called. It is made if it is not there."""


class ServicePlace(Section):
    """The Service that the API server calls: the certificate carries its DNS names."""

    namespace: str = Field(default="vramgate-system", pattern=LABEL)
    """Where it is."""

    name: str = Field(default="vramgate", pattern=LABEL)
    """What it is called."""


class CertificateSettings(Section):
    """Where the serving certificate comes from."""

    mode: CertificateMode | None = None
    """`builtin` makes, renews and registers it; `files` reads `server.certFile` and `keyFile`.

    Absent: `files` where one of those is given, else `builtin`.
    """

    secret: SecretPlace = Field(default_factory=SecretPlace)
    """Where CA, certificate and keys are kept, for all replicas."""

    service: ServicePlace = Field(default_factory=ServicePlace)
    """What the API server calls."""

    webhooks: tuple[Annotated[str, Field(pattern=NAME)], ...] = Field(
        default=("vramgate",), min_length=1, max_length=16
    )
    """Names of our ValidatingWebhookConfigurations and MutatingWebhookConfigurations.

    Every one there is of these names gets the CA as the `caBundle` of all its webhooks, and gets
    it again when somebody takes it away. One of each name must be there.
    """

    renew_days: int = Field(default=90, ge=1, le=3650)
    """How long before its end a certificate is renewed: time for somebody to notice."""

    leaf_days: int = Field(default=365, ge=2, le=3650)
    """How long a serving certificate lasts."""

    authority_days: int = Field(default=3650, ge=4, le=36500)
    """How long a CA lasts. A new one comes while a certificate of the old can still be renewed."""

    propagation_seconds: float = Field(default=60.0, ge=0, le=3600)
    """How long a new CA is in every `caBundle` before a certificate that it signed is served."""

    @model_validator(mode="after")
    def _nested(self) -> Self:
        if self.renew_days >= self.leaf_days:
            raise ValueError("renewDays is less than leafDays, or each certificate is old at once")
        if self.leaf_days + self.renew_days >= self.authority_days:
            raise ValueError("authorityDays is more than leafDays and renewDays together")
        return self
