"""Which environment variables a template is started with.

    environment of this process -> environment of the template

Credentials never get there: everything not listed is left out.
"""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Mapping
from pathlib import Path

_KEPT = frozenset({"PATH", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "TMPDIR", "TZ"})
_KEPT_PREFIXES = ("LC_", "PYTHON", "VRAMGATE_")
_LEFT_OUT = re.compile(r"_(PORT|SERVICE)(_|$)|TOKEN|SECRET|PASSWORD|CREDENTIAL|_KEY", re.IGNORECASE)
"""Of those with a prefix: what Kubernetes says of a Service called vramgate, and secrets."""

_SET = {
    # A template has to be single-threaded when it forks; OpenBLAS starts threads at import.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # A card in this machine must not change the answer.
    "CUDA_VISIBLE_DEVICES": "",
    # There is no network in a fork: fail at once instead of trying again.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # The same spec gives the same trace.
    "PYTHONHASHSEED": "0",
}


def template_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a template may see of *environment*, with what it needs added."""
    kept = {
        name: value
        for name, value in environment.items()
        if name in _KEPT or (name.startswith(_KEPT_PREFIXES) and not _LEFT_OUT.search(name))
    }
    root = Path(__file__).parents[2]
    if root != Path(sysconfig.get_paths()["purelib"]):  # a checkout, not an installed wheel
        known = kept.get("PYTHONPATH")
        kept["PYTHONPATH"] = f"{known}{os.pathsep}{root}" if known else str(root)
    return kept | _SET
