"""What makes a reading uncertain, so that nobody is refused on it, and what makes it unknown."""

from __future__ import annotations

import pytest

from admission.codes import ReasonCode
from admission.detect.draft import SHARDED_HINT
from tests.admission.detect.jobs import codes, container, found, job, read, read_args, read_script

SPEC = "vramgate.dev/spec"
GPT = ("--model_name_or_path=gpt2-xl", "--per_device_train_batch_size=1", "--bf16", "True")
MINE = ("python", "finetune.py", *GPT, "--do_train")
CLM = ("python", "run_clm.py", *GPT, "--do_train")
IMAGENET = ("python", "/imagenet/main.py", "-a", "resnet50", "-b", "256")
VISION = ("python", "references/classification/train.py", "--model=resnet50", "-b", "256")
TIMM = ("python", "/pytorch-image-models/train.py", "--model=resnet50", "-b", "256")
LINE = " ".join(IMAGENET)


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--use_lora", "True"), "--use_lora"),
        (("--lora_enable", "True"), "--lora_enable"),
        (("--lora_r", "8"), "--lora_r"),
        (("--finetuning_type", "lora"), "--finetuning_type"),
        (("--peft", "lora"), "--peft"),
        (("--method", "qlora"), "--method"),
        (("--bits", "4"), "--bits"),
        (("--quantization_bit", "4"), "--quantization_bit"),
        (("--freeze_backbone", "True"), "--freeze_backbone"),
        (("--num_trainable_layers", "2"), "--num_trainable_layers"),
        (("--zero_stage", "3"), "--zero_stage"),
        (("--cpu_offload",), "--cpu_offload"),
        (("--sharded_ddp", "simple"), "--sharded_ddp"),
    ],
)
def test_flags_that_change_the_whole_job_are_gaps(flags: tuple[str, ...], word: str) -> None:
    """Adapters, frozen parts, fewer bits and sharding are never judged as full training."""
    for base in (MINE, CLM):
        reading = read_args(*base, *flags)

        assert reading.spec is None
        assert codes(reading) == [ReasonCode.UNSUPPORTED]
        assert word in reading.unknowns[0].reason
        assert reading.unknowns[0].hint


@pytest.mark.parametrize("name", ["qlora.py", "finetune_lora.py", "train_4bit.py", "fsdp_train.py"])
def test_names_of_scripts_that_say_so_are_gaps(name: str) -> None:
    """`qlora.py` does not train every weight."""
    reading = read_args("python", name, *GPT)

    assert reading.spec is None
    assert name in reading.unknowns[0].reason


@pytest.mark.parametrize("name", ["ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED"])
def test_variables_of_accelerate_that_shard_are_gaps(name: str) -> None:
    """They shard a job without any flag; `false` does not."""
    assert codes(read_args(*CLM, env={name: "true"})) == [ReasonCode.UNSUPPORTED]
    assert codes(read_script(f"env {name}=1 {' '.join(CLM)}")) == [ReasonCode.UNSUPPORTED]
    assert read_args(*CLM, env={name: "false"}).is_certain


@pytest.mark.parametrize("base", [VISION, TIMM])
def test_frozen_backbones_of_image_scripts_are_gaps(base: tuple[str, ...]) -> None:
    """The folder says whose script it was, the flag that it was changed."""
    reading = read_args(*base, "--freeze-backbone")

    assert codes(reading) == [ReasonCode.UNSUPPORTED]


@pytest.mark.parametrize(
    "words",
    [
        MINE,
        (*MINE, "@args.txt"),
        (*MINE, "--use_lora", "False"),
        (*MINE, "--bits", "16"),
        (*CLM, "--my_flag", "1"),
        (*CLM, "--attn_implementation", "sdpa"),
        (*CLM, "--max_train_samples", "0"),
        (*VISION, "--foo", "3"),
        (*TIMM, "--foo", "3"),
        (*IMAGENET, "/data", "more"),
        (*IMAGENET, "--epochs", "0"),
        ("python", "train.py", "--model=resnet50", "-b=256", "--num-classes=10"),
        ("accelerate", "launch", *CLM[1:]),
    ],
)
def test_a_script_that_may_be_another_is_not_certain(words: tuple[str, ...]) -> None:
    """Unknown scripts, foreign flags and settings not seen give a spec that only warns."""
    reading = read_args(*words)

    assert reading.spec is not None
    assert not reading.is_certain
    assert reading.warnings


@pytest.mark.parametrize(
    "words",
    [
        (*CLM, "--logging_first_step", "--report_to", "none", "--save_total_limit=2"),
        (*CLM, "--seed=1", "--lr_scheduler_type=cosine"),
        (*VISION, "--opt=sgd"),
        (*TIMM, "/data", "--amp"),
        (*IMAGENET, "--epochs", "90", "/data"),
        ("accelerate", "launch", "--multi_gpu", *CLM[1:]),
    ],
)
def test_a_known_script_with_its_own_flags_is_certain(words: tuple[str, ...]) -> None:
    """Nothing foreign, nothing hidden: a verdict may refuse."""
    reading = read_args(*words)

    assert reading.spec is not None
    assert reading.is_certain
    assert reading.warnings == ()


def test_the_first_foreign_flags_are_named() -> None:
    """A reader sees which words made the reading uncertain."""
    reading = read_args(*CLM, "--foo", "1", "--bar", "--baz", "--last")

    assert "--foo, --bar, --baz" in reading.warnings[0]
    assert "--last" not in reading.warnings[0]


def test_the_owners_word_closes_gaps_and_settles_doubts() -> None:
    """`adapter: null` closes the gap; model and batch describe the job, so it is certain."""
    words = container(*MINE, "--use_lora", "True")
    closing = "adapter: null"
    whole = closing + "\nmodel: {source: huggingface, name: gpt2-xl}\ninput: {batchSize: 1}"

    closed = read(job(words, annotations={SPEC: closing}))
    settled = read(job(words, annotations={SPEC: whole}))

    assert closed.spec is not None
    assert not closed.is_certain
    assert settled.spec is not None
    assert settled.is_certain


@pytest.mark.parametrize(
    "script",
    [
        f"{LINE} $EXTRA",
        f"{LINE} $(EXTRA)",
        f"{LINE} --pretrained $A$B",
        f'set -- $(cat args); {LINE} "$@"',
        f"set -- 1 $X; {LINE} $2",
        f"cat list | xargs {LINE}",
        f"cat list | xargs -n 1 {LINE}",
    ],
)
def test_words_that_may_hold_flags_make_it_uncertain(script: str) -> None:
    """The last flag counts, and these words come last."""
    reading = read_script(script)

    assert reading.spec is not None
    assert not reading.is_certain


def test_flags_from_a_source_that_is_not_read_are_not_certain() -> None:
    """`$(EXTRA)` of an unread ConfigMap is one word that may be `--batch-size=2`."""
    source = [{"configMapRef": {"name": "flags"}}]

    assert not read_args(*IMAGENET, "$(EXTRA)", envFrom=source).is_certain
    assert not read_args(*CLM, envFrom=source).is_certain


def test_xargs_around_a_script_that_is_not_known_is_unknown() -> None:
    """It runs something: not skipped."""
    reading = read_script("ls | xargs python mine.py")

    assert codes(reading) == [ReasonCode.NO_MODEL]


@pytest.mark.parametrize(
    "script",
    [
        f"if [ -f x ]; then {LINE}; fi",
        f"if a; then b; else {LINE}; fi",
        f"case $X in train) {LINE};; esac",
        f"while [ x ]; do {LINE}; done",
        f"for i in $LIST; do {LINE}; done",
        f"[ -f x ] && {LINE}",
        f"grep -q x f && {LINE}",
        f"a || {LINE}",
        f"if a; then exit 0; fi; {LINE}",
        f"[ -f done ] && exit; {LINE}",
        f"run() {{ [ -f done ] && exit 0; }}; run; {LINE}",
        f"if a; then exec b; fi; {LINE}",
        f"sleep infinity; {LINE}",
        f"[ x ] && bash -c '{LINE}'",
    ],
)
def test_training_that_may_never_run_is_not_certain(script: str) -> None:
    """Under a condition that is not decided, or after what may have ended the script."""
    reading = read_script(script)

    assert reading.spec is not None
    assert not reading.is_certain


@pytest.mark.parametrize(
    "script",
    [
        f"pip install x && cd /w && {LINE}",
        f"set -e; [ -d x ] || mkdir x; {LINE}",
        f"if [ -z $TOKEN ]; then echo no; exit 1; fi; {LINE}",
        f"[ -d /data ] || exit 1; {LINE}",
        f"while true; do {LINE}; done",
        f"until {LINE}; do sleep 9; done",
        f"for i in 1 2; do {LINE}; done",
        f"if {LINE}; then echo; fi",
        f"(exit 0); {LINE}",
        f'main() {{ {LINE} "$@"; }}; main',
        f"{LINE} 2>&1 | tee log",
    ],
)
def test_training_that_runs_is_certain(script: str) -> None:
    """Steps before it that must succeed, guards that fail the job, and loops that run."""
    reading = read_script(script)

    assert reading.spec is not None
    assert reading.is_certain


@pytest.mark.parametrize("script", [f"exit 0; {LINE}", f"exec sleep 9; {LINE}"])
def test_nothing_follows_what_ends_the_script(script: str) -> None:
    """After `exit` or `exec` there is no training."""
    assert read_script(script).skip is ReasonCode.NO_TRAINING


@pytest.mark.parametrize(
    ("words", "env"),
    [
        ((*CLM, "--use_cpu", "True"), {}),
        ((*CLM, "--no_cuda"), {}),
        ((*VISION, "--device", "cpu"), {}),
        ((*TIMM, "--device=cpu"), {}),
        ((*IMAGENET, "--no-accel"), {}),
        (("accelerate", "launch", "--cpu", *CLM[1:]), {}),
        (IMAGENET, {"CUDA_VISIBLE_DEVICES": ""}),
        (IMAGENET, {"CUDA_VISIBLE_DEVICES": "-1"}),
        (("env", "CUDA_VISIBLE_DEVICES=", *IMAGENET), {}),
    ],
)
def test_training_on_the_cpu_is_skipped(words: tuple[str, ...], env: dict[str, str]) -> None:
    """A GPU is asked for and left alone, and that is said."""
    reading = read_args(*words, env=env)

    assert reading.skip is ReasonCode.NO_TRAINING
    assert "runs on the CPU" in reading.warnings[0]


def test_switches_that_are_off_leave_the_gpu_on() -> None:
    """`--use_cpu False` and a device that is named are a GPU's training."""
    assert read_args(*CLM, "--use_cpu", "False").is_certain
    assert read_args(*IMAGENET, env={"CUDA_VISIBLE_DEVICES": "0"}).is_certain
    assert not read_args(*IMAGENET, env={"CUDA_VISIBLE_DEVICES": "$X"}).is_certain


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((*IMAGENET, "--evaluate"), {"phase": "infer", "training.precision": "fp32"}),
        ((*IMAGENET, "-e"), {"phase": "infer", "input.batchSize": 256}),
        (
            (*VISION, "--test-only", "--amp", "--val-crop-size=320", "--train-crop-size=176"),
            {
                "phase": "infer",
                "training.precision": "fp32",
                "input.imageSize": [3, 320, 320],
                "runtime": {"cudnnDeterministic": True},
            },
        ),
    ],
)
def test_evaluation_is_inference(words: tuple[str, ...], expected: dict[str, object]) -> None:
    """Scripts that only evaluate run forward passes of the same batch."""
    reading = read_args(*words)

    assert reading.spec is not None
    assert found(reading, *expected) == expected


@pytest.mark.parametrize(
    "words",
    [
        ("python", "run_clm.py", *GPT, "--do_eval"),
        ("python", "finetune.py", *GPT, "--do_predict"),
        ("python", "finetune.py", *GPT, "--do_train", "False"),
    ],
)
def test_evaluation_with_the_trainer_is_a_gap(words: tuple[str, ...]) -> None:
    """Its batch is another one, so `phase` alone does not close it."""
    stated = {SPEC: "phase: infer"}

    assert codes(read_args(*words)) == [ReasonCode.UNSUPPORTED]
    assert codes(read(job(container(*words), annotations=stated))) == [ReasonCode.UNSUPPORTED]


def test_evaluation_on_several_gpus_is_a_gap() -> None:
    """A wrapped model keeps more than a plain one."""
    for base, flag in ((IMAGENET, "-e"), (("torchrun", "--nproc_per_node=2", *VISION[1:]), "")):
        reading = read_args(*base, flag or "--test-only", gpus=2)

        assert codes(reading) == [ReasonCode.UNSUPPORTED]


@pytest.mark.parametrize(
    "words",
    [
        (*CLM, "--deepspeed=ds.json"),
        (*MINE, "--zero_stage=3"),
        ("accelerate", "launch", "--use_megatron_lm", *CLM[1:]),
    ],
)
def test_hints_offer_only_what_is_estimated(words: tuple[str, ...]) -> None:
    """A hint that leads to 'not modelled yet' helps nobody."""
    (finding,) = read_args(*words).unknowns

    assert finding.hint == SHARDED_HINT
    assert "zero" not in SHARDED_HINT


@pytest.mark.parametrize(
    ("script", "is_skipped"),
    [
        ("source /venv/bin/activate; nvidia-smi", True),
        ("source train.sh", False),
        ("make install; nvidia-smi", True),
        ("make train", False),
    ],
)
def test_files_and_targets_that_may_train_are_not_skipped(script: str, is_skipped: bool) -> None:
    """What sets things up is nothing; what is not seen may train."""
    assert (read_script(script).skip is ReasonCode.NO_TRAINING) is is_skipped
