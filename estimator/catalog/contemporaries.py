"""Which model libraries go with a PyTorch release that nobody told the libraries of.

    torch release, library -> version text

Those are the newest of the day the next PyTorch came: a job of that release is run while it lasts
or later, and an installer takes the newest.

Source: PyPI's upload times, by `uv pip compile --exclude-newer` of the day after each release.
Not modelled: a job that upgraded one and not the other; it states `runtime.libraries`.
"""

from __future__ import annotations

Version = tuple[int, int]

CONTEMPORARIES: dict[Version, dict[str, str]] = {
    torch: {"transformers": transformers, "timm": timm, "bitsandbytes": bitsandbytes}
    for torch, transformers, timm, bitsandbytes in (
        ((1, 4), "2.8.0", "0.1.20", "0.37.1"),
        ((1, 5), "3.0.2", "0.1.30", "0.37.1"),
        ((1, 6), "3.4.0", "0.2.1", "0.37.1"),
        ((1, 7), "4.3.3", "0.3.4", "0.37.1"),
        ((1, 8), "4.6.1", "0.4.9", "0.37.1"),
        ((1, 9), "4.11.3", "0.4.12", "0.37.1"),
        ((1, 10), "4.17.0", "0.5.4", "0.37.1"),
        ((1, 11), "4.20.1", "0.5.4", "0.37.1"),
        ((1, 12), "4.23.1", "0.6.11", "0.37.1"),
        ((1, 13), "4.27.1", "0.6.12", "0.37.1"),
        ((2, 0), "4.34.0", "0.9.7", "0.41.1"),
        ((2, 1), "4.37.2", "0.9.12", "0.42.0"),
        ((2, 2), "4.40.1", "0.9.16", "0.43.1"),
        ((2, 3), "4.43.2", "1.0.7", "0.43.2"),
        ((2, 4), "4.45.2", "1.0.11", "0.44.1"),
        ((2, 5), "4.48.2", "1.0.14", "0.45.1"),
        ((2, 6), "4.51.3", "1.0.15", "0.45.5"),
        ((2, 7), "4.55.0", "1.0.19", "0.46.1"),
        ((2, 8), "4.57.1", "1.0.20", "0.48.1"),
        ((2, 9), "4.57.6", "1.0.24", "0.49.1"),
        ((2, 10), "5.3.0", "1.0.26", "0.49.2"),
        ((2, 11), "5.8.1", "1.0.27", "0.49.2"),
        ((2, 12), "5.13.0", "1.0.27", "0.49.2"),
        ((2, 13), "5.16.1", "1.0.29", "0.50.2"),
        ((2, 14), "5.22.1", "1.0.30", "0.50.2"),
    )
}
"""PyTorch release -> transformers, timm, bitsandbytes. A newer PyTorch is of today.

bitsandbytes has 4 bits since 0.39; an older one stands for "before that".
"""


def contemporary(torch: Version, library: str) -> str | None:
    """Return the version of *library* that goes with *torch*; None: today's."""
    if torch > max(CONTEMPORARIES):
        return None
    known = [release for release in CONTEMPORARIES if release <= torch]
    return CONTEMPORARIES[max(known or [min(CONTEMPORARIES)])].get(library)
