"""From what a user or a node says of a card to a Device.

    `--gpu` text | node labels -> Device

Whole cards have usable memory as budget, slices their own. Capacities round down.
Shares (MPS, HAMi) are no matter of a card: whoever reads them lowers the budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimator.catalog.capacity import quoted, read_capacity
from estimator.catalog.gpu import Gpu, MigProfile
from estimator.catalog.gpus import all_gpus, gpu_named, recognise
from estimator.catalog.products import product_label
from estimator.catalog.reservation import assumed_reservation, node_reservation
from estimator.deferred import Deferred
from estimator.device import ComputeCapability, Device
from estimator.errors import Problem, SpecError
from estimator.units import MIB

if TYPE_CHECKING:
    import difflib
else:
    difflib = Deferred("difflib")

GENERIC_COMPUTE: ComputeCapability = (8, 0)
"""What an unnamed card is taken for: every feature of mixed precision, none of Hopper's."""


def resolve_device(text: str) -> Device:
    """Return the device *text* names.

    Accepted: a catalog name, a product label, either with `/<MIG profile>`, a label that ends in
    `-MIG-<profile>`, or `memory=23028MiB,compute=8.6[,driver=…]`.

    Raises:
        SpecError: at path `gpu`, with the closest names as hint.
    """
    if "=" in text:
        return _described(text)
    card, slash, profile_name = text.partition("/")
    gpu = gpu_named(card) or recognise(card)
    if gpu is None:
        raise _unknown(text)
    label = product_label(card)
    if label.profile is not None and not slash:
        profile_name = label.profile
    if not slash and not profile_name:
        return whole_card(gpu)
    return slice_of(gpu, profile_name.strip())


def generic_device() -> Device:
    """Return the card of a job that names none: no capacity, so no verdict."""
    return Device(
        name="generic",
        total_bytes=None,
        reservation_bytes=0,
        budget_bytes=None,
        compute_capability=GENERIC_COMPUTE,
    )


def device_for_product(
    product: str,
    *,
    total_mib: int,
    compute_capability: ComputeCapability | None = None,
    driver: str | None = None,
) -> Device:
    """Return the device of a node that reports *product* with *total_mib*.

    The node's total wins over the catalog's. *total_mib* of a `-MIG-` label is the slice's.

    Raises:
        SpecError: if the label says `-MIG-INVALID` or there is no memory.
    """
    label = product_label(product)
    if label.is_invalid or total_mib <= 0:
        message = f"{quoted(product)} with {total_mib} MiB offers no memory"
        raise SpecError([Problem(path="gpu", message=message)])
    gpu = recognise(product, total_mib=total_mib)
    compute = compute_capability or (gpu.compute_capability if gpu else GENERIC_COMPUTE)
    total = total_mib * MIB
    profile = gpu.profile(label.profile) if gpu and label.profile else None
    if label.profile is not None:
        reservation = 0
        multiprocessors = profile.multiprocessors if profile else None
    elif gpu is not None:
        reservation = node_reservation(gpu, total_mib=total_mib, driver=driver)
        multiprocessors = gpu.multiprocessors
    else:
        rule = assumed_reservation(total, compute_capability=compute, driver=driver)
        reservation = min(rule, total)
        multiprocessors = None
    return Device(
        name=product,
        total_bytes=total,
        reservation_bytes=reservation,
        budget_bytes=total - reservation,
        compute_capability=compute,
        driver=driver,
        multiprocessors=multiprocessors,
        catalog_name=gpu.name if gpu else None,
    )


def whole_card(gpu: Gpu) -> Device:
    """Return the whole of a card of the catalog."""
    return Device(
        name=gpu.name,
        total_bytes=gpu.total_bytes,
        reservation_bytes=gpu.reservation_mib * MIB,
        budget_bytes=gpu.usable_mib * MIB,
        compute_capability=gpu.compute_capability,
        multiprocessors=gpu.multiprocessors,
        catalog_name=gpu.name,
    )


def slice_of(gpu: Gpu, profile_name: str) -> Device:
    """Return a MIG slice of a card of the catalog.

    Raises:
        SpecError: if the card has no such profile.
    """
    profile = gpu.profile(profile_name)
    if profile is None:
        raise _no_profile(gpu, profile_name)
    return _slice(gpu, profile)


def _slice(gpu: Gpu, profile: MigProfile) -> Device:
    return Device(
        name=f"{gpu.name}/{profile.name}",
        total_bytes=profile.memory_mib * MIB,
        reservation_bytes=0,
        budget_bytes=profile.memory_mib * MIB,
        compute_capability=gpu.compute_capability,
        multiprocessors=profile.multiprocessors,
        catalog_name=gpu.name,
    )


def _described(text: str) -> Device:
    capacity = read_capacity(text, path="gpu")
    reservation = assumed_reservation(
        capacity.total_bytes,
        compute_capability=capacity.compute_capability,
        driver=capacity.driver,
    )
    return Device(
        name="".join(text.split()),
        total_bytes=capacity.total_bytes,
        reservation_bytes=reservation,
        budget_bytes=capacity.total_bytes - reservation,
        compute_capability=capacity.compute_capability,
        driver=capacity.driver,
    )


def _unknown(text: str) -> SpecError:
    wanted = text.partition("/")[0].strip()
    names = {gpu.name: gpu.name for gpu in all_gpus()}
    labels = {gpu.product.casefold(): gpu.product for gpu in all_gpus()}
    known = names | labels
    close = difflib.get_close_matches(wanted.casefold(), known, n=3, cutoff=0.6)
    started = [name for name in names if wanted and name.startswith(wanted.casefold())]
    found = list(dict.fromkeys([*started[:4], *(known[name] for name in close)]))
    hint = f"did you mean {' or '.join(found)}? " if found else ""
    message = (
        f"{quoted(text)} is not a known card, accepted are a catalog name, a product label, "
        "a MIG profile on one (card/1g.10gb), or memory=23028MiB,compute=8.6"
    )
    problem = Problem(path="gpu", message=message)
    return SpecError([problem], hint=f"{hint}`vramgate gpus` lists the catalog")


def _no_profile(gpu: Gpu, profile_name: str) -> SpecError:
    if not gpu.mig:
        message = f"{quoted(profile_name)}: {gpu.name} has no MIG profiles"
    else:
        names = ", ".join(profile.name for profile in gpu.mig)
        message = f"{quoted(profile_name)} is no MIG profile of {gpu.name}, accepted are {names}"
    return SpecError([Problem(path="gpu", message=message)])
