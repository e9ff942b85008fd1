"""Keep what jobs taught in one ConfigMap, where `serve` reads it.

    Death, Measured -> the ConfigMap as it is, with it -> written, if nobody wrote meanwhile

A key each; the other keys are left as they are, and so is what a later release of ours wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from admission.learning import residuals_text
from admission.learning.deaths import CONFIG_MAP, KEY, Death, read_deaths, text_of, with_death
from admission.learning.measured import Measured, with_measured
from admission.learning.version import is_later
from admission.objects import WritableObjects
from admission.workloads.fields import part, words_of

_log = structlog.get_logger()


class Learning:
    """Writes; in any thread."""

    def __init__(
        self,
        objects: WritableObjects,
        *,
        namespace: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._objects = objects
        self._collection = f"/api/v1/namespaces/{namespace}/configmaps"
        self._now = now
        self._left: set[str] = set()
        """The keys of a later release, told once."""

    def learn(self, death: Death) -> None:
        """Keep *death*; nothing is written where it is kept already.

        Raises:
            ClusterError: if somebody wrote meanwhile (409), it is refused, or nobody answers.
        """
        self._change(
            KEY, lambda text: text_of(with_death(read_deaths(text), death, now=self._now()))
        )

    def remember(self, measured: Measured) -> None:
        """Keep *measured*; nothing is written where it is kept already.

        Raises:
            ClusterError: as `learn` does.
        """
        self._change(residuals_text.KEY, lambda text: with_measured(text, measured))

    def _change(self, key: str, change: Callable[[str], str]) -> None:
        path = f"{self._collection}/{CONFIG_MAP}"
        document = self._objects.read(path).document
        text = words_of(part(document).get("data")).get(key, "")
        if is_later(text):
            if key not in self._left:
                _log.warning("learned by a later version", name=CONFIG_MAP, key=key)
            self._left.add(key)
            return
        self._left.discard(key)
        after = change(text)
        if after == text:
            return
        if document is None:
            metadata = {"name": CONFIG_MAP, "labels": {"app.kubernetes.io/name": "vramgate"}}
            self._objects.create(
                self._collection,
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": metadata,
                    "data": {key: after},
                },
            )
            return
        version = document["metadata"]["resourceVersion"]
        self._objects.merge(path, {"metadata": {"resourceVersion": version}, "data": {key: after}})
