"""What a run of a script takes for granted, in words people can act on.

reads, shortened loops, wrappers -> the notebook's assumptions and unknowns
"""

from __future__ import annotations

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.script.blame import Source
from estimator.frontends.pytorch.script.recorder import ScriptRecorder
from estimator.frontends.pytorch.script.watch import Watch
from estimator.notes import AssumptionCode, UnknownCode

MOST_PLACES = 5
"""Places of reads that are listed."""


class Noted:
    """Collects what is not as it would be on a card."""

    def __init__(self, notebook: Notebook, source: Source) -> None:
        self.notebook = notebook
        self.source = source
        self.reads: dict[str, None] = {}
        """Where numbers were read that nobody knows."""

    def was_read(self, what: str) -> None:
        """Note that a number of the card was read."""
        self.reads[self.source.here() or what] = None

    def asked(self, what: str) -> None:
        """Note that the script asked for what depends on the card."""
        self._assume("gpu", "asked", f"{what} at {self.source.here() or 'a library'}: of this card")

    def note(self, what: str, text: str) -> None:
        """Note something that is done in another way."""
        if what.startswith("torch."):
            place = self.source.here()
            self.notebook.unknown(
                UnknownCode.FEATURE, "script", f"{what} at {place or 'a library'}: {text}"
            )
        else:
            self._assume(f"script.{what}", "left out", text)

    def evaluation_cut(self) -> None:
        """Note that an evaluation was not run to its end."""
        self._assume(
            "script.evaluation",
            "cut",
            "ended after two batches; outputs it collects on the card are not in the figure",
        )

    def cut_by_time(self, seconds: float, steps: int) -> None:
        """Note that the time was over first."""
        self.notebook.unknown(
            UnknownCode.FEATURE,
            "script",
            f"cut after {seconds:g} s and {steps} steps: what comes later is not known",
        )

    def conclude(self, watch: Watch, recorder: ScriptRecorder) -> None:
        """Write down what is known only at the end."""
        self._assume(
            "script.steps",
            str(watch.steps or watch.num_calls),
            "traced; later steps are taken to be like them",
        )
        places = list(self.reads)
        if places:
            more = "" if len(places) <= MOST_PLACES else f" and {len(places) - MOST_PLACES} more"
            self._assume(
                "script.values",
                "0",
                f"numbers read from the card at {', '.join(places[:MOST_PLACES])}{more}",
            )
        if watch.optimizers and watch.num_backward and watch.steps < 2:
            self.notebook.unknown(
                UnknownCode.OPTIMIZER,
                "script",
                f"{watch.steps} steps of the optimizer were seen: a later backward pass with its "
                "state was not",
            )
        for name in sorted(recorder.bounded):
            self.notebook.unknown(
                UnknownCode.OPERATOR,
                "script",
                f"the size of '{name}' results depends on values; taken at the largest",
            )

    def _assume(self, path: str, value: str, reason: str) -> None:
        self.notebook.assume(AssumptionCode.DEFAULT, path, value, reason)
