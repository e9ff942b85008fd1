"""The class of a card that somebody named.

Device -> NodeClass
"""

from __future__ import annotations

from admission.values import NodeClass
from estimator.device import Device


def declared_class(device: Device) -> NodeClass:
    """Return the class of a card that somebody named: no node is known, every pod may go there."""
    return NodeClass(
        name=device.name,
        product=device.name,
        count=0,
        gpus_per_node=0,
        gpu_resource="",
        device=device,
        sharing="none",
        nodes=(),
        labels={},
    )
