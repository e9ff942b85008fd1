"""What a traced script may not do, also where Python is not asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from estimator.processes import landlock

_SANDBOXED = """
    import ctypes, json, os, sys
    from pathlib import Path
    from estimator.workers.user_sandbox import Leave, confine_script
    from tests.estimator.processes.kernels import pretend_without_landlock

    place, leave, lacking = Path(sys.argv[1]), sys.argv[2].split(), sys.argv[3]
    if lacking:
        pretend_without_landlock()
    (place / "own").mkdir()
    library = ctypes.CDLL(None, use_errno=True)
    words = confine_script(
        frozenset(map(Leave, leave)), folder=place / "own", memory_bytes=1 << 30
    )
    theirs, own = (str(place / name).encode() for name in ("mine.bin", "own/log"))
    made = os.O_CREAT | os.O_WRONLY
    print(json.dumps({
        "words": words,
        "made": library.open(bytes(place) + b"/new", made, 0o600) >= 0,
        "emptied": library.truncate(theirs, 0) == 0,
        "removed": library.unlink(theirs) == 0,
        "program": library.system(b"exit 0") == 0,
        "own": library.open(own, made, 0o600) >= 0,
        "null": library.open(b"/dev/null", os.O_RDWR) >= 0,
        "read": library.open(b"/etc/passwd", os.O_RDONLY) >= 0,
    }))
"""


def sandboxed(place: Path, *leave: str, lacking: str = "") -> dict[str, object]:
    """Return what C code of a script could do with the *leave* it has."""
    (place / "mine.bin").write_bytes(b"mine")
    argv = [sys.executable, "-c", dedent(_SANDBOXED), str(place), " ".join(leave), lacking]
    said = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout
    seen: dict[str, object] = json.loads(said)
    return seen


def test_c_code_changes_no_file_and_starts_no_program(tmp_path: Path) -> None:
    """It has its own folder and the devices, and reads what the person may read."""
    if not landlock.abi():
        pytest.skip("this kernel has no Landlock")
    seen = sandboxed(tmp_path)

    assert seen == {
        "words": [],
        "made": False,
        "emptied": False,
        "removed": False,
        "program": False,
        "own": True,
        "null": True,
        "read": True,
    }
    assert (tmp_path / "mine.bin").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("leave", "allowed"),
    [
        (("write",), {"made", "emptied", "removed"}),
        (("programs",), {"program"}),
        (("write", "programs"), {"made", "emptied", "removed", "program"}),
    ],
)
def test_what_is_let_is_let_to_c_code_too(
    tmp_path: Path, leave: tuple[str, ...], allowed: set[str]
) -> None:
    """And nothing else."""
    if not landlock.abi():
        pytest.skip("this kernel has no Landlock")
    seen = sandboxed(tmp_path, *leave)

    did = {name for name in ("made", "emptied", "removed", "program") if seen[name]}
    assert did == allowed


def test_a_kernel_without_landlock_is_told(tmp_path: Path) -> None:
    """In words that say what is then not prevented."""
    seen = sandboxed(tmp_path, lacking="landlock")

    assert isinstance(seen["words"], list)
    (words,) = seen["words"]
    assert words.startswith("this kernel has no Landlock (Linux 5.13 and newer have it)")
    assert seen["made"]
