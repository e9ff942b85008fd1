"""The installed version of Vramgate."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def package_version() -> str:
    """Return the installed version, or `unknown` in a tree that is not installed."""
    try:
        return version("vramgate")
    except PackageNotFoundError:
        return "unknown"
