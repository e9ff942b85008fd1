"""Where cuDNN libraries are.

    import path, environment -> folders

Nothing is imported or loaded. A wheel's libraries find cublasLt and nvrtc beside them
(`$ORIGIN/../../cu13/lib` in their run path); those of other folders in LD_LIBRARY_PATH.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

WHEEL = Path("nvidia", "cudnn", "lib")
"""Where `nvidia-cudnn-cu12` and `nvidia-cudnn-cu13` put their libraries."""
VARIABLE = "VRAMGATE_CUDNN_PATH"
"""More folders, separated by colons: libraries for cards the wheel's does not know."""
FILE = "libcudnn.so.9"


def library_folders(import_path: Iterable[str], environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders with a cuDNN 9, that of the wheel first, each once."""
    wheels = [Path(entry) / WHEEL for entry in import_path if entry]
    named = [Path(entry) for entry in environment.get(VARIABLE, "").split(os.pathsep) if entry]
    found = [folder.resolve() for folder in (*wheels, *named) if (folder / FILE).is_file()]
    return tuple(dict.fromkeys(found))
