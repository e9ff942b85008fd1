"""`vramgate version`."""

from __future__ import annotations

import click

from admission.version import package_version


@click.command()
def command() -> None:
    """Print the version."""
    click.echo(package_version())
