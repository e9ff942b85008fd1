"""Keep samples of the release that is about to be made: `python -m tests.upgrade`."""

from __future__ import annotations

from tests.upgrade.samples import write

if __name__ == "__main__":
    print(f"upgrade: {write()}")
