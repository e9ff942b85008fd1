"""Workspaces of convolutions: cuDNN's own answers where there are any, else a bound.

    Kernel, Device -> Scratch

One group of blocks a product: what PyTorch copies itself, then the plan's workspace. The first
call of a shape under `cudnn.benchmark` also takes what the search takes.
"""

from __future__ import annotations

from collections.abc import Callable

from estimator.cudnn import Question
from estimator.device import Device
from estimator.kernels.choosing import Choice, Switches, falling, halves
from estimator.kernels.dispatch import (
    converted,
    convolution_of,
    is_native,
    questions_of,
    switches_of,
)
from estimator.kernels.layout_bound import bounded_choice
from estimator.kernels.redzones import is_searched_so, search_of
from estimator.kernels.scratch import NONE, Block, Group, Scratch, tensor_bytes
from estimator.notes import Assumption, AssumptionCode, Unknown, UnknownCode
from estimator.trace import Kernel

Chooser = Callable[[Question, Switches, Device], Choice]
"""Returns what PyTorch makes of one question."""


def bounded_note(why: str | None = None) -> Assumption:
    """Return that cuDNN was not asked, and *why* if that is known."""
    because = f" ({why})" if why else ""
    return Assumption(
        code=AssumptionCode.KERNEL_WORKSPACE,
        path="runtime.cudnn",
        value="bounded by mechanism",
        reason=f"cuDNN was not asked{because}: each convolution is charged a layout copy, "
        "between nothing (low end) and that",
    )


BOUNDED = bounded_note()


class ConvolutionScratch:
    """A `WorkspaceSource` over any way of answering questions."""

    def __init__(
        self, choose: Chooser = bounded_choice, assumption: Assumption | None = BOUNDED
    ) -> None:
        self._choose = choose
        self._assumption = assumption

    @property
    def is_bounded(self) -> bool:
        """Return whether nobody gave answers: every convolution is bounded by mechanism."""
        return self._choose is bounded_choice

    def scratch(self, kernel: Kernel, device: Device) -> Scratch | Unknown:
        """Return the scratch of a convolution, with what it takes if memory is short.

        Operands are input, weight, and output or its gradient.
        """
        convolution = convolution_of(kernel)
        if convolution is None:
            return Unknown(
                code=UnknownCode.KERNEL,
                path=kernel.operator,
                reason="its input, weight and output are not all known",
            )
        if is_native(convolution):
            return NONE
        made = tuple(Block(nbytes=tensor_bytes(each)) for each in converted(convolution))
        switches = switches_of(kernel)
        questions = questions_of(convolution)
        choices = [self._choose(question, switches, device) for question in questions]
        groups = [_running(choice, made) for choice in choices]
        search: list[Group] = []
        if switches.benchmark and is_searched_so(kernel):
            search = [
                search_of(question, choice, is_bounded=self.is_bounded)
                for question, choice in zip(questions, choices, strict=True)
            ]
        elif switches.benchmark:
            search = [_searching(choice, made) for choice in choices]
        return Scratch(
            groups=tuple(group for group in groups if group),
            search=tuple(group for group in search if group),
            assumption=self._assumption,
        )


def _running(choice: Choice, made: Group) -> Group:
    """Return what a call takes: the copies PyTorch made, and the plan's workspace."""
    if choice.most == 0:
        return made
    block = Block(
        nbytes=choice.preferred,
        choices=falling(choice.alternatives, choice.most),
        least=choice.least,
        most=choice.most,
    )
    return (*made, block)


def _searching(choice: Choice, made: Group) -> Group:
    """Return what a search may take: the largest workspace of all, or half of it, and so on."""
    if choice.largest == 0:
        return made
    block = Block(nbytes=0, choices=halves(choice.largest), most=choice.largest)
    return (*made, block)
