"""Where in the person's own files something happens.

    stack or traceback -> file:line

A frame is theirs if its file lies in the script's folder, or in the current one, and in no
`site-packages` below.
"""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

_INSTALLED = ("site-packages", "dist-packages")
_OURS = str(Path(__file__).resolve().parents[3]) + "/"
"""This package: a person may work in a checkout of it."""
_LIBRARIES = (_OURS, *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib")))


@dataclass(frozen=True, slots=True)
class Source:
    """The folders whose files are the person's own."""

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, script: Path) -> Source:
        """Return the folder of *script* and the current one."""
        return cls(tuple(dict.fromkeys((script.resolve().parent, Path.cwd().resolve()))))

    def here(self) -> str | None:
        """Return `file:line` of the innermost frame of theirs that runs now, if there is one."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            place = self._place(frame.f_code.co_filename, frame.f_lineno)
            if place is not None:
                return place
            frame = frame.f_back
        return None

    def of_traceback(self, traceback: TracebackType | None) -> str | None:
        """Return `file:line` of the innermost frame of theirs in *traceback*, if there is one."""
        found = None
        while traceback is not None:
            code = traceback.tb_frame.f_code
            found = self._place(code.co_filename, traceback.tb_lineno) or found
            traceback = traceback.tb_next
        return found

    def _place(self, filename: str, line: int) -> str | None:
        path = Path(filename)
        if not path.is_absolute() or _is_installed(filename):
            return None
        for folder in self.folders:
            if path.is_relative_to(folder):
                return f"{path.relative_to(folder)}:{line}"
        return None


def _is_installed(filename: str) -> bool:
    return filename.startswith(("<", *_LIBRARIES)) or any(part in filename for part in _INSTALLED)
