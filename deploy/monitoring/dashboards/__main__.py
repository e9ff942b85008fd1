"""`make dashboards`: write the chart's dashboards and its copy of the rules."""

from __future__ import annotations

from deploy.monitoring.dashboards.writing import made

if __name__ == "__main__":
    for path, text in made().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(f"wrote {path}")
