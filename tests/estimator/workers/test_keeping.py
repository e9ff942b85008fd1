"""What forks traced is kept by job, within bounds."""

from __future__ import annotations

from estimator.workers.keeping import MOST_CONTENTS, MOST_JOB_BYTES, Keeping


def test_what_is_kept_of_a_job_is_that_job_s() -> None:
    """Equal contents are kept once; another job has none."""
    keeping = Keeping()
    keeping.add("a", [b"one", b"two"])
    keeping.add("a", [b"two", b"three"])

    assert keeping.of("a") == (b"one", b"two", b"three")
    assert keeping.of("b") == ()
    assert keeping.nbytes == len(b"one" + b"two" + b"three")


def test_the_job_that_was_not_used_for_longest_is_forgotten() -> None:
    """Reading counts as use."""
    keeping = Keeping(most_bytes=10)
    keeping.add("a", [b"aaaa"])
    keeping.add("b", [b"bbbb"])
    keeping.of("a")

    keeping.add("c", [b"cccc"])

    assert keeping.of("b") == ()
    assert (keeping.of("a"), keeping.of("c")) == ((b"aaaa",), (b"cccc",))
    assert keeping.nbytes == 8


def test_one_job_keeps_only_so_much() -> None:
    """Neither many contents nor large ones of one job push the others out."""
    keeping = Keeping()
    keeping.add("other", [b"x"])

    keeping.add("many", [bytes([n]) for n in range(MOST_CONTENTS + 9)])
    keeping.add("large", [bytes(MOST_JOB_BYTES), b"fits not", bytes(MOST_JOB_BYTES + 1)])
    keeping.add("none", [])

    assert keeping.of("other") == (b"x",)
    assert len(keeping.of("many")) == MOST_CONTENTS
    assert keeping.of("large") == (bytes(MOST_JOB_BYTES),)
    assert keeping.nbytes == 1 + MOST_CONTENTS + MOST_JOB_BYTES
