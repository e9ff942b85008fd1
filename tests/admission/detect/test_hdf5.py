"""Texts at the root of HDF5 files, and files made up so that reading them would not end."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.detect.hdf5 import Hdf5Error, root_texts
from tests.admission.detect.hdf5_files import CONFIG, LATEST, OLD, TRAINING

NAMES = ("model_config", "training_config", "keras_version")
MOST = 1 << 20


@pytest.mark.parametrize("content", [OLD, LATEST])
def test_texts_of_the_root_are_read(content: bytes) -> None:
    """In files of the oldest format and of the newest, attributes in order of creation or not."""
    assert root_texts(content, NAMES, most=MOST) == {
        "keras_version": "2.15.0",
        "model_config": CONFIG,
        "training_config": TRAINING,
    }


def test_the_start_of_a_file_is_enough() -> None:
    """Weights come after: of a long file only its start is fetched."""
    assert root_texts(OLD[: len(OLD) - 100], NAMES, most=MOST)["model_config"] == CONFIG


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (OLD[:8], "cut off"),
        (OLD[:600], "cut off"),
        (OLD[:8] + b"\x09" + OLD[9:], "version 9"),
        (OLD[:13] + b"\x63" + OLD[14:], "no width"),
        (OLD[:64] + b"\xff" * 8 + OLD[72:], "cut off"),
        (OLD.replace(b"GCOL", b"COLG"), "not where it should be"),
    ],
)
def test_broken_files_say_so(content: bytes, problem: str) -> None:
    """Addresses lead nowhere, formats are not in use."""
    with pytest.raises(Hdf5Error, match=problem):
        root_texts(content, NAMES, most=MOST)


def test_a_text_longer_than_what_is_read_is_refused() -> None:
    """Before it is copied."""
    with pytest.raises(Hdf5Error, match="model_config is longer than 16 bytes"):
        root_texts(OLD, NAMES, most=16)


def test_a_header_that_leads_back_to_itself_ends() -> None:
    """A continuation whose address is that of its own block."""
    start, size = 300, 24
    message = b"\x10\x00\x10\x00" + bytes(4) + start.to_bytes(8, "little")
    block = message + size.to_bytes(8, "little")
    header = b"\x01\x00\x01\x00" + bytes(4) + size.to_bytes(4, "little") + bytes(4)
    file = bytearray(OLD[:64] + (176).to_bytes(8, "little") + bytes(400))
    file[176 : 176 + 16] = header
    file[192 : 192 + 24] = block
    file[300 : 300 + 24] = block

    with pytest.raises(Hdf5Error, match="back to itself"):
        root_texts(bytes(file), NAMES, most=MOST)


@pytest.mark.parametrize("content", [OLD, LATEST])
@given(data=st.data())
def test_damaged_files_raise_nothing_else(content: bytes, data: st.DataObject) -> None:
    """Whatever a few bytes are, the file is read or is a named problem."""
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(8, 1200))] = data.draw(st.integers(0, 255))
    found: dict[str, str] = {}
    with suppress(Hdf5Error):
        found = root_texts(bytes(damaged), NAMES, most=MOST)

    assert found.keys() <= set(NAMES)
