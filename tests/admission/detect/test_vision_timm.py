"""timm's train.py with a configuration file."""

from __future__ import annotations

from tests.admission.detect.jobs import config_map, container, found, job, read

MODEL, BATCH, SIZE = "model.name", "input.batchSize", "input.imageSize"
PRECISION, STEPS = "training.precision", "training.gradientAccumulationSteps"


def test_timm_reads_its_configuration_under_the_flags() -> None:
    """A switch that is off in the file is off, and null is nothing."""
    body = container(
        "python",
        "/timm/train.py",
        "--config=/c/run.yaml",
        "-b=64",
        volumeMounts=[{"name": "v", "mountPath": "/c"}],
    )
    obj = job(body)
    obj["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "runs"}}]
    text = (
        "model: convnext_base\nbatch_size: 8\namp: true\namp_dtype: bfloat16\nopt: adamw\n"
        "channels_last: false\nmodel_ema: true\nimg_size: null\ninput_size: [3, 288, 288]\n"
        "grad_accum_steps: 2\n"
    )
    expected = {
        MODEL: "convnext_base",
        BATCH: 64,
        PRECISION: "amp-bf16",
        "training.optimizer.name": "adamw",
        "runtime.memoryFormat": None,
        "training.ema": True,
        SIZE: [3, 288, 288],
        STEPS: 2,
    }

    reading = read(obj, documents=config_map("runs", run__yaml=text))

    assert found(reading, *expected) == expected
    assert reading.spec is not None
