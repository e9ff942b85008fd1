"""Files that a container sees and we can see too.

    pod, container, what its script writes -> path -> File

ConfigMaps by their mounts and what the command line itself writes. What is in the image, on other
volumes or in a Secret is not seen, and says so. Nothing is read from the disk.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from admission.detect.budget import MAX_DOCUMENTS
from admission.detect.lookup import Lookup
from admission.detect.mounts import Mount, mounts_of
from admission.detect.words import written
from admission.values import Program

MAX_WRITTEN = 256 << 10
"""Characters of a file that is added to."""
_IMAGE = "is inside the image"
_UNKNOWN = "is written by the script, not all of it resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file, or why it is not seen."""

    path: str
    text: str | None = None
    source: str = ""
    """`configmap NAME/KEY`, `written by the script`."""
    problem: str = ""
    """Completes `FILE …`: `is inside the image`."""
    is_awaited: bool = False
    """It is in a document that nobody has fetched yet."""
    unresolved: tuple[str, ...] = ()
    """References in the text that nothing resolved when it was written."""
    is_sure: bool = True
    """False: it is written under a condition only."""


class Files:
    """The files of one container. Grows while its script is read."""

    def __init__(
        self,
        program: Program | None = None,
        lookup: Lookup | None = None,
        *,
        characters: int = MAX_DOCUMENTS,
    ) -> None:
        self._lookup = lookup or Lookup()
        mounts = mounts_of(program) if program is not None else ()
        self._mounts = tuple(sorted(mounts, key=lambda item: len(item.path), reverse=True))
        self._left = characters
        self._seen: set[tuple[str, str]] = set()
        """ConfigMap and key of the files whose text was given out."""
        self._written: dict[str, File] = {}
        self._unsure: dict[str, None] = {}

    @property
    def lookup(self) -> Lookup:
        """Return the documents outside the container."""
        return self._lookup

    def write(
        self,
        path: str,
        content: str | None,
        *,
        directory: str,
        unresolved: tuple[str, ...] = (),
        is_sure: bool = True,
    ) -> None:
        """Note that the script writes *path*; None where what it writes is not known.

        A file that is written twice, and not the same, is not known: which of the two a program
        finds depends on when it looks.
        """
        where = _absolute(path, directory)
        before = self._written.get(where)
        problem = "" if content is not None else _UNKNOWN
        if before is not None and before.text != content:
            content, problem = None, "is written by the script more than once"
        self._put(where, path, content, problem, unresolved, is_sure=is_sure)

    def append(
        self,
        path: str,
        content: str | None,
        *,
        directory: str,
        unresolved: tuple[str, ...] = (),
        is_sure: bool = True,
    ) -> None:
        """Note that the script adds *content* to *path*, which it has written before."""
        where = _absolute(path, directory)
        before = self._written.get(where)
        text = None
        if before is not None and before.text is not None and content is not None:
            text = before.text + content if len(before.text) < MAX_WRITTEN else None
            unresolved = (*before.unresolved, *unresolved)
            is_sure = is_sure and before.is_sure
        self._put(where, path, text, _UNKNOWN if text is None else "", unresolved, is_sure=is_sure)

    def _put(
        self,
        where: str,
        path: str,
        content: str | None,
        problem: str,
        unresolved: tuple[str, ...],
        *,
        is_sure: bool,
    ) -> None:
        self._written[where] = File(
            path=path,
            text=content,
            source="written by the script",
            problem=problem,
            unresolved=unresolved,
            is_sure=is_sure,
        )

    @property
    def unsure(self) -> tuple[str, ...]:
        """Return the files that were read and are written under a condition only."""
        return tuple(self._unsure)

    def is_written(self, name: str) -> bool:
        """Return whether the script writes a file whose path ends with *name*."""
        return any(posixpath.basename(path) == name for path in self._written)

    def read(self, path: str, *, directory: str) -> File:
        """Return the file at *path*, as a program in *directory* would find it.

        Where the directory is the image's own, a relative path is looked for at the end of others.
        """
        found = self.look(path, directory=directory)
        if not found.is_sure and found.text is not None:
            self._unsure[path] = None
        return found

    def ending_with(self, end: str) -> File | None:
        """Return the one written file whose path ends with *end*."""
        names = [path for path in self._written if f"/{path}".endswith(f"/{end}")]
        return self.read(names[0], directory="") if len(names) == 1 else None

    def look(self, path: str, *, directory: str) -> File:
        """Return the file at *path*, for somebody who does not take one that is not certain."""
        where = _absolute(path, directory)
        known = self._written.get(where)
        if known is not None:
            return known
        found = self._in_mounts(path, where)
        if found is not None:
            return found
        if not where.startswith("/"):
            return self._ending_with(path, where)
        return File(path=path, problem=_IMAGE)

    def _in_mounts(self, path: str, where: str) -> File | None:
        """Return the file in the innermost mount; one of several sources there may have it."""
        inside = [
            mount
            for mount in self._mounts
            if where == mount.path or where.startswith(mount.path.rstrip("/") + "/")
        ]
        first: File | None = None
        for mount in inside:
            if mount.path != inside[0].path:
                break
            file = self._mounted(path, where, mount)
            if file.text is not None or file.is_awaited:
                return file
            first = first or file
        return first

    def _mounted(self, path: str, where: str, mount: Mount) -> File:
        if mount.problem:
            return File(path=path, problem=mount.problem)
        below = where[len(mount.path) :].lstrip("/")
        if mount.is_file or mount.items is not None:
            below = "" if mount.is_file else below
            key = (mount.items or {}).get(below)
        else:
            key = below or None
        if key is None:
            return File(
                path=path, problem=f"is no file of the ConfigMap {mount.config_map} mounted there"
            )
        document = self._lookup.find(f"configmap/{mount.config_map}")
        if document is None:
            problem = f"is in the ConfigMap {mount.config_map}, which was not read"
            return File(path=path, problem=problem, is_awaited=True)
        if document.problem:
            problem = f"is in the ConfigMap {mount.config_map}, which {document.problem}"
            return File(path=path, problem=problem)
        if key not in document.files:
            return File(path=path, problem=f"is no key of the ConfigMap {mount.config_map}")
        if not self._may_give(mount.config_map, key, len(document.files[key])):
            return File(path=path, problem="is more text than is read of one job's files")
        source = f"configmap {mount.config_map}/{key}"
        return File(path=path, text=written(document.files[key]), source=source)

    def _may_give(self, config_map: str, key: str, length: int) -> bool:
        if (config_map, key) not in self._seen:
            if length > self._left:
                return False
            self._left -= length
            self._seen.add((config_map, key))
        return True

    def _ending_with(self, path: str, where: str) -> File:
        """Return the one file whose path ends with *where*: the working directory is not told."""
        written = [file for full, file in self._written.items() if full.endswith(f"/{where}")]
        if len(written) == 1:
            return written[0]
        folders = [
            mount
            for mount in self._mounts
            if mount.config_map and f"{mount.path}/".endswith(f"/{posixpath.dirname(where)}/")
        ]
        if len(folders) == 1 and posixpath.dirname(where):
            full = posixpath.join(folders[0].path, posixpath.basename(where))
            return self._mounted(path, full, folders[0])
        return File(path=path, problem=_IMAGE)


def _absolute(path: str, directory: str) -> str:
    joined = posixpath.normpath(posixpath.join(directory or "", path))
    return joined.removeprefix("./")
