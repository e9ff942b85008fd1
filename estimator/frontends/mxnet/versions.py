"""What releases of MXNet do otherwise.

    frameworkVersion -> Release

Source: apache/mxnet tags 0.11.0 to 1.9.1: `src/executor/eliminate_common_expr_pass.cc` and
`pointwise_fusion_pass.cc` come with 1.6.0; `config/distribution/linux_cu101.cmake` of 1.7.0 builds
CUDA wheels with oneDNN (`USE_MKLDNN ON`), `make/pip/pip_linux_cu101.mk` of 1.5.0 does not.
Not modelled: the planner before 1.5, which did not place the largest output first; the wheels
named `mxnet-cu…mkl` before 1.7, which have oneDNN too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NEWEST = "1.9.1"
"""The release whose rules are read and checked."""
_NUMBERS = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})")
Version = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release of the CUDA wheels."""

    text: str
    version: Version

    @property
    def has_onednn(self) -> bool:
        """Return whether poolings keep indices and concatenations their inputs."""
        return self.version >= (1, 7)

    @property
    def merges_common(self) -> bool:
        """Return whether equal calls on equal inputs become one."""
        return self.version >= (1, 6)

    @property
    def fuses_pointwise(self) -> bool:
        """Return whether chains of element-wise operators become one kernel on a GPU."""
        return self.version >= (1, 6)


def release_of(text: str | None) -> Release | None:
    """Return the release a spec names, None if it names none or one of 2.0 and later."""
    found = _NUMBERS.match(text or "")
    if text is None or found is None:
        return None
    version = (int(found[1]), int(found[2]))
    return Release(text=text, version=version) if version < (2, 0) else None


LATEST = Release(text=NEWEST, version=(1, 9))
