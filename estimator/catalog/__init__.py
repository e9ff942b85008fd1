"""What is known beforehand: cards and model architectures.

Tables in data/, each figure with its source. Data files of this package are the only input.
"""

from __future__ import annotations

from estimator.catalog.devices import device_for_product, generic_device, resolve_device
from estimator.catalog.gpu import Gpu, MigProfile, Origin, Source
from estimator.catalog.gpus import all_gpus, gpu_named, recognise
from estimator.catalog.listing import GpuRow, gpu_rows
from estimator.catalog.models import KnownModel, known_model, known_model_ids
from estimator.catalog.products import ProductLabel, product_label

__all__ = [
    "Gpu",
    "GpuRow",
    "KnownModel",
    "MigProfile",
    "Origin",
    "ProductLabel",
    "Source",
    "all_gpus",
    "device_for_product",
    "generic_device",
    "gpu_named",
    "gpu_rows",
    "known_model",
    "known_model_ids",
    "product_label",
    "recognise",
    "resolve_device",
]
