"""What the Hugging Face Hub says of a model: its configuration, never its weights.

    hf://ORG/MODEL@REVISION -> `config.json` or `adapter_config.json`, a summary of weight headers

The only importer of huggingface_hub, and only at the first question: it costs 26 MiB.
The Hub's files come from other hosts, so redirects may lead to any public address.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx2
import orjson

from admission.sources.guard import Hosts, guarded_client
from admission.sources.network import Limits, limited
from admission.sources.references import Reference
from admission.sources.urls import reason_of
from admission.values import Document

if TYPE_CHECKING:
    from types import ModuleType

CONFIG = "config.json"
ADAPTER = "adapter_config.json"
SAFETENSORS = "safetensors"
"""Key of the summary `{"parameters": {"BF16": 1234}}`."""
_DTYPE_KEYS = ("torch_dtype", "dtype")
_PROBLEMS = {
    401: "is not there, or needs a token that the settings do not have",
    403: "may not be read with the token of the settings",
    404: "is not there",
    429: "is asked for too often: the Hub limits us",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAccess:
    """How the Hub is reached."""

    endpoint: str
    hosts: Hosts
    limits: Limits
    token: str | None = field(default=None, repr=False)
    cache_directory: Path | None = None
    """A cache of huggingface_hub that is looked into first: clusters without the internet."""
    proxy: str | None = None


class Hub:
    """Asks the Hub, with a client of our own: huggingface_hub only says where files are.

    Its downloads write to the disk, open connections elsewhere and start threads without limits.
    """

    def __init__(self, access: HubAccess) -> None:
        self._access = access
        self._client = guarded_client(access.hosts, proxy=access.proxy)
        self._lock = threading.Lock()
        self._library: ModuleType | None = None

    def fetch(self, reference: Reference, *, namespace: str) -> Document:  # noqa: ARG002 (any)
        """Return what there is of the model."""
        files: dict[str, str] = {}
        try:
            with limited(self._access.limits):
                problem = self._take(reference, CONFIG, files)
                if problem == _PROBLEMS[404]:
                    problem = self._take(reference, ADAPTER, files)
                if CONFIG in files and not _has_dtype(files[CONFIG]):
                    self._summarise(reference, files)
        except httpx2.HTTPError as error:
            problem = reason_of(error)
        # What came before a failure counts: without the summary a model is known all the same.
        return Document(files=files, problem="" if files else problem)

    def _take(self, reference: Reference, name: str, files: dict[str, str]) -> str:
        """Put the file *name* into *files*, or return why not."""
        cached = self._cached(reference, name)
        if cached is not None:
            files[name] = cached
            return ""
        url = self._loaded().hf_hub_url(
            reference.name,
            name,
            revision=reference.revision,
            endpoint=self._access.endpoint,
        )
        response = self._client.get(url, headers=self._headers())
        if response.status_code != 200:
            status = response.status_code
            return _PROBLEMS.get(status, f"cannot be read: the Hub answers with status {status}")
        try:
            files[name] = response.content.decode("utf-8")
        except UnicodeDecodeError:
            return f"has a {name} that is no text in UTF-8"
        return ""

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = self._loaded().utils.build_hf_headers(
            token=self._access.token or False, library_name="vramgate"
        )
        return headers

    def _cached(self, reference: Reference, name: str) -> str | None:
        if self._access.cache_directory is None:
            return None
        path = self._loaded().try_to_load_from_cache(
            reference.name,
            name,
            cache_dir=self._access.cache_directory,
            revision=reference.revision,
        )
        if not isinstance(path, str):
            return None
        try:
            if Path(path).stat().st_size > self._access.limits.max_bytes:
                return None
            return Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def _summarise(self, reference: Reference, files: dict[str, str]) -> None:
        """Put the number of stored values by type into *files*, if the Hub tells.

        It has read the headers of all shards itself: one small answer instead of one a shard.
        Source: huggingface_hub `hf_api.py`, `ExpandModelProperty_T` and `SafeTensorsInfo`.
        """
        revision = quote(reference.revision, safe="")
        url = f"{self._access.endpoint}/api/models/{reference.name}/revision/{revision}"
        response = self._client.get(
            url, params={"expand": ["safetensors"]}, headers=self._headers()
        )
        counts = _counts(response.content) if response.status_code == 200 else {}
        if counts:
            files[SAFETENSORS] = orjson.dumps({"parameters": counts}).decode()

    def _loaded(self) -> ModuleType:
        with self._lock:
            if self._library is None:
                import huggingface_hub
                import huggingface_hub.utils

                self._library = huggingface_hub
            return self._library


def _counts(body: bytes) -> dict[str, int]:
    """Return the number of values by type in an answer of the Hub; nothing if it has none."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    summary = document.get("safetensors") if isinstance(document, dict) else None
    found = summary.get("parameters") if isinstance(summary, dict) else None
    if not isinstance(found, dict):
        return {}
    return {str(key): value for key, value in found.items() if type(value) is int}


def _has_dtype(text: str) -> bool:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return True
    return isinstance(document, dict) and any(document.get(key) for key in _DTYPE_KEYS)
