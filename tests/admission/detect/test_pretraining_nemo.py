"""NeMo 2: recipes by name, and Python files that set one up."""

from __future__ import annotations

import pytest

from admission.values import Reading
from tests.admission.detect.jobs import config_map, container, found, job, read, read_args

RECIPE = '''
"""A setup."""
from nemo.collections import llm
from nemo.collections.llm.recipes import llama31_70b
from scripts.performance.helpers import set_primary_perf_configs

MICRO = 2


def recipe(nodes: int = 2, is_tested=False):
    setup = llama31_70b.pretrain_recipe(performance_mode=True)
    tensor, pipeline = 4, 2
    setup = set_primary_perf_configs(
        setup, "pre_train", num_nodes=nodes, num_gpus_per_node=8, mbs=MICRO, gbs=64 * MICRO,
        tp_size=tensor, pp_size=pipeline, cp_size=1, vp_size=None, use_mcore_fsdp=False,
    )
    setup.data.seq_length = 4096
    if is_tested:
        setup.data.micro_batch_size = 1
    return setup
'''
STEPS = "training.gradientAccumulationSteps"
DEGREES = (
    "parallelism.tensorParallel",
    "parallelism.pipelineParallel",
    "parallelism.contextParallel",
    "parallelism.dataParallel",
)


def written(
    text: str, *arguments: str, factory: str = "recipe()", gpus: int = 8, nodes: int = 2
) -> Reading:
    """Return the reading of a job that runs *text* as `recipe.py` with *factory*."""
    launch = ("torchrun", f"--nproc_per_node={gpus}", f"--nnodes={nodes}")
    body = container(
        *launch,
        "/c/recipe.py",
        "--factory",
        factory,
        *arguments,
        gpus=gpus,
        volumeMounts=[{"name": "c", "mountPath": "/c"}],
    )
    whole = job(body)
    whole["spec"]["template"]["spec"]["volumes"] = [{"name": "c", "configMap": {"name": "n"}}]
    return read(whole, documents=config_map("n", recipe__py=text))


def test_a_recipe_file_is_read_by_its_literals() -> None:
    """Names, defaults, plain arithmetic; a branch that is not taken does not count."""
    reading = written(RECIPE)

    assert reading.spec is not None
    assert found(
        reading, "model.name", "input.batchSize", "input.sequenceLength", STEPS, *DEGREES
    ) == {
        "model.name": "meta-llama/Llama-3.1-70B",
        "input.batchSize": 2,
        "input.sequenceLength": 4096,
        STEPS: 128 // (2 * 2),
        "parallelism.tensorParallel": 4,
        "parallelism.pipelineParallel": 2,
        "parallelism.contextParallel": 1,
        "parallelism.dataParallel": 16 // 8,
    }


def test_the_factory_takes_arguments_and_the_command_line_wins() -> None:
    """`recipe(is_tested=True)` takes the branch; an override stands over the file."""
    branch = written(RECIPE, factory="recipe(is_tested=True)")
    override = written(RECIPE, "data.micro_batch_size=4", "data.seq_length=1024")

    assert found(branch, "input.batchSize") == {"input.batchSize": 1}
    assert found(override, "input.batchSize", "input.sequenceLength") == {
        "input.batchSize": 4,
        "input.sequenceLength": 1024,
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mbs=MICRO", "mbs=choose()"),
        ("mbs=MICRO", "mbs=MICRO ** 3"),
        ("MICRO = 2", "MICRO = 2\nfor MICRO in range(3): pass\nimport os\nMICRO = os.cpu_count()"),
    ],
)
def test_what_is_computed_is_not_guessed(old: str, new: str) -> None:
    """A value that no literal tells is a finding, and no number."""
    reading = written(RECIPE.replace(old, new))

    assert reading.spec is None
    assert found(reading, "input.batchSize") == {"input.batchSize": None}


@pytest.mark.parametrize(
    "text", ["", "x = (", "def recipe(): return 1", "def other(): pass", "\x00", "a = 1\n" * 60000]
)
def test_files_that_set_up_nothing_are_named(text: str) -> None:
    """Broken, empty, huge or other files are one finding."""
    reading = written(text)

    assert reading.spec is None
    assert reading.unknowns


def test_a_file_inside_the_image_is_named() -> None:
    """It says what would have let us read it."""
    reading = read_args("torchrun", "--nproc_per_node=8", "x.py", "--factory", "r()", gpus=8)

    assert any("is inside the image" in finding.reason for finding in reading.unknowns)
    assert any("ConfigMap" in (finding.hint or "") for finding in reading.unknowns)


def test_a_recipe_by_its_name() -> None:
    """`nemo llm pretrain` takes NeMo's own recipe: its degrees, batches and length."""
    reading = read_args(
        "torchrun",
        "--nproc_per_node=8",
        "-m",
        "nemo.llm.pretrain",
        "--factory",
        "llama3_8b(num_nodes=1)",
        "data.micro_batch_size=2",
        gpus=8,
    )

    assert found(reading, "model.name", "input.batchSize", "input.sequenceLength", STEPS) == {
        "model.name": "meta-llama/Meta-Llama-3-8B",
        "input.batchSize": 2,
        "input.sequenceLength": 8192,
        STEPS: 512 // (2 * 4),
    }


def test_writing_the_configuration_out_is_no_training() -> None:
    """`--to-yaml` only exports."""
    reading = read_args(
        "python", "-m", "nemo.llm.pretrain", "--factory", "llama3_8b", "--to-yaml", "x.yaml"
    )

    assert reading.skip is not None


@pytest.mark.parametrize("factory", ["((", "unheard_of", "$F", "", "llama3_8b(num_nodes=f())"])
def test_factories_that_cannot_be_read_are_named(factory: str) -> None:
    """No recipe is guessed."""
    reading = read_args("python", "-m", "nemo.llm.pretrain", f"--factory={factory}", gpus=8)

    assert reading.spec is None
    assert reading.unknowns


def test_tuning_names_its_adapter_as_open() -> None:
    """What a recipe for fine-tuning attaches is not read yet."""
    reading = read_args("python", "-m", "nemo.llm.finetune", "--factory", "llama3_8b", gpus=8)

    assert reading.spec is None
    assert any("fine-tuning" in finding.reason for finding in reading.unknowns)
