"""How many NVIDIA GPUs an instance type has.

name of the type -> GPUs, or None where no table has it
Source: kaito-project/kaito 056b8280, `pkg/sku/azure_sku_handler.go`, `aws_sku_handler.go` and
`arc_sku_handker.go`; types with older cards from ed546f0c (v0.3.0), the same files.
"""

from __future__ import annotations

from collections.abc import Mapping

_BY_NUMBER: Mapping[int, str] = {
    1: """
        Standard_NC6s_v3 Standard_NC4as_T4_v3 Standard_NC8as_T4_v3 Standard_NC16as_T4_v3
        Standard_NV36ads_A10_v5 Standard_NC24ads_A100_v4 Standard_NC40ads_H100_v5
        Standard_NCC40ads_H100_v5 Standard_NC4_A2 Standard_NC8_A2 Standard_NC4_A16 Standard_NC8_A16
        g4dn.xlarge g4dn.2xlarge g4dn.4xlarge g4dn.8xlarge g4dn.16xlarge
        g5.xlarge g5.2xlarge g5.4xlarge g5.8xlarge g5.16xlarge
        g6.xlarge g6.2xlarge g6.4xlarge g6.8xlarge g6.16xlarge gr6.4xlarge gr6.8xlarge
        p3.2xlarge
    """,
    2: """
        Standard_NC12s_v3 Standard_NV72ads_A10_v5 Standard_NC48ads_A100_v4
        Standard_NC80adis_H100_v5 Standard_NC16_A2 Standard_NC32_A2 Standard_NC16_A16
        Standard_NC32_A16
    """,
    4: """
        Standard_NC24s_v3 Standard_NC24rs_v3 Standard_NC64as_T4_v3 Standard_NC96ads_A100_v4
        g4dn.12xlarge g5.12xlarge g5.24xlarge g6.12xlarge g6.24xlarge p3.8xlarge
    """,
    8: """
        Standard_ND96asr_A100_v4 Standard_ND96amsr_A100_v4
        Standard_ND96isr_H100_v5 Standard_ND96isr_H200_v5 g4dn.metal g5.48xlarge g6.48xlarge
        p3.16xlarge p3dn.24xlarge p4d.24xlarge p4de.24xlarge p5.48xlarge p5e.48xlarge p5en.48xlarge
    """,
}
_GPUS = {name.lower(): number for number, names in _BY_NUMBER.items() for name in names.split()}


def gpus_of(instance: str) -> int | None:
    """Return the GPUs of *instance*, in any case; None if it is not known."""
    return _GPUS.get(instance.strip().lower())
