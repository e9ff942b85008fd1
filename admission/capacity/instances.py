"""Which cards the machines of three clouds have, by the name of the machine's type.

    instance type -> (catalog names, number)

Asked only where no label says what the cards are: a machine may have been cut into slices since.
A type that is not here, or that has a part of a card, is not known.

Sources:

* AWS: aws/karpenter-provider-aws 1d927085 `website/content/en/preview/reference/instance-types.md`
  and `v1.0` beside it for p2, p3 and g3 (labels `instance-gpu-name`, `-memory`, `-count`)
* Azure: kaito-project/kaito 056b8280 `pkg/sku/azure_sku_handler.go` and
  `arc_sku_handker.go` (model, memory, number);
  NC_v3, NC_T4_v3 and ND40rs_v2 by Microsoft's page of each series. PCIe or SXM by the series.
* Google: "GPU machine types" of Compute Engine's documentation; AI-Hypercomputer/xpk
  `src/xpk/core/system_characteristics.py`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """The cards of one machine."""

    card: str
    """Catalog name."""
    count: int


_TABLE: Mapping[str, Mapping[int, str]] = {
    "k80": {1: "p2.xlarge", 8: "p2.8xlarge", 16: "p2.16xlarge"},
    "m60": {1: "g3s.xlarge g3.4xlarge", 2: "g3.8xlarge", 4: "g3.16xlarge"},
    "v100-sxm2-16gb": {1: "p3.2xlarge", 4: "p3.8xlarge", 8: "p3.16xlarge"},
    "v100-sxm2-32gb": {8: "p3dn.24xlarge Standard_ND40rs_v2"},
    "v100-pcie-16gb": {
        1: "Standard_NC6s_v3",
        2: "Standard_NC12s_v3",
        4: "Standard_NC24s_v3 Standard_NC24rs_v3",
    },
    "t4": {
        1: """
            g4dn.xlarge g4dn.2xlarge g4dn.4xlarge g4dn.8xlarge g4dn.16xlarge
            Standard_NC4as_T4_v3 Standard_NC8as_T4_v3 Standard_NC16as_T4_v3
        """,
        4: "g4dn.12xlarge Standard_NC64as_T4_v3",
        8: "g4dn.metal",
    },
    "a10g": {
        1: "g5.xlarge g5.2xlarge g5.4xlarge g5.8xlarge g5.16xlarge",
        4: "g5.12xlarge g5.24xlarge",
        8: "g5.48xlarge",
    },
    "a2": {
        1: "Standard_NC4_A2 Standard_NC8_A2",
        2: "Standard_NC16_A2 Standard_NC32_A2",
    },
    "a16": {
        1: "Standard_NC4_A16 Standard_NC8_A16",
        2: "Standard_NC16_A16 Standard_NC32_A16",
    },
    "a10": {1: "Standard_NV36ads_A10_v5", 2: "Standard_NV72ads_A10_v5"},
    "l4": {
        1: """
            g6.xlarge g6.2xlarge g6.4xlarge g6.8xlarge g6.16xlarge gr6.4xlarge gr6.8xlarge
            g2-standard-4 g2-standard-8 g2-standard-12 g2-standard-16 g2-standard-32
        """,
        2: "g2-standard-24",
        4: "g6.12xlarge g6.24xlarge g2-standard-48",
        8: "g6.48xlarge g2-standard-96",
    },
    "l40s": {
        1: "g6e.xlarge g6e.2xlarge g6e.4xlarge g6e.8xlarge g6e.16xlarge",
        4: "g6e.12xlarge g6e.24xlarge",
        8: "g6e.48xlarge",
    },
    "rtx-pro-6000-blackwell": {
        1: "g7e.2xlarge g7e.4xlarge g7e.8xlarge g4-standard-48",
        2: "g7e.12xlarge g4-standard-96",
        4: "g7e.24xlarge g4-standard-192",
        8: "g7e.48xlarge g4-standard-384",
    },
    "a100-sxm4-40gb": {
        1: "a2-highgpu-1g",
        2: "a2-highgpu-2g",
        4: "a2-highgpu-4g",
        8: "p4d.24xlarge Standard_ND96asr_A100_v4 a2-highgpu-8g",
        16: "a2-megagpu-16g",
    },
    "a100-sxm4-80gb": {
        1: "a2-ultragpu-1g",
        2: "a2-ultragpu-2g",
        4: "a2-ultragpu-4g",
        8: "p4de.24xlarge Standard_ND96amsr_A100_v4 a2-ultragpu-8g",
    },
    "a100-pcie-80gb": {
        1: "Standard_NC24ads_A100_v4",
        2: "Standard_NC48ads_A100_v4",
        4: "Standard_NC96ads_A100_v4",
    },
    "h100-sxm5-80gb": {
        1: "p5.4xlarge a3-highgpu-1g",
        2: "a3-highgpu-2g",
        4: "a3-highgpu-4g",
        8: "p5.48xlarge Standard_ND96isr_H100_v5 a3-highgpu-8g a3-megagpu-8g a3-edgegpu-8g",
    },
    "h100-nvl-94gb": {
        1: "Standard_NC40ads_H100_v5 Standard_NCC40ads_H100_v5",
        2: "Standard_NC80adis_H100_v5",
    },
    "h200": {8: "p5e.48xlarge p5en.48xlarge Standard_ND96isr_H200_v5 a3-ultragpu-8g"},
    "b200": {8: "p6-b200.48xlarge a4-highgpu-8g"},
    "gb200": {4: "a4x-highgpu-4g"},
}


def _rows() -> Iterator[tuple[str, Instance]]:
    for card, by_count in _TABLE.items():
        for count, names in by_count.items():
            for name in names.split():
                yield name.lower(), Instance(card=card, count=count)


_INSTANCES = dict(_rows())


def instance_of(labels: Mapping[str, str]) -> tuple[str, Instance] | None:
    """Return the machine's type and its cards; None if no table has it."""
    for key in TYPE_LABELS:
        name = labels.get(key, "")
        # Google adds what disks it has: `a4x-highgpu-4g-nolssd`, `g2-standard-4-lssd`.
        plain = name.lower().removesuffix("-nolssd").removesuffix("-lssd")
        if plain in _INSTANCES:
            return name, _INSTANCES[plain]
    return None
