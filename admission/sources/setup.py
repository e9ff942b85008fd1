"""The sources that the settings name.

settings, API client -> Fetcher
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from admission.errors import SettingsError
from admission.source_settings import HubSettings, SourceSettings
from admission.sources.fetching import Fetcher, Source
from admission.sources.guard import Hosts
from admission.sources.hub import Hub, HubAccess
from admission.sources.network import Limits
from admission.sources.references import CLUSTER, Origin
from admission.sources.urls import AllowedUrls
from estimator.errors import Problem

if TYPE_CHECKING:
    from kubernetes.client.api_client import ApiClient

MAX_BYTES = 1 << 20
"""Of a configuration or a spec: the largest on the Hub is 100 KiB."""
PUBLIC_HUB = "https://huggingface.co"


def fetcher_of(settings: SourceSettings, *, client: ApiClient | None) -> Fetcher:
    """Return what asks the sources of *settings*; without *client* there are no ConfigMaps.

    Raises:
        SettingsError: if the token's file cannot be read.
    """
    limits = Limits(max_bytes=MAX_BYTES, seconds=settings.seconds)
    sources: dict[Origin, Source] = {}
    if client is not None and settings.config_maps:
        # Imported here: only `serve` has a cluster, and the client's library is slow to import.
        from admission.sources.cluster_objects import ClusterObjects

        objects = ClusterObjects(client)
        sources |= dict.fromkeys(CLUSTER, objects)
    if settings.hub.enabled:
        sources[Origin.HUB] = Hub(_access(settings.hub, limits, settings.proxy))
    if settings.allowed_hosts:
        hosts = Hosts(named=frozenset(settings.allowed_hosts))
        sources[Origin.URL] = AllowedUrls(hosts, limits, proxy=settings.proxy)
    return Fetcher(sources, seconds=settings.seconds)


def _access(settings: HubSettings, limits: Limits, proxy: str | None) -> HubAccess:
    parts = urlsplit(settings.endpoint)
    host = frozenset({parts.hostname or ""})
    is_public = settings.endpoint.rstrip("/") == PUBLIC_HUB
    return HubAccess(
        endpoint=settings.endpoint.rstrip("/"),
        hosts=Hosts(
            named=frozenset() if is_public else host,
            others_allowed=True,
            plain=host if parts.scheme == "http" else frozenset(),
        ),
        limits=limits,
        token=_token(settings.token_file),
        cache_directory=settings.cache_directory,
        proxy=proxy,
    )


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        message = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise _token_problem(f"{path}: {message.lower()}") from error
    if not re.fullmatch(r"[!-~]*", token):
        raise _token_problem(f"{path}: holds more than one word of ASCII")
    return token or None


def _token_problem(message: str) -> SettingsError:
    return SettingsError([Problem(path="sources.hub.tokenFile", message=message)])
