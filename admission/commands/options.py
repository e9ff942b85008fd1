"""What several commands have the same words for: a word of a closed set, a path, a cluster.

arguments -> values of ours
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import click

W = TypeVar("W", bound=StrEnum)

FILE: click.Path[Path] = click.Path(path_type=Path)

job_argument = click.argument(
    "spec", metavar="SPEC", help="A JobSpec (YAML or JSON) or a Trace file, - for standard input."
)
kubeconfig_option = click.option(
    "--kubeconfig",
    type=FILE,
    metavar="FILE",
    help="Ask the cluster of this kubeconfig for nodes and objects.",
)
context_option = click.option(
    "--context",
    metavar="NAME",
    help="A context of the kubeconfig instead of its current one.",
)
namespace_option = click.option(
    "--namespace", "-n", metavar="NAME", help="Where objects belong that name no namespace."
)
offline_option = click.option(
    "--offline", is_flag=True, help="Ask no Hub and no host, whatever the settings say."
)


class Word(click.Choice[W]):
    """A word of a closed set, as people write it: the member's value."""

    def normalize_choice(
        self,
        choice: object,
        ctx: click.Context | None,  # noqa: ARG002 (click gives it)
    ) -> str:
        """Return the value of a member; click alone would take its name."""
        return str(choice)
