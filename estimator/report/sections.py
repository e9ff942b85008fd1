"""An account in words and tables, for a terminal or a page alike.

    JobAccount -> Sections

Sizes are MiB (2^20), rounded to a tenth. Pure: the same account gives the same text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from estimator.allocators.ledger import Cause, Dealing
from estimator.report.records import Account, JobAccount, Picture, Row, Segment
from estimator.result import Moment
from estimator.trace import FIRST_PRIVATE_POOL
from estimator.units import GIB, MIB

NONE = "–"


MEANINGS: Mapping[str, str] = {
    Cause.MAX_SPLIT: "a free block was large enough, and max_split_size_mb forbade it",
    Cause.WAITING: "a dead block was large enough, and a second stream may still use it",
    Cause.OTHER_STREAM: "a free block was large enough, and belongs to another stream or graph",
    Cause.OTHER_POOL: "a free block was large enough, and belongs to the other pool",
    Cause.NOTHING_CACHED: "its pool had no free block",
    Cause.SCATTERED: "the free blocks of its pool were enough together, none of them alone",
    Cause.TOO_SMALL: "the free blocks of its pool were too small even together",
    Dealing.RETRY: "given back because the driver had no more, to ask again",
    Dealing.OVERSIZE: "given back above max_split_size_mb, to ask again",
    Dealing.GARBAGE: "given back as old (garbage_collection_threshold)",
    Dealing.EMPTY_CACHE: "given back because the job emptied its cache",
}
"""What each reason of a sum means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A title, sentences and a table whose first *num_words* columns are words."""

    title: str
    sentences: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    num_words: int = 1


def sections_of(found: JobAccount, *, top: int) -> tuple[Section, ...]:
    """Return the account in sections, with its *top* largest takings."""
    account = found.account
    return (
        _in_short(found),
        _split(account),
        _phases(account),
        _reasons(account),
        _purposes(account),
        _largest(account, top),
    )


def title_of(found: JobAccount) -> str:
    """Return the job and the card."""
    spec = found.spec
    job = f"{spec['model']['name']}, batch {spec['input']['batchSize']}"
    return f"{job}, {spec['training']['precision']}, {spec['phase']} on {found.device.name}"


def mebibytes(nbytes: int) -> str:
    """Return *nbytes* in MiB with one decimal; what is less than a tenth says so."""
    if 0 < nbytes < MIB // 10:
        return "< 0.1"
    return f"{nbytes / MIB:,.1f}"


def _gib(nbytes: int) -> str:
    return f"{nbytes / GIB:.2f} GiB"


def _in_short(found: JobAccount) -> Section:
    """Return the five sentences to begin with."""
    account = found.account
    taken = [row for row in account.rows if row.bytes > 0]
    sentences = [
        f"The allocator holds {_gib(account.reserved_bytes)} at most; it took them from the driver "
        f"in {len(taken)} takings.",
        f"Most is alive in {_where(account.fullest.at)}: {_gib(account.allocated_bytes)}, "
        f"{_percent(account.allocated_bytes, account.reserved_bytes)} of that.",
        *_heaviest(taken),
    ]
    if back := -sum(row.bytes for row in account.rows if row.bytes < 0):
        sentences.append(f"It gave {_gib(back)} back on the way.")
    if found.limit_bytes is not None:
        sentences.append(f"It could hold {_gib(found.limit_bytes)} at most, and came up to that.")
    beside = found.usage.device_bytes - found.usage.reserved_bytes
    sentences.append(
        f"With {_gib(beside)} beside the allocator (context, libraries, others) the process "
        f"shows {_gib(found.usage.device_bytes)} on the card."
    )
    if not account.completed:
        sentences.append("The run ends out of memory: this is the account until then.")
    sentences.append("Sizes in the tables are MiB (2^20 bytes).")
    return Section(title="In short", sentences=tuple(sentences))


def _heaviest(taken: Sequence[Row]) -> list[str]:
    """Return a sentence on the phase and role that took most."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in taken:
        key = (str(row.at.step), row.at.phase, row.role or NONE, row.cause or NONE)
        groups.setdefault(key, []).append(row)
    if not groups:
        return []
    (step, phase, role, cause), rows = max(groups.items(), key=lambda item: _total(item[1]))
    share = _percent(_total(rows), _total(taken))
    return [f"{share} of what was taken is for {role} in step {step}, {phase}: {MEANINGS[cause]}."]


def _split(account: Account) -> Section:
    """Return what all segments together hold at two moments."""
    pictures = (account.fullest, account.last)
    parts: dict[str, list[int]] = {}
    for index, picture in enumerate(pictures):
        for name, nbytes in _parts(picture).items():
            parts.setdefault(name, [0, 0])[index] = nbytes
    first = account.fullest
    rows = [(name, *map(mebibytes, sizes)) for name, sizes in parts.items() if any(sizes)]
    rows.append(("reserved", *(mebibytes(_total(each.segments)) for each in pictures)))
    return Section(
        title="How reserved splits",
        sentences=(
            f"Most is alive in {_where(first.at)}; "
            f"the last memory is taken in {_where(account.last.at)}.",
            "What is cached is in no tensor: a block that is free, in a segment that was taken "
            "for something else before or is held by a neighbour.",
        ),
        headings=("MiB", "most is alive", "last taking"),
        rows=tuple(rows),
    )


def _parts(picture: Picture) -> dict[str, int]:
    """Return the parts of reserved, live roles first, the largest of them first."""
    live = sorted(picture.live().items(), key=lambda item: (-item[1], item[0]))
    segments = picture.segments
    return {
        **dict(live),
        "lost to rounding": sum(each.rounding_bytes for each in segments),
        "lost to rests that are not split off": sum(each.rest_bytes for each in segments),
        "waiting for a second stream": sum(each.waiting_bytes for each in segments),
        "cached": sum(each.cached_bytes for each in segments),
    }


def _phases(account: Account) -> Section:
    phases: dict[tuple[int, str], list[Row]] = {}
    for row in account.rows:
        phases.setdefault((row.at.step, row.at.phase), []).append(row)
    return Section(
        title="When it was taken",
        sentences=("A step or phase that is not here took nothing and gave nothing back.",),
        headings=("phase", "for", "takings", "taken", "given back", "reserved after"),
        rows=tuple(
            (
                f"step {step}, {phase}" if step else phase,
                _purpose(rows),
                str(sum(row.bytes > 0 for row in rows)),
                mebibytes(sum(row.bytes for row in rows if row.bytes > 0)),
                mebibytes(-sum(row.bytes for row in rows if row.bytes < 0)),
                mebibytes(rows[-1].reserved_bytes),
            )
            for (step, phase), rows in phases.items()
        ),
        num_words=2,
    )


def _purpose(rows: Iterable[Row]) -> str:
    """Return what the roles took, the largest first."""
    roles: dict[str, int] = {}
    for row in rows:
        if row.bytes > 0 and row.role:
            roles[row.role] = roles.get(row.role, 0) + row.bytes
    ranked = sorted(roles.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{role} {mebibytes(nbytes)}" for role, nbytes in ranked) or NONE


def _reasons(account: Account) -> Section:
    reasons: dict[str, list[int]] = {}
    for each in account.sums:
        found = reasons.setdefault(each.reason, [0, 0])
        found[0] += each.count
        found[1] += each.bytes
    ranked = sorted(reasons.items(), key=lambda item: (-item[1][1], item[0]))
    return Section(
        title="Why nothing cached would do",
        headings=("reason", "meaning", "times", "MiB"),
        rows=tuple(
            (reason, MEANINGS[reason], str(count), mebibytes(nbytes))
            for reason, (count, nbytes) in ranked
        ),
        num_words=2,
    )


def _purposes(account: Account) -> Section:
    """Return what became of the segments that each role took, where most is alive."""
    openers = {row.event: row for row in reversed(account.rows) if row.bytes > 0}
    groups: dict[tuple[str, str], list[int]] = {}
    for segment in account.fullest.segments:
        row = openers[segment.event]
        sizes = groups.setdefault((row.role or NONE, row.at.phase), [0] * 5)
        parts = (1, segment.bytes, segment.live_bytes(), segment.lost_bytes())
        for index, part in enumerate((*parts, segment.cached_bytes + segment.waiting_bytes)):
            sizes[index] += part
    ranked = sorted(groups.items(), key=lambda item: (-item[1][1], item[0]))
    return Section(
        title="What the segments hold where most is alive",
        sentences=(
            "By what each segment was taken for; other tensors may live in it by then. "
            "Idle is cached, or waits for a second stream.",
        ),
        headings=("taken for", "in", "segments", "MiB", "live", "lost", "idle"),
        rows=tuple(
            (role, phase, str(sizes[0]), *map(mebibytes, sizes[1:]))
            for (role, phase), sizes in ranked
        ),
        num_words=2,
    )


def _largest(account: Account, top: int) -> Section:
    taken = [row for row in account.rows if row.bytes > 0]
    ranked = sorted(taken, key=lambda row: (-row.bytes, row.event))[:top]
    return Section(
        title=f"The {len(ranked)} largest takings of {len(taken)}",
        headings=(
            *("where", "for", "why nothing cached would do"),
            *("event", "request", "taken", "reserved after"),
        ),
        rows=tuple(
            (
                _where(row.at),
                f"{row.role}{_pool(row)}",
                _why(row),
                str(row.event),
                mebibytes(row.request_bytes),
                mebibytes(row.bytes),
                mebibytes(row.reserved_bytes),
            )
            for row in ranked
        ),
        num_words=3,
    )


def _why(row: Row) -> str:
    """Return the reason of one taking with its figures."""
    cached, largest = mebibytes(row.pool_cached_bytes), mebibytes(row.largest_cached_bytes)
    words: Mapping[str | None, str] = {
        Cause.SCATTERED: f"in pieces: {cached} free, the largest {largest}",
        Cause.TOO_SMALL: f"too small: {cached} free, the largest {largest}",
        Cause.NOTHING_CACHED: "nothing free in its pool",
        Cause.OTHER_POOL: "free in the other pool only",
        Cause.OTHER_STREAM: "free on another stream only",
        Cause.WAITING: "waits for a second stream",
        Cause.MAX_SPLIT: f"{largest} free, not to be split",
    }
    return words[row.cause]


def _pool(row: Row) -> str:
    """Return what is out of the ordinary about the pool: the size class shows in the size."""
    if row.stream >= FIRST_PRIVATE_POOL:
        return f", graph {row.stream - FIRST_PRIVATE_POOL}"
    return f", stream {row.stream}" if row.stream else ""


def _where(at: Moment) -> str:
    """Return a moment in words; loading has no step."""
    place = f"step {at.step}, {at.phase}" if at.step else at.phase
    operator = f", {at.operator}" if at.operator else ""
    return f"{place}{operator}{f' in {at.module}' if at.module else ''}"


def _total(sized: Iterable[Row | Segment]) -> int:
    return sum(each.bytes for each in sized)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else NONE
