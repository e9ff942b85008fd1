"""PYTORCH_CUDA_ALLOC_CONF is read as PyTorch reads it."""

from __future__ import annotations

import pytest

from estimator.allocators.settings import CachingSettings, caching_settings
from estimator.notes import UnknownCode
from estimator.units import MIB


def settings_of(text: str) -> CachingSettings:
    """Return the settings of a text without problems."""
    settings, unknowns = caching_settings({"PYTORCH_CUDA_ALLOC_CONF": text})
    assert unknowns == ()
    return settings


def test_nothing_set_means_defaults() -> None:
    """An environment without the variables gives PyTorch's defaults."""
    assert caching_settings({"PATH": "/bin"}) == (CachingSettings(), ())


def test_every_option_that_moves_memory_is_read() -> None:
    """All options of one text arrive, blanks ignored."""
    settings = settings_of(
        "max_split_size_mb:128, max_non_split_rounding_mb:64,garbage_collection_threshold:0.8,"
        "large_segment_size_mb:32,expandable_segments:True,per_process_memory_fraction:0.5,"
        "roundup_power2_divisions:8,backend:native"
    )

    assert settings == CachingSettings(
        max_split_size=128 * MIB,
        max_non_split_rounding=64 * MIB,
        garbage_collection_threshold=0.8,
        large_segment_size=32 * MIB,
        expandable_segments=True,
        memory_fraction=0.5,
        roundup_divisions=(8,) * 16,
    )


def test_the_old_variable_is_read_first() -> None:
    """PYTORCH_CUDA_ALLOC_CONF hides PYTORCH_ALLOC_CONF, which counts alone too."""
    old = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}
    new = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}

    assert caching_settings(old | new)[0] == CachingSettings(max_split_size=64 * MIB)
    assert caching_settings(new)[0] == CachingSettings(expandable_segments=True)


def test_torch_before_2_12_does_not_read_the_new_name() -> None:
    """2.8 knows only PYTORCH_CUDA_ALLOC_CONF; what 2.9 to 2.11 make of the new one is unknown."""
    new = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}

    assert caching_settings(new, version=(2, 8)) == (CachingSettings(), ())
    settings, unknowns = caching_settings(new, version=(2, 11))
    assert settings == CachingSettings()
    assert [unknown.path for unknown in unknowns] == ["runtime.env.PYTORCH_ALLOC_CONF"]
    assert caching_settings(new, version=(2, 12))[0].expandable_segments


def test_torch_before_2_9_reads_two_options_in_its_own_way() -> None:
    """`>` overwrites the last interval that was named, and 20 is not enough to split."""
    text = {"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:[256:1,512:2,>:4]"}
    small = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:20"}

    assert caching_settings(text, version=(2, 8))[0].roundup_divisions == (1,) * 9 + (4,) * 7
    assert caching_settings(text, version=(2, 9))[0].roundup_divisions == (
        (1,) * 8 + (1, 2) + (4,) * 6
    )
    assert caching_settings(small, version=(2, 8))[1]
    assert not caching_settings(small, version=(2, 9))[1]


def test_large_segments_bound_two_other_options_wherever_they_stand() -> None:
    """A smaller max_split_size_mb is refused, and what counts as near grows with the segment."""
    settings, unknowns = caching_settings(
        {"PYTORCH_ALLOC_CONF": "max_split_size_mb:32,large_segment_size_mb:64"}
    )

    assert settings == CachingSettings(large_segment_size=64 * MIB, max_non_split_rounding=64 * MIB)
    assert "at least 64" in unknowns[0].reason


def test_a_division_list_fills_below_the_first_and_above_the_last_entry() -> None:
    """256:1,512:2,>:4 covers 1-128 MiB with 1, 256 with 1, 512 with 2, the rest with 4."""
    settings = settings_of("roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:False")

    assert settings.roundup_divisions == (1,) * 8 + (1, 2) + (4,) * 6


def test_a_division_list_leaves_gaps_off() -> None:
    """Intervals between two named ones stay off, as in PyTorch."""
    settings = settings_of("roundup_power2_divisions:[4:2,64:8]")

    assert settings.roundup_divisions == (2, 2, 2, 0, 0, 0, 8) + (0,) * 9


def test_options_of_host_memory_change_nothing() -> None:
    """Pinned memory and locks are none of the card's memory."""
    assert settings_of("pinned_use_cuda_host_register:True,throw_on_cudamalloc_oom:True") == (
        CachingSettings()
    )


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("backend:cudaMallocAsync", "not modelled"),
        ("backend:mine", "cudaMallocAsync"),
        ("max_split_size_mb:8", "at least 20"),
        ("max_split_size_mb:many", "whole number"),
        ("large_segment_size_mb:10", "more than 10"),
        ("garbage_collection_threshold:1.5", "between 0 and 1"),
        ("garbage_collection_threshold:hot", "float"),
        ("expandable_segments:true", "True or False"),
        ("per_process_memory_fraction:2", "between 0 and 1"),
        ("roundup_power2_divisions:3", "power of two"),
        ("roundup_power2_divisions:[256:1", "bracket"),
        ("roundup_power2_divisions:[256]", "size:divisions"),
        ("split:1", "no such option"),
        ("max_split_size_mb", "whole number"),
    ],
)
def test_what_pytorch_refuses_or_we_do_not_model_is_an_unknown(text: str, word: str) -> None:
    """Each problem names the variable, the option and what is accepted."""
    settings, unknowns = caching_settings({"PYTORCH_ALLOC_CONF": text})

    assert settings == CachingSettings()
    assert [unknown.code for unknown in unknowns] == [UnknownCode.ALLOCATOR]
    assert unknowns[0].path == "runtime.env.PYTORCH_ALLOC_CONF"
    assert word in unknowns[0].reason
    assert text.partition(":")[0] in unknowns[0].reason


def test_reading_goes_on_after_a_problem() -> None:
    """One bad option does not hide the others."""
    settings, unknowns = caching_settings(
        {"PYTORCH_CUDA_ALLOC_CONF": "nonsense:1,max_split_size_mb:64"}
    )

    assert settings == CachingSettings(max_split_size=64 * MIB)
    assert len(unknowns) == 1


def test_memory_without_a_cache_is_an_unknown() -> None:
    """PYTORCH_NO_CUDA_MEMORY_CACHING turns the whole model off."""
    _, unknowns = caching_settings({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})

    assert [unknown.path for unknown in unknowns] == ["runtime.env.PYTORCH_NO_CUDA_MEMORY_CACHING"]
