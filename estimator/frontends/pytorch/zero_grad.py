"""When a training loop clears its gradients, and whether their memory goes with them.

JobSpec, version -> ZeroGrad
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.versions import Version
from estimator.notes import AssumptionCode
from estimator.spec import JobSpec
from estimator.spec.vocabulary import ZeroGradPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroGrad:
    """When gradients go, and whether their memory goes with them."""

    after_step: bool
    set_to_none: bool


def zero_grad_of(spec: JobSpec, notebook: Notebook, version: Version) -> ZeroGrad:
    """Return when and how gradients are cleared; absent: as that version does."""
    given = spec.training.zero_grad
    set_to_none = version >= (2, 0)
    if given is None:
        notebook.assume(
            AssumptionCode.DEFAULT,
            "training.zeroGrad",
            f"before-forward, setToNone {str(set_to_none).lower()}",
            f"absent: the default of torch {version[0]}.{version[1]}, at the head of the loop",
        )
        return ZeroGrad(after_step=False, set_to_none=set_to_none)
    if given.set_to_none is not None:
        set_to_none = given.set_to_none
    after = given.position is ZeroGradPosition.AFTER_STEP
    return ZeroGrad(after_step=after, set_to_none=set_to_none)
