"""The Keras model of a job: by name from the applications, or from its configuration.

JobSpec -> keras.Model
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

import keras
from keras.src.legacy.saving import saving_utils

from estimator.errors import EstimatorError, Problem, SpecError, UnsupportedJobError
from estimator.frontends.keras.configs import check_config
from estimator.frontends.keras.reasons import reason_of
from estimator.frontends.keras.sequential import built_once
from estimator.frontends.keras.walking import check_steps
from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec, Precision

POLICIES: dict[Precision, str] = {
    Precision.FP32: "float32",
    Precision.TF32: "float32",
    Precision.BF16: "bfloat16",
    Precision.FP16: "float16",
    Precision.AMP_BF16: "mixed_bfloat16",
    Precision.AMP_FP16: "mixed_float16",
}
"""The global dtype policy of each precision."""
OURS = frozenset({"weights", "input_tensor", "input_shape", "classes", "name"})
"""Keywords of an application that are set here."""
REFUSALS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)
"""What Keras raises at a configuration or at options that it does not take."""
COMPILED = "compile_config"
MAX_ELEMENTS = 1 << 40
USUAL_SHAPE = (224, 224, 3)
"""Of applications that take any size where none is told (MobileNetV3): as their weights had."""


def build_model(spec: JobSpec, notebook: Notebook | None = None) -> Any:
    """Return the model of *spec*; the global dtype policy is then that of its precision.

    How a saved model was trained is not read from its configuration, which is noted.

    Raises:
        SpecError: if the options or sizes are not those of the model.
        UnsupportedJobError: if there is no such model, or Keras does not build it.
    """
    keras.config.set_dtype_policy(POLICIES[spec.training.precision])
    keras.config.disable_traceback_filtering()  # which hides the layer and words of its own error
    try:
        model = _configured(spec.model.config) if spec.model.config else _named(spec)
    except EstimatorError:
        raise
    except RecursionError as error:
        raise _unbuildable(
            "its layers follow each other, or nest, deeper than Keras itself walks"
        ) from error
    except REFUSALS as error:
        raise _unbuildable(reason_of(error)) from error
    if not model.built:
        message = "says no shape of its input: save it once it is built, or begin with an Input"
        raise SpecError([Problem(path="model.config", message=message)])
    check_steps(model, spec)
    if notebook is not None and spec.model.config and spec.model.config.get(COMPILED):
        notebook.assume(
            AssumptionCode.DEFAULT,
            f"model.config.{COMPILED}",
            "not read",
            "optimizer, loss and compilation are those of `training`",
        )
    elements = sum(_elements(variable) for variable in model.weights)
    if elements > MAX_ELEMENTS:
        raise _unbuildable(f"it has {elements} weights, at most {MAX_ELEMENTS} are accepted")
    return model


def _configured(config: Mapping[str, Any]) -> Any:
    check_config(config)
    document = {key: config[key] for key in config if key not in (COMPILED, "build_config")}
    with built_once():
        if "module" in config:
            return keras.models.model_from_json(json.dumps(document))
        return saving_utils.model_from_config(document)  # of Keras 2, as in HDF5 files


OTHER_NAMES = {"inception3": "inceptionv3"}
"""Names of tf_cnn_benchmarks -> the application that is the same network."""


def _named(spec: JobSpec) -> Any:
    name = _plain(spec.model.name.rpartition("/")[2])
    name = OTHER_NAMES.get(name, name)
    builder = _applications().get(name)
    if builder is None:
        close = get_close_matches(name, _applications(), n=3, cutoff=0.6)
        raise UnsupportedJobError(
            f"model.name: '{spec.model.name}' is not in keras.applications",
            code=UnknownCode.MODEL,
            path="model.name",
            hint=f"did you mean {' or '.join(close)}?" if close else None,
        )
    accepted = set(inspect.signature(builder).parameters) - OURS
    unknown = [key for key in spec.model.options if key not in accepted]
    if unknown:
        raise SpecError(
            [
                Problem(
                    path=f"model.options.{key}",
                    message=f"not an option of '{spec.model.name}'; accepted: "
                    + ", ".join(sorted(accepted)),
                )
                for key in unknown
            ]
        )
    options: dict[str, Any] = dict(spec.model.options)
    if spec.input.image_size is not None:
        channels, height, width = spec.input.image_size
        is_last = keras.config.image_data_format() == "channels_last"
        options["input_shape"] = (height, width, channels) if is_last else (channels, height, width)
    if spec.model.num_labels is not None:
        options["classes"] = spec.model.num_labels
    model = builder(weights=None, **options)
    if "input_shape" not in options and None in model.input_shape[1:]:
        return builder(weights=None, input_shape=USUAL_SHAPE, **options)
    return model


@cache
def _applications() -> Mapping[str, Callable[..., Any]]:
    return {
        _plain(name): builder
        for name, builder in vars(keras.applications).items()
        if name[0].isupper() and callable(builder)
    }


def application_names() -> tuple[str, ...]:
    """Return the name of every application, as Keras writes it."""
    return tuple(sorted(name for name in vars(keras.applications) if name[0].isupper()))


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _elements(variable: Any) -> int:
    elements = 1
    for size in variable.shape:
        elements *= size
    return elements


def _unbuildable(reason: str) -> UnsupportedJobError:
    return UnsupportedJobError(
        f"model: cannot be built: {reason}", code=UnknownCode.MODEL_CONFIG, path="model"
    )
