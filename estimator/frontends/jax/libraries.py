"""Import everything a JAX job may need, once, in the process that forks.

    (nothing) -> jax, Keras on it and XLA's compiler in memory

After it: no thread, no client, no operation run. A fork pays for no import.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module

from estimator.compilers import target_for
from estimator.errors import TraceError, UnsupportedJobError
from estimator.frontends import install_hint
from estimator.notes import UnknownCode
from estimator.spec import Framework

BACKEND = "jax"
ENVIRONMENT = {
    "KERAS_BACKEND": BACKEND,
    "JAX_PLATFORMS": "cpu",
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
    # A card in this machine must not change the answer.
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
SOME_TARGET = "8.0"
"""Any target will do to load the compiler."""


def import_all() -> None:
    """Import JAX, Keras on it and the compiler.

    Raises:
        TraceError: if this process has imported Keras on another backend.
        UnsupportedJobError: if the plugin for CUDA is not installed.
    """
    os.environ.update(ENVIRONMENT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keras = import_module("keras")
        if keras.config.backend() != BACKEND:
            raise TraceError(f"keras is on the backend '{keras.config.backend()}' in this process")
        # Keras looks for TensorFlow while it reads a configuration: seconds and 300 MB for nothing.
        import_module("keras.src.utils.module_utils").tensorflow._available = False
        import_module("estimator.frontends.jax.export_file")
        xla = import_module("estimator.compilers.xla")
        try:
            xla.load(target_for(SOME_TARGET).text)
        except NotImplementedError as error:
            raise UnsupportedJobError(
                "framework: 'jax' needs the package 'jax-cuda13-plugin', which is not installed",
                code=UnknownCode.FRAMEWORK,
                path="framework",
                hint=install_hint(Framework.JAX),
            ) from error
