"""`make audit`: known vulnerabilities of what is pinned, by pip-audit.

    requirements/NAME.txt, advisories of PyPI -> lines; 0 none known, 1 some, 2 not known of all

Nothing is resolved or installed: each name is asked about at its pinned version. A package that
PyPI says nothing of is not taken for one without vulnerabilities.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REQUIREMENTS = Path("requirements")
AUDITED = ("bootstrap", "build", "base", "all")
"""`all` holds what every image and every test installs; the first two make the images."""
KNOWN, UNKNOWN = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What is known of one file's pins."""

    asked: int
    vulnerable: tuple[str, ...]
    """`NAME VERSION: ADVISORY, fixed in VERSION`."""
    unanswered: tuple[str, ...]
    """Names that no advisory could be had for, with the reason."""
    failure: str = ""
    """Why nothing could be asked at all."""

    @property
    def status(self) -> int:
        """Return the exit status."""
        if self.vulnerable:
            return KNOWN
        return UNKNOWN if self.unanswered or self.failure or not self.asked else 0

    def lines(self, name: str) -> Iterator[str]:
        """Yield what is told of the file *name*."""
        answered = self.asked - len(self.unanswered)
        if self.failure:
            yield f"audit: {name}: no advisories could be had: {self.failure}"
            return
        yield (
            f"audit: {name}: {answered} of {self.asked} pins answered for,"
            f" {len(self.vulnerable)} known vulnerabilities"
        )
        yield from (f"  {each}" for each in self.vulnerable)
        if self.unanswered:
            yield f"  not audited: {', '.join(self.unanswered[:5])}" + (
                f" and {len(self.unanswered) - 5} more: is there a way to pypi.org from here?"
                if len(self.unanswered) > 5
                else ""
            )


def audit_of(document: Mapping[str, Any]) -> Audit:
    """Return what pip-audit's JSON says."""
    found: list[Mapping[str, Any]] = document["dependencies"]
    return Audit(
        asked=len(found),
        vulnerable=tuple(
            f"{each['name']} {each['version']}: {one['id']}, fixed in"
            f" {', '.join(one.get('fix_versions') or ()) or 'no version'}"
            for each in found
            for one in each.get("vulns") or ()
        ),
        unanswered=tuple(str(each["name"]) for each in found if "skip_reason" in each),
    )


def audited(requirements: Path) -> Audit:
    """Return what is known of the pins in *requirements*. Asks PyPI."""
    module = (sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", "--no-deps")
    done = subprocess.run(
        [*module, "-r", str(requirements), "--format", "json", "--progress-spinner", "off"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return audit_of(json.loads(done.stdout))
    except (json.JSONDecodeError, KeyError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return Audit(asked=0, vulnerable=(), unanswered=(), failure=last[:300])


def main() -> int:
    """Audit each file; return the worst status, what is known before what is not."""
    statuses = set()
    for name in AUDITED:
        audit = audited(REQUIREMENTS / f"{name}.txt")
        print("\n".join(audit.lines(f"requirements/{name}.txt")), flush=True)
        statuses.add(audit.status)
    return next((each for each in (KNOWN, UNKNOWN) if each in statuses), 0)


if __name__ == "__main__":
    sys.exit(main())
