"""The command `vramgate`, and the same as a plugin of kubectl: `kubectl vramgate`.

    arguments -> one command -> exit status

0 done, 1 the answer is "no", 2 bad usage or input, 3 our fault. Only the module of the command
that was asked for is imported.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from admission.commands.exits import FAULT, USAGE
from admission.commands.plugin import PLUGIN
from admission.errors import AdmissionError
from estimator.deferred import Deferred
from estimator.errors import EstimatorError, SpecError, UnsupportedJobError

if TYPE_CHECKING:
    from admission import version
else:
    version = Deferred("admission.version")

PROGRAM = "vramgate"

COMMANDS = {
    "version": "admission.commands.version",
    "serve": "admission.commands.serve",
    "controller": "admission.commands.controller",
    "agent": "admission.commands.agent",
    "estimate": "admission.commands.estimate",
    "account": "admission.commands.account",
    "trace": "admission.commands.trace",
    "explain": "admission.commands.explain",
    "nodes": "admission.commands.nodes",
    "fit": "admission.commands.fit",
    "report": "admission.commands.report",
    "calibration": "admission.commands.calibration",
    "gpus": "admission.commands.gpus",
    "schema": "admission.commands.schema",
}
"""Name -> the module with its function `command`."""


class Commands(click.Group):
    """The commands of `COMMANDS`: the module of one is imported when that one is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click gives it)
        """Return the names, in the order of the table."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 (click gives it)
        cmd_name: str,
    ) -> click.Command | None:
        """Return the command, if there is one of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        # What was imported lives to the end: no collection, and not the last one, need walk it.
        gc.freeze()
        return command


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the version and end, if that is *wanted*."""
    if wanted:
        click.echo(version.package_version())
        context.exit()


@click.group(cls=Commands, context_settings={"show_default": True})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def vramgate() -> None:
    """GPU-memory admission for Kubernetes: what a training job needs, and whether it fits."""


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
        vramgate.main(given, prog_name=program, obj=program)
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


def _say(program: str, text: str) -> None:
    click.echo(f"{program}: {text}", err=True)
