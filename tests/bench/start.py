"""How long `vramgate serve` takes from its start until it is ready, its workers still importing."""

from __future__ import annotations

import http.client
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from deploy.demo import free_port, webhook, write_settings
from tests.bench.figures import Figure, used_seconds

STARTS = 3
MOST_SECONDS = 3.0
LIMIT_SECONDS = 60
LOOK_SECONDS = 0.01


def start_figures() -> Iterator[Figure]:
    """Yield the longest of a few starts, and what it took of a processor."""
    starts = [_start() for _ in range(STARTS)]
    seconds, used = max(starts)
    yield Figure(
        name="start to ready, workers not warm",
        value=seconds,
        unit="s",
        high=MOST_SECONDS,
        note=f"the longest of {STARTS} starts; {used:.2f} s of a processor",
    )


def _start() -> tuple[float, float]:
    """Return the seconds until `/readyz` says so, and those of a processor."""
    with tempfile.TemporaryDirectory(prefix="vramgate-bench-") as name:
        folder, port = Path(name), free_port()
        settings, bundle = write_settings(folder, port=port)
        context = ssl.create_default_context(cafile=str(bundle))
        began = time.perf_counter()
        with webhook(settings, folder / "webhook.log") as process:
            while not _is_ready(port, context):
                if process.poll() is not None or time.perf_counter() - began > LIMIT_SECONDS:
                    raise TimeoutError((folder / "webhook.log").read_text()[-2000:])
                time.sleep(LOOK_SECONDS)
            return time.perf_counter() - began, used_seconds(process.pid)


def _is_ready(port: int, context: ssl.SSLContext) -> bool:
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    for figure in start_figures():
        sys.stdout.write(f"{figure.name}: {figure.measured} ({figure.note})\n")
