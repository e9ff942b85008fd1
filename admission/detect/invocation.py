"""A training program as it is called, with what its launchers said.

Invocation: program, arguments, environment, Launch
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from admission.detect.clones import repository_of
from admission.detect.draft import Gap
from admission.detect.flags import Flag, Flags, Options, parse_flags
from admission.detect.words import Variables, Word


class Spawn(StrEnum):
    """How many processes a launcher starts on a node when nobody says."""

    ONE = "one"
    ALL = "all"
    """One a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a launcher decides: processes and how they share the work."""

    launcher: str = "python"
    spawn: Spawn = Spawn.ONE
    is_distributed: bool = False
    """Processes are started to form one process group."""
    processes: Flag | None = None
    """Processes a node; its value may be `gpu` or `auto`."""
    total: Flag | None = None
    """Processes of all nodes together."""
    nodes: Flag | None = None
    precision: Flag | None = None
    """Mixed precision set from outside the script."""
    parallelism: Mapping[str, tuple[object, str]] = field(default_factory=dict)
    """Spec path -> value and source."""
    gaps: tuple[Gap, ...] = ()
    gaps_if_shared: tuple[Gap, ...] = ()
    """Those that one process alone has not: how cards share the work is not read."""
    is_configured: bool = False
    """A configuration file that is seen says how cards share the work."""
    is_spread: bool = False
    """Its processes go over all pods that have GPUs, not only over this one."""
    shards_in_node: bool = False
    """State is sharded over the cards of a node only, and replicated beyond."""
    doubts: tuple[str, ...] = ()
    """Why what it decides may be otherwise."""
    is_on_cpu: bool = False
    """It hides the GPUs from what it starts."""
    unseen: str = ""
    """What may decide otherwise and cannot be seen."""


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """One call of a Python script or module.

    Not slotted: some sixty families look at the same name, place and flags.
    """

    program: Word
    is_module: bool
    arguments: tuple[Word, ...]
    variables: Variables
    directory: str
    where: str
    """`containers[0]`."""
    path: str
    """Field path of the container."""
    launch: Launch
    is_sure: bool = True
    """It runs for certain, once what is before it succeeds."""
    fetched: Mapping[str, str] = field(default_factory=dict)
    """File name -> URL, for files that the same command line downloads."""
    cloned: Mapping[str, str] = field(default_factory=dict)
    """Folder -> URL, for repositories that the same command line clones."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Package -> version that the same command line installs."""
    image: str = ""
    """Of the container: it may tell the framework, never the model."""

    @cached_property
    def name(self) -> str:
        """Return the script's file name, or the module's dotted name."""
        return self.program.text if self.is_module else self.program.text.rpartition("/")[2]

    @cached_property
    def location(self) -> str:
        """Return everything that tells where the script comes from: folder, path and URL."""
        urls = (self.fetched.get(self.name, ""), self.repository)
        parts = (self.directory, self.program.text, *urls)
        return "/".join(part for part in parts if part).lower()

    @cached_property
    def repository(self) -> str:
        """Return the URL of the repository that the script was cloned with, or nothing."""
        if self.is_module or not self.cloned:
            return ""
        return repository_of(self.program.text, directory=self.directory, cloned=self.cloned)

    @cached_property
    def spellings(self) -> frozenset[str]:
        """Return the names of everything that looks like a flag, as no parser has read them."""
        return frozenset(
            word.text.lstrip("-").partition("=")[0].replace("-", "_")
            for word in self.arguments
            if word.text.startswith("-")
        )

    @cached_property
    def _parsed(self) -> dict[int, tuple[Options, Flags]]:
        """Options by their identity, which lives as long as they are kept here -> flags."""
        return {}

    def flags(self, options: Options) -> Flags:
        """Return the arguments read with *options*: once, however often they are asked for."""
        known = self._parsed.get(id(options))
        if known is None or known[0] is not options:
            flags = parse_flags(self.arguments, options, where=self.where, path=self.path)
            known = self._parsed[id(options)] = (options, flags)
        return known[1]
