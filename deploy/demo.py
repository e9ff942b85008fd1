"""The main job, shown: a webhook with TLS, jobs sent to it as an API server sends them, verdicts.

    deploy/examples/*.yaml -> AdmissionReview -> vramgate serve -> a table and one message

Uses the product's public doors only: `vramgate serve` and HTTPS. Needs no cluster and no GPU.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from rich.console import Console
from rich.table import Table

from admission.certificates.issuing import new_authority
from estimator.units import gib_up

EXAMPLES = Path(__file__).resolve().parent / "examples"
NODES = EXAMPLES / "nodes.yaml"
READY_SECONDS = 120
LATE_TRIES = 10
WORKERS = "vramgate_estimator_workers"
VERDICT_STYLES = {"fits": "green", "tight": "yellow", "oom": "red", "unknown": "magenta"}

Popen = subprocess.Popen[bytes]
PLAIN_WIDTH = 140
console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the webhook said of one object."""

    name: str
    allowed: bool
    message: str
    warnings: tuple[str, ...]
    facts: Mapping[str, str]


def write_settings(folder: Path, *, port: int) -> tuple[Path, Path]:
    """Write certificates and settings to *folder*; return the settings and the CA's bundle."""
    authority = new_authority("vramgate demo")
    certificate, key = authority.issue(["127.0.0.1", "localhost"]).write(folder / "tls")
    bundle = folder / "ca.crt"
    bundle.write_bytes(authority.bundle)
    settings = folder / "settings.yaml"
    server = {"host": "127.0.0.1", "port": port}
    server |= {"certFile": str(certificate), "keyFile": str(key)}
    document = {
        "server": server,
        "policy": {"mode": "enforce"},
        "nodes": {"file": str(NODES)},
        "workers": {"preload": ["pytorch"]},
    }
    settings.write_text(yaml.safe_dump(document))
    return settings, bundle


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def webhook(settings: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `vramgate serve` until the block ends."""
    command = [sys.executable, "-m", "admission", "serve", "--config", str(settings)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=30)


def example_objects() -> Iterator[dict[str, Any]]:
    """Yield the objects of deploy/examples in file order, nodes left out."""
    for path in sorted(EXAMPLES.glob("*.yaml")):
        if path != NODES:
            yield from (item for item in yaml.safe_load_all(path.read_text()) if item)


def review_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the AdmissionReview an API server sends for a create of *obj*."""
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": obj["kind"]}
    resource = {"group": group, "version": version, "resource": obj["kind"].lower() + "s"}
    request = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "requestKind": kind,
        "resource": resource,
        "requestResource": resource,
        "name": obj["metadata"].get("name", ""),
        "namespace": obj["metadata"].get("namespace", "default"),
        "operation": "CREATE",
        "userInfo": {"username": "ada", "groups": ["system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def wait_until_ready(session: aiohttp.ClientSession, process: Popen, log: Path) -> None:
    """Wait for `/readyz` and for the estimator's template.

    Raises:
        SystemExit: if the webhook or its template ends, or neither is ready in time.
    """
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if (status := process.poll()) is not None:
            raise SystemExit(f"the webhook ended with status {status}:\n{tail(log)}")
        with contextlib.suppress(aiohttp.ClientConnectionError):
            async with session.get("/readyz") as ready, session.get("/metrics") as metrics:
                series = await metrics.text()
            if num_workers(series, "dead"):
                raise SystemExit(f"the webhook's PyTorch template ended:\n{tail(log)}")
            if ready.status == HTTPStatus.OK and num_workers(series, "idle-template"):
                return
        await asyncio.sleep(0.05)
    raise SystemExit(f"the webhook was not ready within {READY_SECONDS} s:\n{tail(log)}")


def num_workers(series: str, state: str) -> float:
    """Return how many estimator processes the text of `/metrics` has in *state*."""
    name = f'{WORKERS}{{state="{state}"}} '
    found = (line for line in series.splitlines() if line.startswith(name))
    return sum(float(line.removeprefix(name)) for line in found)


def tail(log: Path) -> str:
    """Return the end of *log*."""
    return log.read_text(errors="replace")[-2000:]


async def ask(session: aiohttp.ClientSession, obj: Mapping[str, Any]) -> Answer:
    """Send the review of *obj*; ask again while the answer is only late, as a client would."""
    for _ in range(LATE_TRIES):
        async with session.post("/validate?timeout=10s", json=review_of(obj)) as reply:
            response = (await reply.json())["response"]
        facts = response.get("auditAnnotations", {})
        if facts.get("reason") != "late":
            break
    return Answer(
        name=f"{obj['kind']}/{obj['metadata']['name']}",
        allowed=response["allowed"],
        message=response.get("status", {}).get("message", ""),
        warnings=tuple(response.get("warnings", ())),
        facts=facts,
    )


def gib(facts: Mapping[str, str], name: str) -> str:
    """Return a need in GiB, rounded up, or a dash."""
    return gib_up(int(facts[name])).removesuffix(" GiB") if name in facts else "-"


def row_of(answer: Answer) -> list[str]:
    """Return one line of the table."""
    facts = answer.facts
    verdict = facts.get("verdict", "-")
    needs = " / ".join(gib(facts, f"{name}-bytes") for name in ("least", "enough", "peak"))
    style = VERDICT_STYLES.get(verdict, "dim")
    said = "denied" if not answer.allowed else "warned" if answer.warnings else "allowed"
    return [
        answer.name,
        facts.get("found", "-"),
        needs,
        facts.get("best-card", "-"),
        f"[{style}]{verdict}[/{style}]",
        said,
    ]


def warned_lines(answers: Iterable[Answer]) -> list[str]:
    """Return the first warning of each job that was let through with warnings."""
    warned = (answer for answer in answers if answer.allowed and answer.warnings)
    return [f"{answer.name}: {answer.warnings[0]}" for answer in warned]


async def show(settings: Path, bundle: Path, port: int, log: Path) -> int:
    """Run the webhook, send it every example, print the table and one rejection."""
    context = ssl.create_default_context(cafile=str(bundle))
    connector = aiohttp.TCPConnector(ssl=context)
    base = f"https://127.0.0.1:{port}"
    started = time.monotonic()
    answers: list[Answer] = []
    with webhook(settings, log) as process:
        async with aiohttp.ClientSession(base, connector=connector) as session:
            with console.status("starting the webhook and its PyTorch template"):
                await wait_until_ready(session, process, log)
            console.print(f"webhook ready on {base} in {time.monotonic() - started:.1f} s")
            for obj in example_objects():
                name = f"{obj['kind']}/{obj['metadata']['name']}"
                with console.status(f"reviewing {name}"):
                    began = time.monotonic()
                    answers.append(await ask(session, obj))
                console.print(f"  reviewed {name} in {time.monotonic() - began:.1f} s")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("job", no_wrap=True)
    for heading in ("found", "least / enough / peak GiB", "best card", "verdict", "answer"):
        table.add_column(heading, overflow="fold")
    for answer in answers:
        table.add_row(*row_of(answer))
    console.print(table)
    console.print()
    for line in warned_lines(answers):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    denied = [answer for answer in answers if not answer.allowed]
    for answer in denied[:1]:
        console.print(f"\n[bold]{answer.name}[/bold] is denied; the person who applied it reads:\n")
        console.print(answer.message, markup=False, highlight=False)
    return 0 if denied else 1


def main() -> int:
    """Run the demo in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="vramgate-demo-") as name:
        folder, port = Path(name), free_port()
        settings, bundle = write_settings(folder, port=port)
        return asyncio.run(show(settings, bundle, port, folder / "webhook.log"))


if __name__ == "__main__":
    sys.exit(main())
