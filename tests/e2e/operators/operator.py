"""What is known of a controller of another project: its files, its flags, where it listens.

    Go module -> kinds, webhooks as its kustomization leaves them

Kinds and webhooks are read from the project's own module, nothing of them is copied here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests import gobuild

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where one controller listens and keeps its files."""

    directory: Path
    probes: int
    webhooks: int

    @property
    def serving(self) -> Path:
        """Return the folder of `tls.crt` and `tls.key`: controller-runtime's own below TMPDIR."""
        return self.directory / "k8s-webhook-server" / "serving-certs"

    def configured(self, document: Mapping[str, Any]) -> str:
        """Return the flag for a configuration file with *document*."""
        path = self.directory / "configuration.yaml"
        path.write_text(yaml.safe_dump(dict(document)))
        return f"--config={path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A controller of another project."""

    name: str
    """What its program is called."""
    module: gobuild.Module
    """What pins it."""
    path: str
    """The path of its Go module."""
    kinds: str
    """The folder of its kinds, below its module."""
    registrations: str = ""
    """The file of its webhooks, below its module."""
    selectors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What its kustomization adds to webhooks, by their names."""
    flags: Callable[[Place], Sequence[str]]

    def definitions(self, *kinds: str) -> Iterator[Document]:
        """Yield the definitions of *kinds*, or of all it has, with their whole schemas.

        Raises:
            BuildError: if its module cannot be had.
        """
        endings = [f"{kind.lower()}s.yaml" for kind in kinds] or [".yaml"]
        for path in sorted(
            path for ending in endings for path in self._folder.glob(f"{self.kinds}/*{ending}")
        ):
            # Some are 1 MB: the parser in C takes a tenth of the time.
            document = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
            if document["kind"] == "CustomResourceDefinition":
                yield document

    def webhooks(self) -> Iterator[Document]:
        """Yield its registrations, named after it, still calling the Service of an install.

        Raises:
            BuildError: if its module cannot be had.
        """
        if not self.registrations:
            return
        for document in yaml.safe_load_all((self._folder / self.registrations).read_bytes()):
            document["metadata"] = {"name": f"{self.name}-{document['metadata']['name']}"}
            for webhook in document["webhooks"]:
                webhook |= self.selectors.get(webhook["name"], {})
            yield document

    @property
    def _folder(self) -> Path:
        return gobuild.pinned(self.path, self.module)
