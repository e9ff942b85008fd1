"""Every launcher leads to what it starts; what it says of processes is kept."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from admission.detect.launchers import Line, Step, unwrap
from admission.detect.words import Word
from tests.admission.detect.jobs import (
    codes,
    config_map,
    container,
    found,
    job,
    read,
    read_args,
    read_script,
)

SCRIPT = ("/imagenet/main.py", "-a", "resnet18", "-b", "32")
HF = (
    "run_clm.py",
    "--do_train",
    "--model_name_or_path=openai-community/gpt2",
    "--per_device_train_batch_size=4",
)
STRATEGY, DEGREE = "parallelism.strategy", "parallelism.dataParallel"


def _line(text: str, **variables: str) -> Line:
    return Line(
        words=tuple(Word(text=word, origin="args") for word in text.split()),
        where="containers[0]",
        path="spec.containers[0]",
        variables={name: (Word(text=value),) for name, value in variables.items()},
    )


def _last(text: str, **variables: str) -> Step:
    """Return the step at which a program is left."""
    line = _line(text, **variables)
    for _ in range(8):
        step = unwrap(line)
        assert step is not None, line.words
        if step.program is not None:
            return step
        line = line.inner(*step.rest)
    raise AssertionError(text)


@pytest.mark.parametrize(
    "before",
    [
        "mpirun -np 1 --allow-run-as-root -bind-to none -map-by slot -x A=1 -x PATH "
        "-mca pml ob1 --mca btl ^openib -hostfile /etc/mpi/hostfile python",
        "mpirun --np 1 -H localhost:1 --oversubscribe -wdir /x python",
        "mpiexec.hydra -n 1 -ppn 1 -genv A 1 -f hosts -bootstrap ssh python",
        "mpirun_rsh -np 1 -hostfile h MV2_USE_CUDA=1 python",
        "srun --ntasks=1 -N 1 --gres gpu:1 --mpi=pmix python",
        "horovodrun -np 1 -H localhost:1 --verbose --fusion-threshold-mb 32 python",
        "horovodrun -np 1 --gloo python3 -u",
        "bpslaunch python3",
        "hyperpodrun --tee=3 --log_dir=/tmp/x --nproc_per_node=1 --nnodes=1",
        "composer -n 1 --master_port 99",
        "colossalai run --nproc_per_node 1 --master_addr x",
        "fabric run",
        "fabric run --accelerator=cuda --devices 1",
        "lightning run model --precision=32",
        "ray job submit --address http://x:8265 --working-dir . --runtime-env-json={} -- python",
        "deepspeed --include localhost:0 --master_port 1",
        "--nproc_per_node=1",
        "accelerate launch --num_processes 1 --mixed_precision no",
        "python -m cProfile -o x.prof -s time",
        "python -m debugpy --listen 0.0.0.0:1 --wait-for-client",
        "coverage run --source x",
        "memray run -o x",
        "python -m torch.utils.bottleneck",
        "nsys profile -s none -t nvtx,cuda --capture-range=cudaProfilerApi -o x --wait all "
        "--kill none --force-overwrite true --session-new n python",
        "ncu --set full -o x --target-processes all python",
        "numactl --cpunodebind 0 --membind=0 nice -10 python",
        "taskset -c 0-3 python",
        "tini -g -- python",
        "s6-setuidgid app with-contenv python",
        "catchsegv python",
        "unbuffer stdbuf -oL python",
        "su-exec app python",
        "flock -n /tmp/l python",
        "compute-sanitizer --tool memcheck python",
        "uv run --no-sync --with x --python 3.11 python",
        "uvx --from x",
        "pixi run -e gpu --manifest-path p python",
        "poetry run python",
        "hatch run python",
        "pdm run -p . python",
        "conda run --no-capture-output -n train python",
        "singularity exec --nv -B /a:/b image.sif python",
        "apptainer exec --nv image.sif python",
        "dotenv run python",
        "time -p python",
        "env -u A B=1 python",
        "sudo -u x A=1 python",
    ],
)
def test_every_launcher_leads_to_the_script(before: str) -> None:
    """However it is started, the same script is left with the same arguments."""
    step = _last(f"{before} {' '.join(SCRIPT)}")

    assert step.program is not None
    assert (step.program.text, *(word.text for word in step.rest)) == SCRIPT
    reading = read_args(*before.split(), *SCRIPT)
    assert found(reading, "model.name", STRATEGY) == {"model.name": "resnet18", STRATEGY: "none"}


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("axolotl train x.yaml", "axolotl.cli.train"),
        ("axolotl train x.yaml --launcher torchrun -- --nproc_per_node=2", "axolotl.cli.train"),
        ("python -m axolotl.cli.train x.yaml", "axolotl.cli.train"),
        ("accelerate launch -m axolotl.cli.train x.yaml", "axolotl.cli.train"),
        ("llamafactory-cli train x.yaml a=b", "llamafactory.train"),
        ("python -m llamafactory.cli train x.yaml", "llamafactory.train"),
        (
            "tune run full_finetune_single_device --config x",
            "torchtune.full_finetune_single_device",
        ),
        ("tune run --nproc_per_node 2 lora_dpo_distributed", "torchtune.lora_dpo_distributed"),
        ("litgpt finetune_lora x", "litgpt.finetune_lora"),
        ("litgpt finetune lora --a b", "litgpt.finetune_lora"),
        ("litgpt finetune gpt2", "litgpt.finetune"),
        ("litgpt pretrain x", "litgpt.pretrain"),
        ("python -m litgpt pretrain x", "litgpt.pretrain"),
        ("nemo llm pretrain --factory x", "nemo.llm.pretrain"),
        ("yolo detect train model=yolo11n.pt", "ultralytics"),
        ("kaito-tuning --a b", "kaito.tuning"),
        ("/opt/torchtitan/run_train.sh --training.steps 1", "torchtitan.train"),
        ("torchrun -m torchtitan.train --module llama3", "torchtitan.train"),
        ("trl sft --a b", "sft"),
    ],
)
def test_commands_of_their_own_are_modules(command: str, module: str) -> None:
    """Readers know them by these names."""
    step = _last(command)

    assert step.program is not None
    assert (step.program.text, step.is_module) == (module, True)


@pytest.mark.parametrize(
    ("command", "variables", "processes", "nodes"),
    [
        ("axolotl train x.yaml --launcher torchrun -- --nproc_per_node=2", {}, "2", None),
        ("llamafactory-cli train x", {"NPROC_PER_NODE": "4", "NNODES": "2"}, "4", "2"),
        ("./run_train.sh", {"NGPU": "4", "CONFIG_FILE": "x.toml"}, "4", None),
        ("./run_train.sh", {"CONFIG_FILE": "x.toml"}, "8", None),
        ("deepspeed --include h1:0,1@h2:0,1 x.py", {}, "2", "2"),
        ("fabric run --devices=0,1,2 x.py", {}, "3", None),
        ("composer -n 4 x.py", {"WORLD_SIZE": "8"}, "4", None),
    ],
)
def test_processes_that_programs_start(
    command: str, variables: Mapping[str, str], processes: str, nodes: str | None
) -> None:
    """By their own flags and variables."""
    launch = _last(command, **variables).launch

    assert launch is not None
    assert launch.processes is not None
    assert launch.processes.value is not None
    assert launch.processes.value.text == processes
    assert (launch.nodes.value.text if launch.nodes and launch.nodes.value else None) == nodes


def test_a_configuration_named_by_a_variable_is_an_argument() -> None:
    """torchtitan's script hands `CONFIG_FILE` on."""
    step = _last("/x/torchtitan/run_train.sh --a", CONFIG_FILE="c.toml")

    assert [word.text for word in step.rest] == ["--job.config_file", "c.toml", "--a"]


def test_a_script_called_run_train_is_nobody_s() -> None:
    """Without torchtitan's folder or variables it is any script."""
    assert unwrap(_line("./run_train.sh")) is None


def test_what_mpi_sets_is_set() -> None:
    """`-x NAME=value` is a variable of the program."""
    step = unwrap(_line("mpirun -np 2 -x A=1 -x B -genv C 3 python x.py"))

    assert step is not None
    assert {name: value and value[0].text for name, value in step.assigned.items()} == {
        "A": "1",
        "C": "3",
    }


@pytest.mark.parametrize("role", ["server", "scheduler"])
def test_servers_of_byteps_train_nothing(role: str) -> None:
    """`DMLC_ROLE` says who trains."""
    reading = read_args("bpslaunch", "python", *SCRIPT, env={"DMLC_ROLE": role})

    assert reading.skip is not None


@pytest.mark.parametrize(
    ("words", "gpus", "strategy", "degree"),
    [
        (("mpirun", "-np", "4", "python", *HF), 4, "ddp", 4),
        (("mpirun", "-np", "16", "-H", "a:8,b:8", "python", *HF), 8, "ddp", 16),
        (("mpirun", "-H", "a:4,b:4", "python", *HF), 4, "ddp", 8),
        (("horovodrun", "-np", "8", "-H", "a:4,b:4", "python", *HF), 4, "ddp", 8),
        (("horovodrun", "--min-np", "2", "--max-np", "8", "python", *HF), 4, "ddp", 2),
        (("composer", *HF), 4, "ddp", 4),
        (("fabric", "run", "--devices=-1", *HF), 4, "ddp", 4),
        (("colossalai", "run", "--nproc_per_node=2", *HF), 4, "ddp", 2),
        (("fabric", "run", "--strategy=fsdp", "--devices=4", *HF), 4, "fsdp", 4),
        (("fabric", "run", "--strategy=deepspeed_stage_3", "--devices=4", *HF), 4, "zero3", 4),
        (("deepspeed", "--num_gpus=2", *HF), 4, "ddp", 2),
        (("deepspeed", "--num_gpus=4", "--num_nodes=2", *HF), 4, "ddp", 8),
        (("torchrun", "--nproc_per_node=2", "--nnodes=2:4", *HF), 2, "ddp", 4),
        (("srun", "-n", "8", "-N", "2", "python", *HF), 4, "ddp", 8),
    ],
)
def test_how_many_processes(words: tuple[str, ...], gpus: int, strategy: str, degree: int) -> None:
    """From flags, hosts and the container's GPUs; a range counts as its smallest."""
    reading = read_args(*words, gpus=gpus)

    assert found(reading, STRATEGY, DEGREE) == {STRATEGY: strategy, DEGREE: degree}


def test_a_host_file_is_counted() -> None:
    """One that the script writes, or that a ConfigMap brings."""
    hosts = "cat > /job/hosts <<EOF\na slots=4\nb slots=4 # x\nEOF\n"
    written = read_script(f"{hosts}deepspeed --hostfile /job/hosts {' '.join(HF)}", gpus=4)
    assert found(written, DEGREE) == {DEGREE: 8}

    mounts = [{"name": "v", "mountPath": "/job"}]
    obj = job(container("deepspeed", *HF, gpus=2, volumeMounts=mounts))
    obj["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "c"}}]
    mounted = read(obj, documents=config_map("c", hostfile="a slots=2\nb slots=2\n"))
    assert found(mounted, DEGREE) == {DEGREE: 4}


def test_what_a_launcher_inside_a_script_says_is_kept() -> None:
    """torchrun around a shell script that calls Python."""
    script = (
        f"echo 'python {' '.join(HF)}' > x.sh; torchrun --nproc_per_node=2 --no-python bash x.sh"
    )

    assert found(read_script(script, gpus=2), DEGREE) == {DEGREE: 2}


@pytest.mark.parametrize(
    "words",
    [
        ("mpirun",),
        ("mpirun", "-np"),
        ("mpirun", "-np", "many", "python", *HF),
        ("horovodrun", "-np", "$N", "python", *HF),
        ("axolotl",),
        ("tune", "run"),
        ("nemo", "llm"),
        ("composer",),
        ("ray", "job", "submit"),
        ("deepspeed", "--include", "@:", *HF),
        ("script", "-c"),
        ("lightning", "run", "model"),
        ("--nproc_per_node=1",),
    ],
)
def test_half_a_command_is_named(words: tuple[str, ...]) -> None:
    """Never an exception, never a guess."""
    reading = read_args(*words, gpus=2)

    assert reading.spec is None
    assert codes(reading)
    assert all(finding.reason for finding in reading.unknowns)
