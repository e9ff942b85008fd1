"""Write docs/reserved.md: where the reserved memory of three known jobs comes from."""

from __future__ import annotations

import asyncio
import sys

from tests.bench.reserved.full import PAGE, write_page


def main() -> int:
    """Write the page."""
    asyncio.run(write_page())
    print(f"{PAGE} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
