"""docs/reserved.md.

    jobs, accounts -> Markdown

The same accounts give the same text.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from string import Template

from estimator.report.markdown import markdown, table
from estimator.report.records import JobAccount
from estimator.report.sections import mebibytes, sections_of
from tests.bench.accuracy.cases import Case
from tests.bench.accuracy.scoring import counts_as_used
from tests.bench.accuracy.tables import percent
from tests.bench.reserved.jobs import Job

TEMPLATE = Path(__file__).with_name("page.md")
TOP = 30
FITTED = (
    "A rule of the estimator was chosen by this reading among others ([accuracy.md](accuracy.md)): "
    "that they agree is no independent test."
)
HELD_OUT = "No rule or constant of the estimator was chosen by this reading."


def page(found: Iterable[tuple[Job, JobAccount]]) -> str:
    """Return the whole page: the sentences of page.md, then each job with its account."""
    jobs = "\n\n".join(_job(job, account) for job, account in found)
    return Template(TEMPLATE.read_text("utf-8")).substitute(jobs=jobs)


def _job(job: Job, account: JobAccount) -> str:
    blocks = [
        f"## {job.title}",
        "\n".join((*job.sentences, *_assumed(account))),
    ]
    first, *others = sections_of(account, top=TOP)
    blocks.append(markdown([first], level=3))
    if job.case is not None:
        blocks.append(reading(job.case, account, is_fitted=job.is_fitted))
    blocks.append(markdown(others, level=3))
    return "\n\n".join(blocks)


def _assumed(account: JobAccount) -> list[str]:
    """Return what the sizes of the workspaces rest on."""
    notes = (note for note in account.assumptions if note.path == "runtime.cudnn")
    return [f"Workspaces: {note.reason}." for note in notes]


def reading(case: Case, account: JobAccount, *, is_fitted: bool) -> str:
    """Return the public reading of *case* beside the account.

    A reading is of the card or the process: what is beside the allocator is subtracted, by the
    tables an estimate uses, to leave what the allocator held.
    """
    reservation = account.device.reservation_bytes if counts_as_used(case) else 0
    beside = account.usage.device_bytes - account.usage.reserved_bytes
    held = case.reading.nbytes - reservation - beside
    error = account.usage.reserved_bytes / held - 1
    rows = (
        (f"read ({case.reading.metric}, {case.reading.view})", mebibytes(case.reading.nbytes)),
        ("less the driver's reservation", mebibytes(reservation)),
        ("less context, libraries and others", mebibytes(beside)),
        ("leaves reserved", mebibytes(held)),
        ("reserved by this account", mebibytes(account.usage.reserved_bytes)),
        ("account against reading", percent(error, signed=True)),
    )
    return "\n\n".join(
        (
            "### Beside the public reading",
            f"Source: {case.source}.\n"
            "What is beside the allocator comes from tables of their own, so the comparison is "
            f"no sharper than they are.\n{FITTED if is_fitted else HELD_OUT}",
            table(("", "MiB"), rows, num_words=1),
        )
    )
