"""Which cases a run is about.

every case, groups, ids, limit -> the cases asked for
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.accuracy.cases import Case


def select(
    cases: Sequence[Case],
    *,
    groups: Sequence[str] = (),
    ids: Sequence[str] = (),
    limit: int | None = None,
) -> tuple[Case, ...]:
    """Return the cases of *groups* and those whose id has one of *ids* in it.

    Of more than *limit* as many are kept, evenly spread, so that a few stand for all.
    """
    chosen = [
        case
        for case in cases
        if (not groups or case.group in groups)
        and (not ids or any(part in case.id for part in ids))
    ]
    if limit is None or len(chosen) <= limit:
        return tuple(chosen)
    return tuple(chosen[index * len(chosen) // limit] for index in range(limit))
