"""`vramgate report`: what mode `enforce` would have denied, by every replica of an install.

    pods of a cluster, or files -> Reports -> one -> text, JSON or YAML

Replicas are asked by way of the API server (`pods/proxy`), and nothing is stored anywhere.
Exit: 0 done, 1 a replica could not be asked, 2 usage, or none could be.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from admission.commands.documents import Notation, Output, write_entries
from admission.commands.options import FILE, Word, context_option, kubeconfig_option
from admission.commands.plugin import access_of
from admission.commands.report_merge import Merged, Replica, merged, parsed
from admission.errors import ManifestError
from admission.plaintext import plain
from estimator.deferred import Deferred

if TYPE_CHECKING:
    from admission.commands import report_table
    from admission.listing import Connection
    from admission.values import Json
else:
    report_table = Deferred("admission.commands.report_table")

SELECTOR = "app.kubernetes.io/name=vramgate,app.kubernetes.io/component=webhook"
PATH = "/report"
PORT_NAME, USUAL_PORT = "https", 8443
MAX_BYTES = 64 << 20
INCOMPLETE = 1


@click.command()
@click.argument(
    "files",
    nargs=-1,
    type=FILE,
    metavar="[FILE]...",
    help="What replicas answered at /report, instead of asking them.",
)
@kubeconfig_option
@context_option
@click.option(
    "--namespace", "-n", default="vramgate-system", metavar="NAME", help="Where Vramgate runs."
)
@click.option("--selector", default=SELECTOR, metavar="LABELS", help="The labels of its pods.")
@click.option(
    "--output", "-o", type=Word(Output), default=Output.TEXT.value, help="How to write the answer."
)
@click.pass_obj
def command(
    program: str,
    files: tuple[Path, ...],
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    selector: str,
    output: Output,
) -> None:
    """Say what mode enforce would have denied, since the replicas of an install started."""
    access = access_of(
        program,
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        has_cards=bool(files),
    )
    if bool(files) == (access is not None):
        raise ManifestError(
            "one of --kubeconfig, --context and FILE is needed: whose report should be shown?"
        )
    if access is not None:
        found = merged(asked(access.connect(), namespace=namespace, selector=selector))
    else:
        found = merged([_read(path) for path in files])
    _write(found, output)
    sys.exit(0 if found.is_whole else INCOMPLETE)


def asked(connection: Connection, *, namespace: str, selector: str) -> list[Replica]:
    """Return what each pod of the install answers, in the order of their names.

    Raises:
        ManifestError: if there is none, the pods cannot be listed, or nobody answers.
    """
    pods = connection.pods(namespace, selector=selector)
    if not pods:
        raise ManifestError(
            f"namespace {namespace} has no pod with labels {selector}",
            hint="--namespace and --selector say where Vramgate runs",
        )
    return sorted((_asked(connection, namespace, pod) for pod in pods), key=lambda each: each.name)


def _asked(connection: Connection, namespace: str, pod: Json) -> Replica:
    name = str((pod.get("metadata") or {}).get("name"))
    phase = (pod.get("status") or {}).get("phase")
    if phase != "Running":
        return Replica(name=name, problem=f"is {phase or 'of no phase'}, not Running")
    status, body = connection.of_pod(namespace, name, port=_port(pod), path=PATH)
    if status != 200:
        hint = " (`kubectl auth can-i get pods/proxy`)" if status == 403 else ""
        return Replica(name=name, problem=f"the API server says {status}{hint}")
    try:
        return Replica(name=name, report=parsed(body, source=name))
    except ManifestError as error:
        return Replica(name=name, problem=plain(error.message, limit=300))


def _port(pod: Json) -> int:
    """Return the port of its reviews: who may reach it is not for a NetworkPolicy to say."""
    ports: list[Any] = [
        port
        for container in (pod.get("spec") or {}).get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("name") == PORT_NAME
    ]
    return int(ports[0]["containerPort"]) if ports else USUAL_PORT


def _read(path: Path) -> Replica:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES)
    except OSError as error:
        raise ManifestError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from error
    return Replica(name=str(path), report=parsed(text, source=str(path)))


def _write(found: Merged, output: Output) -> None:
    if output is Output.TEXT:
        report_table.print_report(found)
    else:
        write_entries(found.document(), Notation(output.value))
