"""Jobs whose program is inside the image, read by the names of their variables."""

from __future__ import annotations

from tests.admission.detect.jobs import container, job, read

VARIABLES = {
    "MODEL_ID": "google-bert/bert-base-uncased",
    "TRAIN_BATCH_SIZE": "16",
    "MAX_SEQ_LENGTH": "256",
}


def test_names_give_a_model_a_batch_and_a_length() -> None:
    """What the variables say becomes a spec, each value with the variable it came from."""
    found = read(job(container(env=VARIABLES)))

    assert found.spec is not None
    assert found.spec.model.name == "google-bert/bert-base-uncased"
    assert (found.spec.input.batch_size, found.spec.input.sequence_length) == (16, 256)
    assert found.sources["input.batchSize"] == "env TRAIN_BATCH_SIZE"


def test_a_program_that_was_not_seen_is_not_certain() -> None:
    """Optimizer and precision are taken by default, so nobody is refused on them."""
    found = read(job(container(env=VARIABLES)))

    assert not found.is_certain
    assert any("inside the image" in warning for warning in found.warnings)


def test_the_owners_word_makes_it_certain() -> None:
    """A model stated in the annotation is the owner's own description of the job."""
    stated = '{"model": {"source": "huggingface", "name": "google-bert/bert-base-uncased"}}'

    found = read(job(container(env=VARIABLES), annotations={"vramgate.dev/spec": stated}))

    assert found.is_certain


def test_a_command_line_is_certain() -> None:
    """A program that is seen with its flags is what it says."""
    found = read(job(container("torchrun", "main.py", "-a", "resnet50", "-b", "32")))

    assert found.is_certain
