"""`python -m admission`: the command `vramgate`."""

from __future__ import annotations

import sys

from admission.cli import main

if __name__ == "__main__":
    sys.exit(main())
