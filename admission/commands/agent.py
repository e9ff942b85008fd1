"""`vramgate agent`: what the containers of a node hold of its GPUs.

    settings, kubeconfig -> the agent, until SIGTERM

Imports neither a framework nor what answers reviews.
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from admission.agent.amd import Amd
from admission.agent.nvml import Nvml
from admission.agent.running import Agent
from admission.cluster import connect
from admission.commands.options import FILE, Word
from admission.commands.signals import STOPPING, hung_up
from admission.config import LogLevel, load_settings
from admission.logs import configure_logs


@click.command()
@click.option("--config", type=FILE, help="Settings file (YAML). Without it every default holds.")
@click.option("--kubeconfig", type=FILE, help="How to reach the API server, outside a cluster.")
@click.option("--log-level", type=Word(LogLevel), help="Instead of the level in the settings.")
def command(config: Path | None, kubeconfig: Path | None, log_level: LogLevel | None) -> None:
    """Measure what containers hold of this node's GPUs until SIGTERM."""
    settings = load_settings(config)
    configure_logs(log_level or settings.logs.level, form=settings.logs.format)
    stopping = threading.Event()
    for number in STOPPING:
        signal.signal(number, lambda *_: stopping.set())
    signal.signal(signal.SIGHUP, hung_up)
    agent = Agent(settings.agent, connect(kubeconfig), (Nvml(), Amd()))
    agent.run(stopping)
