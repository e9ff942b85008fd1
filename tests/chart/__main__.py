"""`make chart`: write the files that are made from the chart and from the settings."""

from __future__ import annotations

from tests.chart.generating import INSTALL, SCHEMA, write

if __name__ == "__main__":
    write()
    print(f"wrote {SCHEMA} and {INSTALL}")
