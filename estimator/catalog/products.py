"""Product labels as GPU feature discovery writes them.

    text -> ProductLabel

`NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED` is a card, a profile and a sharing mark. Spaces become
`-` and other characters outside `[A-Za-z0-9-_. ]` go, so a name from nvidia-smi reads the same.
`+` stays, for profiles like `1g.10gb+me`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OTHER = re.compile(r"[^A-Za-z0-9_. +-]")
_MIG = re.compile(r"-mig-(?P<profile>.+)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductLabel:
    """A label taken apart. `card` is the key cards are found by, in lower case, without vendor."""

    card: str
    profile: str | None = None
    is_shared: bool = False
    is_invalid: bool = False
    """`-MIG-INVALID`: MIG is on without a usable layout, so the card offers no memory."""


def product_label(text: str) -> ProductLabel:
    """Return the parts of a product label."""
    label = card_key(text)
    shared = label.endswith("-shared")
    if shared:
        label = label.removesuffix("-shared")
    match = _MIG.search(label)
    if match is None:
        return ProductLabel(card=label, is_shared=shared)
    card = label[: match.start()]
    profile = match["profile"]
    if profile == "invalid":
        return ProductLabel(card=card, is_shared=shared, is_invalid=True)
    return ProductLabel(card=card, profile=profile, is_shared=shared)


def card_key(text: str) -> str:
    """Return *text* as labels are compared: `NVIDIA TITAN X (Pascal)` is `titan-x-pascal`."""
    plain = _OTHER.sub("", text.strip()).replace(" ", "-").casefold()
    return plain.removeprefix("nvidia-")
