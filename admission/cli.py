"""The command `vramgate`, and the same as a plugin of kubectl: `kubectl vramgate`.

    arguments -> one command -> exit status

0 done, 1 the answer is "no", 2 bad usage or input, 3 our fault. Only the module of the command
that was asked for is imported.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from admission.commands.exits import FAULT, USAGE
from admission.commands.plugin import PLUGIN
from admission.errors import AdmissionError
from estimator.deferred import Deferred
from estimator.errors import EstimatorError, SpecError, UnsupportedJobError

if TYPE_CHECKING:
    from admission import config
else:
    config = Deferred("admission.config")

PROGRAM = "vramgate"

COMMANDS = {
    "serve": "admission.commands.serve",
    "estimate": "admission.commands.estimate",
    "account": "admission.commands.account",
    "trace": "admission.commands.trace",
    "explain": "admission.commands.explain",
    "nodes": "admission.commands.nodes",
    "fit": "admission.commands.fit",
    "gpus": "admission.commands.gpus",
    "schema": "admission.commands.schema",
}
"""Name -> the module with its function `command`."""


def plugin() -> int:
    """Run one command as kubectl does, which finds `kubectl-vramgate` on the PATH."""
    return main(program=PLUGIN)


def main(arguments: Sequence[str] | None = None, *, program: str = PROGRAM) -> int:
    """Run one command and return its exit status; a person never sees a traceback of ours.

    *program* is what a person has called: commands find it in their context's `obj`.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    say = partial(_say, program)
    try:
        typer.main.get_command(_application(given))(given, prog_name=program, obj=program)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except (AdmissionError, SpecError, UnsupportedJobError) as error:
        say(str(error))
        return USAGE
    except EstimatorError as error:
        say(str(error))
        return FAULT
    except Exception as error:
        # The last door before a person: `vramgate serve` has logged the traceback by now.
        say(f"failed on its own account: {type(error).__name__}: {error}")
        return FAULT
    return 0


def _application(arguments: Sequence[str]) -> typer.Typer:
    """Return the application with the command that *arguments* name, or with all of them."""
    app = typer.Typer(
        name=PROGRAM,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_about)
    app.command("version")(_version)
    named = next((text for text in arguments if not text.startswith("-")), None)
    is_version = named == "version" or "--version" in arguments[:1]
    wanted = [named] if named in COMMANDS else [] if is_version else list(COMMANDS)
    for name in wanted:
        app.command(name)(importlib.import_module(COMMANDS[name]).command)
    return app


def _print_version(wanted: bool) -> None:
    """Print the version and end, if that is *wanted*."""
    if wanted:
        _version()
        raise typer.Exit


def _about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """GPU-memory admission for Kubernetes: what a training job needs, and whether it fits."""


def _version() -> None:
    """Print the version."""
    typer.echo(config.package_version())


def _say(program: str, text: str) -> None:
    typer.echo(f"{program}: {text}", err=True)
