"""What goes into an image: pins with hashes, a bill of materials, a Dockerfile without a shell."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.audit import KNOWN, UNKNOWN, audit_of
from tools.bill_of_materials import IMAGES, write

ROOT = Path(__file__).resolve().parents[1]
LOCKED = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(
    r"^([A-Za-z0-9._-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)", re.MULTILINE
)


def pins(path: Path) -> dict[str, tuple[str, int]]:
    """Return name -> version and number of hashes."""
    found = PIN.findall(path.read_text())
    return {name.lower(): (version, hashes.count("--hash=")) for name, version, hashes in found}


@pytest.mark.parametrize("path", LOCKED, ids=lambda path: path.name)
def test_every_requirement_is_pinned_with_its_hashes(path: Path) -> None:
    """No line asks for a range, an index or an address."""
    lines = [line for line in path.read_text().splitlines() if line and line[0] not in " #"]

    assert len(lines) == len(pins(path))
    assert all("==" in line and line.endswith("\\") for line in lines)


def test_the_bill_of_materials_lists_every_pin_with_its_hashes(tmp_path: Path) -> None:
    """By name, version and SHA-256, the same each time."""
    path = ROOT / "requirements" / "base.txt"

    document = json.loads(write(path, tmp_path).read_text())

    listed = {
        each["name"].lower(): (each["version"], len(each["externalReferences"][0]["hashes"]))
        for each in document["components"]
    }
    assert listed == pins(path)
    assert "timestamp" not in document["metadata"]
    assert all((ROOT / "requirements" / f"{name}.txt") in LOCKED for name in IMAGES)


def test_a_package_without_an_answer_is_not_audited() -> None:
    """Without a way to the advisories the audit says so, and its status is not 0."""
    one = {"name": "a", "version": "1", "vulns": []}
    skipped = {"name": "b", "skip_reason": "Dependency not found on PyPI"}
    broken = {
        "name": "c",
        "version": "2",
        "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}],
    }

    clean, partly, known = (
        audit_of({"dependencies": each}) for each in ([one], [one, skipped], [skipped, broken])
    )

    assert (clean.status, partly.status, known.status) == (0, UNKNOWN, KNOWN)
    assert list(partly.lines("x")) == [
        "audit: x: 1 of 2 pins answered for, 0 known vulnerabilities",
        "  not audited: b",
    ]
    assert "  c 2: PYSEC-1, fixed in 3" in list(known.lines("x"))
    assert audit_of({"dependencies": []}).status == UNKNOWN


def test_the_image_has_no_shell_and_no_root() -> None:
    """The last stage begins empty, runs nothing, and is started without a shell by a plain user."""
    *_, runtime, last = stages()

    assert [each[0] for each in last] == [
        *("FROM", "LABEL", "COPY", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD")
    ]
    assert last[0][1] == "scratch"
    assert last[2][1] == "--from=runtime / /"
    user, _ = next(text for name, text in last if name == "USER").split(":")
    assert int(user) >= 10_000
    for name in ("ENTRYPOINT", "CMD"):
        assert isinstance(json.loads(next(text for key, text in last if key == name)), list)
    (run,) = (text for name, text in runtime if name == "RUN")
    assert "find /usr/bin /usr/sbin /usr/local/sbin -mindepth 1 ! -name sleep -delete" in run


def test_everything_in_the_image_is_installed_by_hash() -> None:
    """What is not is our own wheel, and what was installed already."""
    (build, *_) = stages()
    text = " && ".join(text for name, text in build if name == "RUN")
    installs = [
        shlex.split(each)
        for each in text.split("&&")
        if " install " in each and "uninstall" not in each
    ]

    assert len(installs) == 4
    for words in installs:
        own = words[-1] == "/wheels/*.whl"
        assert "--no-deps" in words if own else "--require-hashes" in words


def stages() -> Iterator[list[tuple[str, str]]]:
    """Yield the instructions of each stage: name and text."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = [line for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line.strip()]
    found: list[list[tuple[str, str]]] = []
    for line in lines:
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, " ".join(rest.split())))
    yield from found
