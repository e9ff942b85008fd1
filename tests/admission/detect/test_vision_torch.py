"""PyTorch's programs for pictures: references, transformers' authors, NVIDIA's, other loaders."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.jobs import codes, found, read_script

MODEL, BATCH, SIZE = "model.name", "input.batchSize", "input.imageSize"
PRECISION, OPTIMIZER = "training.precision", "training.optimizer"
STEPS, STRATEGY, DEGREE = (
    "training.gradientAccumulationSteps",
    "parallelism.strategy",
    "parallelism.dataParallel",
)
SGD = {"name": "sgd", "momentum": 0.9, "weightDecay": 0.0001}
RUN = "torchrun --nproc_per_node=8 "


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "references/detection/train.py --model fasterrcnn_resnet50_fpn -b 4 --amp",
            {
                "model": {"source": "torchvision", "name": "fasterrcnn_resnet50_fpn"},
                BATCH: 4,
                SIZE: None,
                PRECISION: "amp-fp16",
                OPTIMIZER: SGD,
                "training.evaluation": {"batchSize": 1},
                DEGREE: 8,
            },
        ),
        (
            "references/detection/train.py --opt adamw --trainable-backbone-layers 5",
            {
                MODEL: "maskrcnn_resnet50_fpn",
                BATCH: 2,
                f"{OPTIMIZER}.name": "adamw",
                "model.options": {"trainable_backbone_layers": 5},
            },
        ),
        (
            "references/segmentation/train.py --model deeplabv3_resnet50 --aux-loss",
            {
                MODEL: "deeplabv3_resnet50",
                BATCH: 8,
                SIZE: [3, 480, 480],
                "model.options": {"aux_loss": True},
            },
        ),
        (
            "references/video_classification/train.py --clip-len 32 --train-crop-size 172 172",
            {MODEL: "r2plus1d_18", BATCH: 24, "input.videoFrames": 32, SIZE: [3, 172, 172]},
        ),
        (
            "references/optical_flow/train.py --train-dataset things --batch-size 3",
            {MODEL: "raft_large", BATCH: 3, SIZE: [3, 400, 720], f"{OPTIMIZER}.name": "adamw"},
        ),
        (
            "references/classification/train.py --model=resnet50 --apex",
            {MODEL: "resnet50", PRECISION: "amp-fp16", STEPS: 1},
        ),
        (
            "/opt/deit/main.py --model deit_small_patch16_224 --batch-size 256",
            {
                MODEL: "deit_small_patch16_224",
                BATCH: 256,
                PRECISION: "amp-fp16",
                "training.ema": True,
                "training.evaluation": {"batchSize": 384},
                OPTIMIZER: {"name": "adamw", "weightDecay": 0.05},
                "model.companions": None,
            },
        ),
        (
            "/opt/deit/main.py --distillation-type hard --teacher-model regnety_160 --no-model-ema",
            {
                "model.companions": [{"source": "timm", "name": "regnety_160"}],
                "training.ema": None,
            },
        ),
        (
            "/w/mae/main_pretrain.py --model mae_vit_base_patch16 --accum_iter 2",
            {MODEL: "mae_vit_base_patch16", BATCH: 64, STEPS: 2, PRECISION: "amp-fp16"},
        ),
        (
            "/w/mae/main_finetune.py --model vit_base_patch16 --batch_size 32 --nb_classes 10",
            {
                MODEL: "vit_base_patch16_224",
                BATCH: 32,
                "model.numLabels": 10,
                "model.options": {"global_pool": "avg"},
            },
        ),
        (
            "/w/mae/main_linprobe.py",
            {MODEL: "vit_large_patch16_224", BATCH: 512, "adapter.type": "linear_probe"},
        ),
        (
            "/ConvNeXt/main.py --model convnext_base --update_freq 4 --use_amp true "
            "--model_ema true",
            {MODEL: "convnext_base", STEPS: 4, PRECISION: "amp-fp16", "training.ema": True},
        ),
        (
            "/ConvNeXt/main.py --use_amp false",
            {MODEL: "convnext_tiny", PRECISION: "fp32", "training.ema": None},
        ),
        (
            "/Swin-Transformer/main.py --cfg configs/swin/swin_base_patch4_window7_224_22k.yaml "
            "--use-checkpoint",
            {
                MODEL: "swin_base_patch4_window7_224",
                "model.numLabels": 21841,
                BATCH: 128,
                SIZE: [3, 224, 224],
                "training.gradientCheckpointing": "full",
                PRECISION: "amp-fp16",
            },
        ),
        (
            "/Swin-Transformer/main.py --cfg configs/swinv2/swinv2_tiny_patch4_window8_256.yaml "
            "--disable_amp --opts DATA.BATCH_SIZE 32 TRAIN.ACCUMULATION_STEPS 2",
            {MODEL: "swinv2_tiny_window8_256", BATCH: 32, STEPS: 2, PRECISION: "fp32"},
        ),
        (
            "/workspace/rn50/launch.py --model resnet50 --precision AMP --mode convergence "
            "--platform DGXA100 /imagenet",
            {
                "model": {"source": "torchvision", "name": "resnet50"},
                BATCH: 256,
                STEPS: 1,
                PRECISION: "amp-fp16",
                "training.optimizer.momentum": 0.875,
                "runtime.memoryFormat": "channels_last",
            },
        ),
        (
            "/workspace/rn50/main.py --arch efficientnet-b4 -b 32 --optimizer-batch-size 1024",
            {MODEL: "efficientnet_b4", BATCH: 32, STEPS: 4, SIZE: [3, 380, 380], PRECISION: "fp32"},
        ),
        (
            "/workspace/bert/run_pretraining.py --config_file bert_configs/large.json --fp16 "
            "--train_batch_size=8192 --gradient_accumulation_steps=128 --max_seq_length=128",
            {
                "model.config.num_hidden_layers": 24,
                "model.task": "pre-training",
                BATCH: 64,
                STEPS: 128,
                "input.sequenceLength": 128,
                PRECISION: "amp-fp16",
                OPTIMIZER: {"name": "lamb"},
            },
        ),
        (
            "main_amp.py -a resnet50 -b 224 --opt-level O2 /data",
            {MODEL: "resnet50", BATCH: 224, PRECISION: "fp16", "training.masterWeights": True},
        ),
        (
            "/dali/main.py -a resnet18 --dali_cpu --opt-level O1",
            {MODEL: "resnet18", BATCH: 256, PRECISION: "amp-fp16"},
        ),
        (
            "/opt/resnet50/src/resnet50.py --backend nccl --batch-size 256",
            {
                MODEL: "resnet50",
                BATCH: 256,
                SIZE: [3, 224, 224],
                PRECISION: "fp32",
                STRATEGY: "ddp",
            },
        ),
    ],
)
def test_programs_with_a_batch_of_one_process(line: str, expected: dict[str, Any]) -> None:
    """Each under a launcher with eight processes: the batch is not divided."""
    reading = read_script(RUN + line, gpus=8)

    assert found(reading, *expected) == expected
    assert reading.spec is not None


@pytest.mark.parametrize(
    ("line", "gpus", "expected"),
    [
        (
            "mpirun -np 4 python pytorch_synthetic_benchmark.py --model vgg16 --batch-size 64",
            4,
            {
                MODEL: "vgg16",
                BATCH: 64,
                OPTIMIZER: {"name": "sgd"},
                "parallelism.implementation": "horovod",
                DEGREE: 4,
            },
        ),
        (
            "mpirun -np 4 python pytorch_imagenet_resnet50.py --batches-per-allreduce 2",
            4,
            {MODEL: "resnet50", BATCH: 32, STEPS: 2, "training.evaluation": {"batchSize": 32}},
        ),
        (
            "bpslaunch python /byteps/example/pytorch/benchmark_byteps.py --model resnet101",
            8,
            {MODEL: "resnet101", DEGREE: 8, "parallelism.implementation": None},
        ),
        (
            "python ./multiproc.py --nproc_per_node 8 ./launch.py --model resnext101-32x4d "
            "--precision TF32 --mode convergence --platform DGXA100 /imagenet --raport-file r.json",
            8,
            {"model": {"source": "timm", "name": "resnext101_32x4d"}, DEGREE: 8, PRECISION: "fp32"},
        ),
        (
            "python train_imagenet.py --config-file=rn50_configs/rn50_16_epochs.yaml "
            "--data.train_dataset=/x --training.batch_size=256",
            8,
            {MODEL: "resnet50", BATCH: 256, SIZE: [3, 192, 192], DEGREE: 8, STRATEGY: "ddp"},
        ),
        (
            "python tools/train_net.py --num-gpus 8 --config-file c.yaml SOLVER.IMS_PER_BATCH 16",
            8,
            {MODEL: None, BATCH: 2, DEGREE: 8},
        ),
        (
            "torchrun --nproc_per_node=2 mmdetection/tools/train.py configs/x.py --amp "
            "--cfg-options train_dataloader.batch_size=4 --launcher pytorch",
            2,
            {MODEL: None, BATCH: 4, PRECISION: "amp-fp16", DEGREE: 2},
        ),
    ],
)
def test_programs_that_share_the_work_their_own_way(
    line: str, gpus: int, expected: dict[str, Any]
) -> None:
    """Horovod, BytePS, processes of the program's own."""
    assert found(read_script(line, gpus=gpus), *expected) == expected


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("python /Swin-Transformer/main.py --cfg mine.yaml", ReasonCode.DOCUMENT),
        ("python /Swin-Transformer/main.py --batch-size 8", ReasonCode.NO_MODEL),
        ("python /workspace/rn50/main.py --arch efficientnet-widese-b0", ReasonCode.UNSUPPORTED),
        (
            "python /workspace/rn50/launch.py --model resnet50 --precision FP8 --platform DGXA100",
            ReasonCode.NO_MODEL,
        ),
        ("python /workspace/ssd/main.py --batch-size 64", ReasonCode.UNSUPPORTED),
        ("python /workspace/bert/run_pretraining.py --config_file x.json", ReasonCode.DOCUMENT),
        ("python /workspace/bert/run_pretraining.py --fp16", ReasonCode.NO_MODEL),
        ("python references/similarity/train.py -p 4", ReasonCode.UNSUPPORTED),
        ("python train_net.py --config-file c.yaml", ReasonCode.UNSUPPORTED),
        ("python /mmseg/tools/train.py configs/x.py", ReasonCode.UNSUPPORTED),
        ("python main_amp.py -a resnet50 --opt-level O9 /d", ReasonCode.UNSUPPORTED),
        ("python /horovod/pytorch_mnist.py --epochs 3", ReasonCode.UNSUPPORTED),
        ("python train_imagenet.py --data.train_dataset=/x --config-file=x.yaml", "document"),
    ],
)
def test_what_no_zoo_has_or_nobody_sees_is_one_finding(line: str, code: str) -> None:
    """One reason, and a hint that would close it."""
    reading = read_script(line)

    assert codes(reading) == [code]
    assert reading.unknowns[0].hint


def test_a_name_alone_is_a_doubt_or_nothing() -> None:
    """resnet50.py with the sample's flags is read with a doubt, without them not at all."""
    likely = read_script("python /opt/app/resnet50.py --data-dir /d --model-dir /m --batch-size 8")
    unlikely = read_script("python /opt/app/resnet50.py --batch-size 8")

    assert found(likely, MODEL, BATCH) == {MODEL: "resnet50", BATCH: 8}
    assert not likely.is_certain
    assert codes(unlikely) == [ReasonCode.NO_MODEL]
