"""Import everything a trace may need, once, in the process that forks.

    (nothing) -> torch and the model zoos in memory

After it: no thread, no autograd run, no network. A fork pays for no import.
"""

from __future__ import annotations

import logging
import os
import warnings
from importlib import import_module

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TRANSFORMERS_DISABLE_TORCH_CHECK", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

EAGER = (
    "torch.utils.checkpoint",
    "torch.optim",
    "torch._meta_registrations",
    "torchvision.models",
    "timm",
    "transformers.modeling_utils",
    "transformers.models.auto.modeling_auto",
    "transformers.cache_utils",
    "transformers.masking_utils",
    "transformers.loss.loss_utils",
)
"""Modules every fork may need."""

MODELS = [
    "albert",
    "bart",
    "beit",
    "bert",
    "bloom",
    "clip",
    "codegen",
    "convnext",
    "deberta_v2",
    "deit",
    "distilbert",
    "electra",
    "falcon",
    "gemma",
    "gemma2",
    "gpt2",
    "gpt_neo",
    "gpt_neox",
    "gptj",
    "llama",
    "mistral",
    "mixtral",
    "mt5",
    "opt",
    "pegasus",
    "phi",
    "phi3",
    "qwen2",
    "qwen3",
    "resnet",
    "roberta",
    "swin",
    "t5",
    "vit",
    "wav2vec2",
    "whisper",
    "xlm_roberta",
]
"""Families of transformers that are imported before the fork; others on demand."""


def import_all() -> None:
    """Import `EAGER` and `MODELS`; what is not installed is left out.

    bitsandbytes, which peft brings, looks for CPU kernels on the Hub and says that there are none.
    """
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (*EAGER, *(f"transformers.models.{m}.modeling_{m}" for m in MODELS)):
            try:
                import_module(name)
            except ImportError:
                if name.startswith("torch."):
                    raise


import torch  # noqa: E402  (the environment above must be set first)

torch.set_num_threads(1)
