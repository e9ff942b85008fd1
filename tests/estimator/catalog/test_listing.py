"""What `vramgate gpus` has to show."""

from __future__ import annotations

from estimator.catalog import GpuRow, all_gpus, gpu_rows
from estimator.units import MIB


def test_every_card_has_a_row() -> None:
    """Rows come in the order of the catalog."""
    assert [row.name for row in gpu_rows()] == [gpu.name for gpu in all_gpus()]


def test_a_row_shows_sizes_rounded_down_and_where_they_come_from() -> None:
    """40,960 - 625 MiB are 39.389 GiB: 39.3 in text."""
    row = next(row for row in gpu_rows() if row.name == "a100-sxm4-40gb")

    assert row == GpuRow(
        name="a100-sxm4-40gb",
        product="NVIDIA-A100-SXM4-40GB",
        architecture="ampere",
        compute_capability="8.0",
        total_bytes=40960 * MIB,
        total="40.0 GiB",
        usable_bytes=(40960 - 625) * MIB,
        usable="39.3 GiB",
        mig_profiles=("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"),
        source=row.source,
        is_assumed=False,
    )
    assert row.source.startswith("total published: ")
    assert "; reservation derived: " in row.source
