"""The settings about documents that jobs refer to.

YAML -> SourceSettings (frozen)
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from admission.section import Section


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
