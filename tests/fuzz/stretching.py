"""One word again and again: what takes the square of its length to read.

    words, beginnings -> pairs of inputs, one four times as long as the other

Random changes make no input of 64 KiB that is read to its end, and a reader that takes the square
of a length is quick with the short ones that they do make.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

SHORT, LONG = 16 << 10, 64 << 10
WORDS = (
    *(b"a", b"1", b"9", b" ", b"\t", b"\n", b"\r\n", b",", b".", b"-", b"#", b"%", b"*", b"?"),
    *(b"a ", b"a,", b"a.", b"a: ", b"- ", b"\n- a", b"\na: b", b"a:\n ", b"\n---\n", b"&a ", b":1"),
    *(b"[", b"{", b"(", b"[[", b"((", b"{{", b"a[", b"[a]\n", b"[[a]]\na=1\n", b"a.b=1\n", b"|\n "),
    *(
        b"'",
        b'"',
        b'"a",',
        b'{"a":',
        b'"a":1,',
        b"\\",
        b"\\\n",
        b"\\u0000",
        b"\xff",
        b"\xe2\x80\xae",
    ),
    *(
        b"$",
        b"${",
        b"$(",
        b"$((",
        b"`",
        b";",
        b"a;",
        b"a|",
        b"a&&",
        b"<<a\n",
        b">a ",
        b"A+=(x)",
        b"?",
    ),
    *(b"--a ", b"--a=1 ", b"a=b ", b"a=b\n", b"if a; then ", b"f(){ ", b"a) b;; ", b"${a}", b"$a"),
)
_FACTOR = 9
"""Of four times the length: 4 where time is proportional, 16 where it is its square; a processor
that is shared may double the one and not the other."""
_SECONDS = 0.2
"""Of processor; less is nobody's trouble, and too little to be compared."""


def pairs(begins: Iterable[bytes], words: Iterable[bytes] = WORDS) -> Iterator[tuple[bytes, bytes]]:
    """Yield a short input and a long one for each word after each beginning."""
    for begin in begins:
        for word in words:
            yield _of(begin, word, SHORT), _of(begin, word, LONG)


def is_square(short: float, long: float) -> bool:
    """Return whether *long* seconds for four times the length are out of proportion to *short*."""
    return long > _SECONDS and long > _FACTOR * short


class Hung(BaseException):
    """An input took all the processor time it was given: nothing between may catch it."""


@contextmanager
def cut_after(seconds: float) -> Iterator[None]:
    """End what takes more of the processor, where it next runs Python.

    Raises: Hung.
    """
    before = signal.signal(signal.SIGVTALRM, _hang)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _of(begin: bytes, word: bytes, size: int) -> bytes:
    return (begin + word * (size // len(word) + 1))[:size]


def _hang(*_: object) -> None:
    raise Hung
