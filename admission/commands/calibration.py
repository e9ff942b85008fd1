"""`vramgate calibration`: what measured peaks say of estimates, by card and framework.

    ConfigMap of a cluster, or a file of it -> Residuals -> text, JSON or YAML

Exit: 0 done, 2 usage, or it cannot be had.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from admission.commands.documents import Notation, Output, write_entries
from admission.commands.options import FILE, Word, context_option, kubeconfig_option
from admission.commands.plugin import access_of
from admission.errors import ManifestError
from admission.learning import residuals_text
from admission.learning.residuals import Correction, Group, Residuals, correction_of
from estimator.deferred import Deferred
from estimator.documents import read_document
from estimator.errors import SpecError

if TYPE_CHECKING:
    from admission.commands import calibration_table
    from admission.values import Json
else:
    calibration_table = Deferred("admission.commands.calibration_table")

NAME = "vramgate-learned"
MAX_BYTES = 2 << 20


@click.command()
@click.argument(
    "file",
    required=False,
    type=FILE,
    metavar="[FILE]",
    help="The ConfigMap, YAML or JSON, instead of a cluster's.",
)
@kubeconfig_option
@context_option
@click.option(
    "--namespace", "-n", default="vramgate-system", metavar="NAME", help="Where Vramgate runs."
)
@click.option(
    "--output", "-o", type=Word(Output), default=Output.TEXT.value, help="How to write the answer."
)
@click.pass_obj
def command(
    program: str,
    file: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    output: Output,
) -> None:
    """Say how measured peaks of finished jobs compare with their estimates."""
    access = access_of(
        program,
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        has_cards=file is not None,
    )
    if (file is None) == (access is None):
        raise ManifestError("one of --kubeconfig, --context and FILE is needed: whose calibration?")
    if access is not None:
        found = access.connect().config_map(namespace, NAME)
        source = f"ConfigMap {namespace}/{NAME}"
        if found is None:
            hint = "the controller makes it once it has learnt something: controller.calibrate"
            raise ManifestError(f"{source} is not there", hint=hint)
    else:
        assert file is not None
        found, source = _read(file), str(file)
    rows = rows_of(residuals_in(found, source))
    if output is Output.TEXT:
        calibration_table.print_rows(rows)
    else:
        write_entries([_entry(*row) for row in rows], Notation(output.value))


def residuals_in(config_map: Json, source: str) -> Residuals:
    """Return what a ConfigMap holds.

    Raises:
        ManifestError: if it is none, or has no calibration.
    """
    data: Any = config_map.get("data")
    if config_map.get("kind") not in (None, "ConfigMap") or not isinstance(data, dict | None):
        raise ManifestError(f"{source} is no ConfigMap")
    text = (data or {}).get(residuals_text.KEY)
    if text is None:
        return {}
    found = residuals_text.read(text if isinstance(text, str) else None)
    if not found and text != residuals_text.written({}):
        raise ManifestError(f"{source}: {residuals_text.KEY} is not what a controller writes")
    return found


def rows_of(residuals: Residuals) -> list[tuple[Group, Correction]]:
    """Return what each group says, by group."""
    found = ((group, correction_of(samples)) for group, samples in sorted(residuals.items()))
    return [(group, correction) for group, correction in found if correction is not None]


def _read(file: Path) -> Json:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise ManifestError(f"{file}: {str(reason).lower()}") from error
    if len(content) > MAX_BYTES:
        raise ManifestError(f"{file} is longer than {MAX_BYTES} bytes")
    try:
        document = read_document(text, path=str(file))
    except SpecError as error:
        raise ManifestError(f"{file} is no YAML or JSON document: {error}"[:300]) from error
    if not isinstance(document, dict):
        raise ManifestError(f"{file} is no ConfigMap")
    return document


def _entry(group: Group, found: Correction) -> dict[str, Any]:
    return {
        "framework": group.framework,
        "method": group.method,
        "product": group.product,
        **({"frameworkVersion": group.version} if group.version else {}),
        "jobs": found.jobs,
        "namespaces": found.namespaces,
        "median": round(found.median, 4),
        "upper": round(found.upper, 4),
        "shift": round(found.shift, 4),
        "widens": found.may_widen,
        "shifts": found.may_shift,
    }
