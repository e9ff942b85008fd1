"""fms-hf-tuning: `accelerate_launch.py` with a JSON by its variables, `-m tuning.sft_trainer`.

    SFT_TRAINER_CONFIG_JSON_PATH | SFT_TRAINER_CONFIG_JSON_ENV_VAR | flags -> JobSpec

Its launcher starts a process a GPU and, where those are several, shards by its own FSDP file.
Source: the recipe `fms_hf_tuning.yaml`. A pickled configuration is never opened.
"""

from __future__ import annotations

import base64
import binascii
from functools import cache

from admission.codes import ReasonCode
from admission.detect.configs import document_flags, read_config
from admission.detect.draft import Draft
from admission.detect.files import File
from admission.detect.flags import Flag, Flags, Options
from admission.detect.invocation import Invocation
from admission.detect.recipes import load_recipe
from admission.detect.scripts.adapters import LoraNames, note_other_adapter, put_bits, put_lora
from admission.detect.scripts.by_recipe import flags_of, match_of
from admission.detect.scripts.family import Call, Family, Match
from admission.detect.scripts.hf_arguments import put_training_arguments, with_trainer
from admission.detect.scripts.hf_doubts import note_surroundings
from admission.detect.scripts.hf_flags import OPTIONS, is_on_cpu
from admission.detect.scripts.hf_models import put_model
from admission.detect.scripts.hf_precision import put_precision
from admission.detect.scripts.hf_sharing import note_unread, put_sharing
from admission.detect.scripts.tolerant import tolerant_config
from admission.detect.scripts.verbs import number_of

NAME = "fms_hf_tuning"
PATH = "SFT_TRAINER_CONFIG_JSON_PATH"
ENCODED = "SFT_TRAINER_CONFIG_JSON_ENV_VAR"
_ALL_GPUS = "SET_NUM_PROCESSES_TO_NUM_GPUS"
_DEFAULTS_FILE = "FSDP_DEFAULTS_FILE_PATH"
_LORA = LoraNames(
    rank="r", alpha="lora_alpha", dropout="lora_dropout", targets="target_modules", saved=""
)
_FSDP = "default of fms-hf-tuning fixtures/accelerate_fsdp_defaults.yaml"


def match(invocation: Invocation, _flags: Flags) -> Match:
    """Return how sure it is: its module, its launcher, or its script in its folder."""
    return match_of(invocation, load_recipe(NAME))


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    is_launcher = call.invocation.name == "accelerate_launch.py"
    flags = call.flags
    if is_launcher or not flags.given:
        flags = flags.over(_configuration(call, draft))
    call = with_trainer(call, flags)
    draft.put("framework", "pytorch", f"{call.invocation.where} fms-hf-tuning")
    draft.put("objective", "sft", f"{call.invocation.where} fms-hf-tuning")
    put_model(call, draft)
    flash = call.flags.setting("use_flash_attn")
    if flash is not None and flash.is_on:
        draft.put("model.attention", "flash_attention_2", flash.source)
    length, packing = call.flags.setting("max_seq_length"), call.flags.setting("packing")
    draft.integer("input.sequenceLength", length)
    if packing is not None and not packing.is_on:
        draft.put("input.padding", "longest", packing.source)
    put_precision(call, draft, is_trainer=True)
    put_training_arguments(call, draft)
    _put_adapter(call, draft)
    if is_launcher:
        _put_launch(call, draft)
    else:
        put_sharing(call, draft)
    note_surroundings(call, draft, is_own=True)


def _configuration(call: Call, draft: Draft) -> Flags:
    """Return what the JSON says; the encoded one is taken first. One that is not seen is a gap."""
    variables = call.invocation.variables
    for name in (ENCODED, PATH):
        for word in variables.get(name, ())[:1]:
            if not word.text:
                continue
            where = f"{call.invocation.path}.env"
            if not word.is_known:
                _gap(draft, where, f"{name} {word.text:.80} is not resolved", code=word.code)
                return Flags()
            file = call.read_file(word.text) if name == PATH else _decoded(word.text)
            return _of_file(file, draft, where=where, name=name)
    _gap(draft, call.origin, f"neither {PATH} nor {ENCODED} is set")
    return Flags()


def _of_file(file: File, draft: Draft, *, where: str, name: str) -> Flags:
    config = read_config(file)
    if config.problem and file.text is not None:
        tolerated = tolerant_config(file)
        if tolerated is not None:
            draft.doubt(
                f"{where}: {file.source} is no valid JSON, the job itself will fail to parse it; "
                "its keys are read one by one"
            )
            config = tolerated
    if config.problem:
        _gap(draft, where, f"{file.path:.120} {config.problem}", code=ReasonCode.DOCUMENT)
        return Flags()
    return document_flags(config.document, told_by=config.source or f"env {name}", path=where)


def _decoded(text: str) -> File:
    """Return the JSON that is encoded in *text*; a pickle is not opened."""
    try:
        decoded = base64.b64decode(text, validate=False).decode("utf-8")
    except (binascii.Error, ValueError):
        return File(path=ENCODED, problem="is no JSON in base64; a pickle is never opened")
    return File(path=ENCODED, text=decoded, source=f"env {ENCODED}")


def _put_adapter(call: Call, draft: Draft) -> None:
    """Set the tuning method: none by default; bits by the acceleration framework's switch."""
    flags = call.flags
    flag = flags.setting("peft_method")
    kind = draft.word("adapter", flag)
    if flag is not None and kind is not None and kind.lower() == "lora":
        put_lora(draft, flags, source=flag.source, names=_LORA)
    elif flag is not None and kind is not None and kind.lower() == "pt":
        draft.put("adapter.type", "prompt_tuning", flag.source)
        draft.integer("adapter.virtualTokens", flags.setting("num_virtual_tokens"))
    elif flag is not None and kind is not None and kind.lower() != "none":
        note_other_adapter(draft, flag, what=f"{kind:.40} is not read yet")
    bnb, gptq = flags.setting("bitsandbytes"), flags.setting("auto_gptq")
    if bnb is not None and bnb.values:
        scheme = bnb.values[0].text.lower().strip("[\"' ")
        put_bits(draft, 4, source=bnb.source, scheme=scheme if scheme in ("nf4", "fp4") else "")
    elif gptq is not None:
        put_bits(draft, 4, source=gptq.source, scheme="gptq")


def _put_launch(call: Call, draft: Draft) -> None:
    """Set what its launcher does with the GPUs: all of them, by FSDP if they are several."""
    flags, variables = call.flags, call.invocation.variables
    for name in ("accelerate_launch_args.config_file", "accelerate_launch_args.use_deepspeed"):
        own = flags.setting(name)
        if own is not None and own.is_on:
            note_unread(draft, own, "decides how cards share the work and is not read yet")
            return
    told = flags.setting("accelerate_launch_args.num_processes")
    words = variables.get(_ALL_GPUS, ())
    takes_all = not words or words[0].text.lower() == "true"
    number = call.gpus if takes_all or told is None else number_of(told) or call.gpus
    source = f"{told.source}" if told is not None and not takes_all else _source_of_all(call)
    if number > 1 and variables.get(_DEFAULTS_FILE):
        flag = _variable(call, _DEFAULTS_FILE)
        note_unread(draft, flag, "decides how cards share the work and is not read yet")
        return
    machines = number_of(flags.setting("accelerate_launch_args.num_machines")) or 1
    if number == 1:
        draft.put("parallelism.strategy", "none", source)
        return
    draft.put("parallelism.strategy", "fsdp", _FSDP)
    draft.put("parallelism.implementation", "fsdp1", _FSDP)
    draft.put("parallelism.dataParallel", number * machines, source)


def _source_of_all(call: Call) -> str:
    return f"default of fms-hf-tuning accelerate_launch.py: a process for each of {call.gpus} GPUs"


def _variable(call: Call, name: str) -> Flag:
    invocation = call.invocation
    values = invocation.variables.get(name, ())
    return Flag(
        name=name,
        spelling=name,
        values=values,
        where=invocation.where,
        path=invocation.path,
        origin="env",
    )


def _gap(draft: Draft, path: str, reason: str, *, code: str = ReasonCode.NO_MODEL) -> None:
    draft.is_open = True
    draft.gap(
        "model.name",
        "input.batchSize",
        code=code,
        path=path,
        reason=reason,
        hint="put the JSON in a ConfigMap that the pod mounts, or state it in the annotation "
        "vramgate.dev/spec: {model: {source: huggingface, name: …}, input: {batchSize: …}}",
    )


@cache
def _options() -> Options:
    return Options(names={**OPTIONS.names, **load_recipe(NAME).options.names})


FAMILY = Family(
    name="fms-hf-tuning",
    flags=lambda invocation: flags_of(invocation, NAME, _options()),
    match=match,
    read=read,
    is_on_cpu=is_on_cpu,
    may_claim=lambda invocation: match_of(invocation, load_recipe(NAME)) is not Match.NO,
)
