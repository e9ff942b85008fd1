"""Programs with a command of their own, as the modules that readers know them by.

    `axolotl train x.yaml` -> module `axolotl.cli.train`, arguments, how it starts processes

The names are a convention between this file and the readers in `scripts/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from admission.detect.flags import parse_flags
from admission.detect.invocation import Launch, Spawn
from admission.detect.launchers import accelerate_flags
from admission.detect.launchers.step import Launcher, Line, Step, options_of, split_options
from admission.detect.words import Word
from estimator.deferred import Deferred

if TYPE_CHECKING:
    from admission.detect.launchers import accelerate, torchrun
else:
    accelerate = Deferred("admission.detect.launchers.accelerate")
    torchrun = Deferred("admission.detect.launchers.torchrun")

_IDLE = Word(text="true")
"""Stands for what prepares and trains nothing."""
_TUNE_PREPARES = frozenset({"download", "cp", "ls", "validate", "cat"})
_LITGPT_GROUPS = frozenset({"finetune"})
_LITGPT_KINDS = frozenset({"lora", "full", "adapter", "adapter_v2"})
_LITGPT_IDLE = ("download", "chat", "generate", "serve", "convert", "validate", "evaluate", "merge")
_AXOLOTL_IDLE = frozenset({"fetch", "inference", "vllm-serve", "merge-lora", "quantize", "config"})
_LLAMAFACTORY_IDLE = frozenset(
    {"api", "chat", "webchat", "webui", "env", "version", "help", "eval"}
)
_AXOLOTL = options_of("launcher num_processes main_process_port sweep cloud", "no_accelerate")
_TITAN_VARIABLES = ("NGPU", "CONFIG_FILE", "MODULE", "CONFIG")


def axolotl(line: Line) -> Step | None:
    """`axolotl train`: accelerate's launcher, unless it is told another one.

    Source: axolotl-ai-cloud/axolotl@067b021 `src/axolotl/cli/main.py`, `cli/utils/train.py`.
    """
    if len(line.words) < 2:
        return None
    if line.words[1].text in _AXOLOTL_IDLE:
        return Step(rest=(_IDLE,))
    rest = line.words[2:]
    texts = [word.text for word in rest]
    own: tuple[Word, ...] = ()
    if "--" in texts:
        own = rest[texts.index("--") + 1 :]
        rest = rest[: texts.index("--")]
    flags = parse_flags(rest, _AXOLOTL, where=line.where, path=line.path)
    named = flags.get("launcher")
    launcher = named.value.text if named is not None and named.value is not None else "accelerate"
    words = line.inner(line.words[0], *own)
    launch = Launch(launcher="axolotl")
    if launcher == "torchrun":
        launch = torchrun.launch_of(split_options(words, torchrun.OPTIONS)[0])
    elif launcher == "accelerate" and not flags.has("no_accelerate"):
        given, _ = split_options(words, accelerate_flags.OPTIONS)
        told = tuple(flag for flag in flags.given if flag.name == "num_processes")
        given = replace(given, given=(*told, *given.given))
        launch = accelerate.launch_of(line, given)
    return _module(line, "axolotl.cli", rest, launch)


def llamafactory(line: Line) -> Step | None:
    """`llamafactory-cli train`: torchrun with one process a GPU where there are several.

    Source: hiyouga/LLaMA-Factory@ff6d4d1 `src/llamafactory/launcher.py`.
    """
    if len(line.words) < 2:
        return None
    if line.words[1].text in _LLAMAFACTORY_IDLE:
        return Step(rest=(_IDLE,))
    launch = Launch(launcher="llamafactory-cli")
    if line.words[1].text == "train":
        is_elastic = line.value("RDZV_ID") is not None and line.value("MAX_NNODES") is not None
        nodes = line.variable_flag("MIN_NNODES") if is_elastic else None
        launch = Launch(
            launcher="llamafactory-cli",
            is_distributed=True,
            spawn=Spawn.ALL,
            processes=line.variable_flag("NPROC_PER_NODE"),
            nodes=nodes or line.variable_flag("NNODES"),
        )
    return _module(line, "llamafactory", line.words[2:], launch)


def tune(line: Line) -> Step | None:
    """`tune run RECIPE`: torchrun if any of its flags is given, else one process.

    Source: pytorch/torchtune@bd2a0fc `torchtune/_cli/run.py`.
    """
    if len(line.words) < 2:
        return None
    if line.words[1].text in _TUNE_PREPARES:
        return Step(rest=(_IDLE,))
    if line.words[1].text != "run":
        return None
    flags, rest = split_options(line.inner(*line.words[1:]), torchrun.OPTIONS)
    if not rest:
        return None
    launch = Launch(launcher="tune run")
    if flags.given:
        launch = torchrun.launch_of(flags, launcher="tune run")
    if rest[0].text.endswith(".py"):
        return Step(rest=rest[1:], program=rest[0], launch=launch)
    return _module(line.inner(line.words[0], *rest), "torchtune", rest[1:], launch)


def litgpt(line: Line) -> Step | None:
    """`litgpt finetune_lora`, and the older `litgpt finetune lora`.

    Source: Lightning-AI/litgpt@2685705 `litgpt/__main__.py`.
    """
    words = line.words[1:]
    if not words:
        return None
    if words[0].text.startswith(_LITGPT_IDLE):
        return Step(rest=(_IDLE,))
    is_group = words[0].text in _LITGPT_GROUPS and words[1:] and words[1].text in _LITGPT_KINDS
    if is_group:
        name = words[0].part(f"{words[0].text}_{words[1].text}")
        return _module(line.inner(line.words[0], name), "litgpt", words[2:], Launch())
    return _module(line, "litgpt", words[1:], Launch())


def nemo(line: Line) -> Step | None:
    """`nemo llm pretrain …`: the module `nemo.llm.pretrain`.

    Source: NVIDIA/NeMo@8cfedd7 `nemo/collections/llm/api.py`.
    """
    if len(line.words) < 3 or line.words[1].text.startswith("-"):
        return None
    name = line.words[2].part(f"{line.words[1].text}.{line.words[2].text}")
    return _module(line.inner(line.words[0], name), "nemo", line.words[3:], Launch())


def yolo(line: Line) -> Step | None:
    """`yolo train model=…`: it starts its own processes by `device=`.

    Source: ultralytics `ultralytics/cfg/__init__.py` `entrypoint`.
    """
    program = line.words[0].part("ultralytics")
    return Step(rest=line.words[1:], program=program, is_module=True, launch=Launch())


def kaito(line: Line) -> Step | None:
    """`kaito-tuning`: what a KAITO Workspace with `tuning` stands for."""
    program = line.words[0].part("kaito.tuning")
    return Step(rest=line.words[1:], program=program, is_module=True, launch=Launch())


def torchtitan(line: Line) -> Step | None:
    """`run_train.sh` of torchtitan: torchrun with `NGPU` processes and the configuration named.

    Source: pytorch/torchtitan@b5bcd76 `run_train.sh`; before 9810191 `CONFIG_FILE` named a file.
    A script of that name elsewhere is none of it. With `COMM_MODE` it trains nothing.
    """
    place = f"{line.directory}/{line.words[0].text}".lower()
    is_own = "torchtitan" in place or line.name == "torchtitan"
    if not is_own and not any(line.value(name) for name in _TITAN_VARIABLES):
        return None
    if line.value("COMM_MODE") is not None:
        return Step(rest=(_IDLE,))
    own: list[Word] = []
    for variable, flag in (
        ("CONFIG_FILE", "--job.config_file"),
        ("MODULE", "--module"),
        ("CONFIG", "--config"),
    ):
        word = line.value(variable)
        if word is not None and word.text:
            own += (Word(text=flag, origin=word.origin), word)
    number = line.variable_flag("NGPU") or line.flag("NGPU", Word(text="8"), told_by="torchtitan")
    launch = Launch(launcher="run_train.sh", is_distributed=True, processes=number)
    program = line.words[0].part("torchtitan.train")
    setting = "PYTORCH_CUDA_ALLOC_CONF" if line.value("CONFIG_FILE") else "PYTORCH_ALLOC_CONF"
    value = Word(text="expandable_segments:True", origin="run_train.sh")
    return Step(
        rest=(*own, *line.words[1:]),
        program=program._replace(unresolved=()),
        is_module=True,
        launch=launch,
        assigned={setting: (value,)},
    )


def timm(line: Line) -> Step | None:
    """`distributed_train.sh 4 …` of timm: torchrun with that many processes of `train.py`.

    Source: huggingface/pytorch-image-models@2054f11 `distributed_train.sh`. Others copied it.
    """
    if len(line.words) < 2 or line.words[1].text.startswith("-"):
        return None
    script = line.words[0]
    place = f"{line.directory}/{script.text}".lower()
    is_own = "timm" in place or "pytorch-image-models" in place
    launch = Launch(
        launcher=line.name,
        is_distributed=True,
        processes=line.flag(line.name, line.words[1]),
        doubts=() if is_own else (f"what {line.name} starts is not seen",),
    )
    folder = script.text.rpartition("/")[0]
    program = script.part(f"{folder}/train.py" if folder else "train.py")
    return Step(rest=line.words[2:], program=program, launch=launch)


def _module(line: Line, package: str, rest: tuple[Word, ...], launch: Launch) -> Step | None:
    """Return the step to the module *package*`.SUB`, where SUB is the line's second word."""
    sub = line.words[1]
    if sub.text.startswith("-"):
        return None
    name = sub.text.replace("-", "_") if sub.is_known else sub.text
    program = sub._replace(text=f"{package}.{name}")
    return Step(rest=rest, program=program, is_module=True, launch=launch)


PROGRAMS: Mapping[str, Launcher] = {
    "axolotl": axolotl,
    "llamafactory-cli": llamafactory,
    "lmf": llamafactory,
    "tune": tune,
    "litgpt": litgpt,
    "nemo": nemo,
    "yolo": yolo,
    "kaito-tuning": kaito,
    "run_train.sh": torchtitan,
    "distributed_train.sh": timm,
    "torchtitan": torchtitan,
}
"""Command name -> its module."""

PROGRAM_MODULES: Mapping[str, Launcher] = {
    "axolotl.cli.main": axolotl,
    "llamafactory.cli": llamafactory,
    "llamafactory.launcher": llamafactory,
    "torchtune._cli.tune": tune,
    "litgpt": litgpt,
    "litgpt.__main__": litgpt,
}
"""Module of `python -m` that is such a command."""
