"""Which allocator a trace's framework keeps its memory with, set up as the job does.

AllocatorKind, Runtime, version -> AllocatorPolicy, unknowns
"""

from __future__ import annotations

from estimator.allocators.mxnet_pool import pool_policy
from estimator.allocators.protocol import AllocatorPolicy
from estimator.allocators.pytorch import PyTorchPolicy
from estimator.allocators.settings import Version, caching_settings
from estimator.allocators.tensorflow import bfc_policy
from estimator.allocators.xla_client import xla_client_policy
from estimator.errors import UnsupportedJobError
from estimator.notes import Unknown, UnknownCode
from estimator.spec.training import Runtime
from estimator.trace import AllocatorKind


def policy_of(
    kind: AllocatorKind,
    runtime: Runtime,
    *,
    version: Version,
    capability: tuple[int, int] = (8, 0),
) -> tuple[AllocatorPolicy, tuple[Unknown, ...]]:
    """Return the policy of a job's *runtime*, and what of its settings is not modelled.

    *version* is the framework's, *capability* the card's.

    Raises:
        UnsupportedJobError: if allocators of *kind* are not modelled.
    """
    match kind:
        case AllocatorKind.CACHING:
            settings, unknowns = caching_settings(runtime.env, version=version)
            return PyTorchPolicy(settings=settings), unknowns
        case AllocatorKind.BFC:
            return bfc_policy(runtime, capability=capability)
        case AllocatorKind.POOL:
            return pool_policy(runtime.env, version=version)
        case AllocatorKind.XLA_CLIENT:
            return xla_client_policy(runtime.env), ()
        case _:
            raise UnsupportedJobError(
                f"runtime: the allocator '{kind.value}' is not modelled",
                code=UnknownCode.ALLOCATOR,
                path="runtime",
            )
