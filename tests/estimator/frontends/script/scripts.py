"""Training scripts as people write them, and what runs them here."""

from __future__ import annotations

import warnings
from pathlib import Path
from textwrap import dedent

from estimator.catalog import resolve_device
from estimator.frontends.pytorch.script.card import Shown
from estimator.frontends.pytorch.script.run import UserScript
from estimator.frontends.pytorch.script.stops import Extent
from estimator.spec import JobSpec, parse_spec
from estimator.trace import EventKind, Phase, Role, Trace
from estimator.traits import traits_of

CARD = resolve_device("a100-sxm4-40gb")
BEFORE = parse_spec(
    {
        "framework": "pytorch",
        "model": {"source": "file", "name": "script"},
        "input": {"batchSize": 1},
    }
)

IMAGES = """
    import argparse
    import torch
    import torchvision
    from torch.utils.data import DataLoader, Dataset

    class Images(Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            return torch.rand(3, 64, 64), index % 10

    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--amp", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = torchvision.models.resnet18().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", enabled=args.amp)
    criterion = torch.nn.CrossEntropyLoss().cuda()
    loader = DataLoader(Images(), batch_size=args.batch, num_workers=4, pin_memory=True)
    for epoch in range(90):
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            with torch.autocast("cuda", enabled=args.amp):
                output = model(images)
                loss = criterion(output, labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            print(f"loss {loss.item():.3f}")
"""

TRAINER = """
    import torch
    from torch.utils.data import Dataset
    from transformers import BertConfig, BertForSequenceClassification
    from transformers import Trainer, TrainingArguments

    class Texts(Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            ids = torch.randint(0, 1000, (128,))
            return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": index % 2}

    config = BertConfig(num_hidden_layers=2, num_labels=2)
    model = BertForSequenceClassification(config)
    arguments = TrainingArguments(
        output_dir="OUT", per_device_train_batch_size=8, bf16=True, report_to=[],
        num_train_epochs=1, eval_strategy="epoch", dataloader_num_workers=2, save_strategy="no",
    )
    Trainer(model=model, args=arguments, train_dataset=Texts(), eval_dataset=Texts()).train()
"""

ACCELERATE = """
    import torch
    from accelerate import Accelerator
    from torch.utils.data import DataLoader, TensorDataset
    from transformers import GPT2Config, GPT2LMHeadModel

    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = GPT2LMHeadModel(GPT2Config(n_layer=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = DataLoader(TensorDataset(torch.randint(0, 1000, (64, 128))), batch_size=4)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for epoch in range(2):
        for (ids,) in data:
            with accelerator.accumulate(model):
                loss = model(input_ids=ids, labels=ids).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            accelerator.print(accelerator.gather(loss.detach()).mean().item())
"""

LORA = """
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained("gpt2", dtype=torch.bfloat16, device_map="cuda")
    model = get_peft_model(model, LoraConfig(r=8, target_modules=["c_attn"], fan_in_fan_out=True))
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3)
    model.train()
    for step in range(100):
        ids = torch.randint(0, 1000, (2, 256)).cuda()
        out = model(input_ids=ids, labels=ids)
        out.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""

STOPPING = """
    import math
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(5408, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def collate(items):
        images, labels = zip(*items)
        return torch.stack(images).cuda(), torch.stack(labels).cuda()

    data = TensorDataset(torch.rand(256, 1, 28, 28), torch.randint(0, 10, (256,)))
    training = DataLoader(data, 32, True, num_workers=4, collate_fn=collate)
    validation = DataLoader(data, 16, collate_fn=collate)
    best, patience = math.inf, 0
    for epoch in range(100):
        model.eval()
        right, batches = 0, 0
        with torch.no_grad():
            for images, labels in validation:
                guess = model(images).argmax(1)
                right += (guess == labels).sum().item()
                guess.cpu().numpy()
                batches += 1
        assert batches == 2, batches
        model.train()
        for images, labels in training:
            loss = nn.functional.cross_entropy(model(images), labels)
            assert loss.device.type == "cuda" and loss.is_cuda
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if not torch.isfinite(loss):
                raise RuntimeError("diverged")
            if loss.item() < best:
                best = loss.item()
            else:
                patience += 1
            if patience > 3:
                raise SystemExit
            print(f"{loss:.3f}", loss, float(loss.detach()), loss.detach().cpu().numpy())
"""

DISTRIBUTED = """
    import os
    import timm
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = timm.create_model("resnet18", pretrained=True).cuda()
    model = torch.compile(DistributedDataParallel(model, device_ids=[0]))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(10):
        images = torch.rand(4, 3, 64, 64, device="cuda")
        loss = model(images).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
"""

EVALUATING = """
    import torch
    import torchvision

    model = torchvision.models.resnet18(weights="DEFAULT").eval().cuda().half()
    with torch.inference_mode():
        for index in range(10_000):
            model(torch.rand(16, 3, 64, 64).cuda().half()).softmax(-1)
"""

GENERATING = """
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained("gpt2", dtype=torch.float16).to("cuda")
    for index in range(100):
        ids = torch.randint(0, 1000, (2, 16)).cuda()
        assert model.generate(ids, max_new_tokens=4, do_sample=False).shape == (2, 20)
"""


def script_at(folder: Path, text: str, name: str = "train.py") -> Path:
    """Return the file of a script."""
    path = folder / name
    path.write_text(dedent(text))
    return path


def run(path: Path, *arguments: str, steps: int = 2, seconds: float = 300.0) -> UserScript:
    """Return the script, run."""
    extent = Extent(steps=steps, seconds=seconds)
    card = Shown(
        name=CARD.name,
        compute_capability=CARD.compute_capability,
        usable_bytes=CARD.usable_bytes,
    )
    script = UserScript(path=path, arguments=arguments, card=card, extent=extent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs: here all of them are errors
        script.trace_job(BEFORE, traits=traits_of(CARD))
    return script


def traced(script: UserScript) -> Trace:
    """Return the trace of a script that ran."""
    return script.trace_job(BEFORE, traits=traits_of(CARD))


def job(script: UserScript) -> JobSpec:
    """Return the job of a script that ran."""
    assert script.job is not None
    return script.job


def peak(trace: Trace) -> int:
    """Return the most bytes alive, in blocks of 512 bytes."""
    alive = most = 0
    for kind, tensor in zip(trace.kinds, trace.ids, strict=True):
        if kind in (EventKind.ALLOC, EventKind.FREE):
            block = -(-trace.sizes[tensor] // 512) * 512
            alive += block if kind == EventKind.ALLOC else -block
            most = max(most, alive)
    return most


def allocations(trace: Trace, *, smallest: int = 4096) -> list[tuple[int, Phase, str]]:
    """Return size, phase and operator of what a step allocates, batches and small ones aside."""
    found = []
    for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        where = trace.place_table[place]
        is_counted = kind == EventKind.ALLOC and where.step > 0
        if is_counted and trace.sizes[tensor] >= smallest and trace.roles[tensor] != Role.INPUT:
            found.append((trace.sizes[tensor], where.phase, where.operator))
    return found
