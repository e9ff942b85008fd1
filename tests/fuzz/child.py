"""The process that one target is fuzzed in: libFuzzer, and our code instrumented.

    python -m tests.fuzz.child MODULE TARGET --inputs N --seed N --folder DIR --found DIR

Exceptions and slow inputs are kept and the run goes on; libFuzzer ends it at a hang and at too much
memory, and leaves the input too. `DIR/report.json` is written again at every record that is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import json
import resource
import sys
import time
import traceback
from pathlib import Path

from tests.fuzz.stretching import WORDS, cut_after, is_square, pairs
from tests.fuzz.target import Target

MAX_FINDINGS = 20
"""Different ones (by the place of the exception) that are kept of one target."""
HANG_FACTOR = 20
"""After how many times its limit an input is cut."""
TRIES = 3
"""How often an input must take out of proportion: a processor that is shared does so once."""
OUR_CODE = ("/admission/", "/estimator/")


class Watched:
    """A target's `run` with a stop-watch, and a memory of what went wrong."""

    def __init__(self, target: Target, *, report: Path, found: Path) -> None:
        self._target, self._report, self._found = target, report, found
        self._places: set[str] = set()
        self._slowest, self._slowest_bytes, self._mebibytes = 0.0, 0, 0
        self._findings: list[dict[str, str]] = []
        self.base = _peak_mebibytes()

    def __call__(self, data: bytes) -> None:
        """Run one input; what it raises is kept, not raised."""
        self._timed(data)

    def stretched(self, short: bytes, long: bytes) -> None:
        """Run two inputs of one word; the longer is kept if it is out of proportion each time."""
        for _ in range(TRIES):
            first, second = self._cut(short), self._cut(long)
            if not is_square(first, second):
                return
        text = f"{first:.2f} s of CPU, and {second:.2f} s for four times the length"
        self._keep(long, place=f"square {long[:40]!r}", text=text)

    def _cut(self, data: bytes) -> float:
        gc.disable()  # a collection takes as long as a short input, and comes with a long one
        try:
            with cut_after(self._target.seconds * HANG_FACTOR):  # as libFuzzer does with its own
                return self._timed(data)
        finally:
            gc.enable()

    def _timed(self, data: bytes) -> float:
        started = time.process_time()
        try:
            self._target.run(data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._keep(data, place=_place(error), text="".join(traceback.format_exception(error)))
        seconds = time.process_time() - started
        self._measure(data, seconds=seconds)
        return seconds

    def _measure(self, data: bytes, *, seconds: float) -> None:
        if seconds > self._target.seconds:
            self._keep(data, place="slow", text=f"took {seconds:.2f} s of CPU")
        grown = _peak_mebibytes() - self.base
        if seconds > self._slowest or grown > self._mebibytes:
            if seconds > self._slowest:
                self._slowest, self._slowest_bytes = seconds, len(data)
            self._mebibytes = max(grown, self._mebibytes)
            self.write()

    def _keep(self, data: bytes, *, place: str, text: str) -> None:
        if place in self._places or len(self._places) >= MAX_FINDINGS:
            return
        self._places.add(place)
        self._found.mkdir(parents=True, exist_ok=True)
        path = self._found / hashlib.sha256(data).hexdigest()[:16]
        path.write_bytes(data)
        self._findings.append({"input": path.name, "place": place, "text": text[-6000:]})
        self.write()

    def write(self) -> None:
        """Write what is known by now."""
        record = {
            "slowest": self._slowest,
            "slowest_bytes": self._slowest_bytes,
            "base": self.base,
            "mebibytes": self._mebibytes,
            "findings": self._findings,
        }
        self._report.write_text(json.dumps(record))


def _peak_mebibytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _place(error: BaseException) -> str:
    """Return the kind of *error* and the last line of ours that it came through."""
    last = "?"
    for frame in traceback.extract_tb(error.__traceback__):
        if any(room in frame.filename for room in OUR_CODE) or last == "?":
            last = f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}"
    if isinstance(error, AssertionError):
        last = f"{last} {str(error)[:60]}"
    return f"{type(error).__name__} at {last}"


def _quoted(word: bytes) -> str:
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"'


def main() -> None:
    """Fuzz one target; never returns (libFuzzer ends the process)."""
    import atheris

    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("target")
    parser.add_argument("--inputs", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--found", type=Path, required=True)
    asked = parser.parse_args()
    with atheris.instrument_imports(include=["admission", "estimator"]):
        from tests.fuzz.table import targets

        target = targets((asked.module,))[asked.target]
        seeds = list(target.seeds())
        for seed in seeds[:50]:  # imports that wait for their first use are instrumented as well
            with contextlib.suppress(Exception):  # it is given to the target again, and kept then
                target.run(seed)
    corpus = asked.folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    words = asked.folder / "words.dict"
    words.write_text("\n".join(_quoted(word) for word in target.dictionary) + "\n")
    gc.collect()
    watched = Watched(target, report=asked.folder / "report.json", found=asked.found)
    watched.write()
    for short, long in pairs(target.begins, (*WORDS, *target.dictionary)):
        watched.stretched(short, long)
    atheris.Setup(
        [
            sys.argv[0],
            f"-runs={asked.inputs}",
            f"-seed={asked.seed}",
            f"-max_total_time={asked.seconds}",
            f"-timeout={int(target.seconds * HANG_FACTOR)}",
            f"-rss_limit_mb={watched.base + target.mebibytes}",
            f"-max_len={target.max_bytes}",
            f"-dict={words}",
            f"-artifact_prefix={asked.folder}/",
            "-print_final_stats=1",
            "-verbosity=1",
            str(corpus),
        ],
        watched,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
