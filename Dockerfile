# Three stages: the locked requirements are installed, everything that starts programs is taken out
# of the image they run on, and the rest is copied into an empty one: it has no shell.
#   docker build .                               answers reviews with PyTorch jobs estimated
#   docker build --build-arg EXTRA=frameworks .  those of TensorFlow and JAX too
#   docker build --build-arg EXTRA=base .        no framework: estimates MXNet jobs and Trace files
#   docker build --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:… .   one and the same
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
# base, torch, tensorflow, jax or frameworks: one of requirements/*.txt
ARG EXTRA=torch
WORKDIR /build
COPY requirements/ requirements/
RUN python -m venv /opt/vramgate \
 && /opt/vramgate/bin/pip install --no-cache-dir --require-hashes -r requirements/bootstrap.txt \
 && /opt/vramgate/bin/uv pip install --python /opt/vramgate/bin/python --no-cache \
      --compile-bytecode --require-hashes -r "requirements/${EXTRA}.txt"
COPY requirements/build.txt requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY estimator/ estimator/
COPY admission/ admission/
RUN python -m venv /opt/builder \
 && /opt/builder/bin/pip install --no-cache-dir --require-hashes -r requirements/build.txt \
 && /opt/builder/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/vramgate/bin/uv pip install --python /opt/vramgate/bin/python --no-cache \
      --compile-bytecode --no-deps /wheels/*.whl \
 && /opt/vramgate/bin/uv pip uninstall --python /opt/vramgate/bin/python uv pip

FROM ${PYTHON_IMAGE} AS runtime
COPY --from=build /opt/vramgate /opt/vramgate
# Python and its libraries stay, and `sleep`, which the chart's preStop hook runs. Shells, Perl,
# dpkg, apt, pip and everything else that can be started goes; the shell that does this goes too.
RUN rm -rf /usr/local/bin/pip* /usr/local/bin/idle* /usr/local/bin/pydoc* /usr/local/bin/2to3* \
      /usr/local/lib/python3.11/site-packages/* /usr/local/lib/python3.11/ensurepip \
      /usr/local/lib/python3.11/idlelib /usr/lib/apt /usr/lib/dpkg /usr/share/perl* \
      /usr/lib/*/perl* /var/lib/apt /var/lib/dpkg /var/cache/apt /etc/apt /root/.cache \
 && find /usr/bin /usr/sbin /usr/local/sbin -mindepth 1 ! -name sleep -delete

FROM scratch
LABEL org.opencontainers.image.title="vramgate" \
      org.opencontainers.image.licenses="Apache-2.0"
# The whole of it, flattened: layers below would keep what was taken out.
# hadolint ignore=DL3067
COPY --from=runtime / /
# Nothing is written to the image at run time: the root file system can be read-only.
ENV PATH=/opt/vramgate/bin:/usr/local/bin:/usr/bin \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["vramgate"]
CMD ["serve", "--config", "/etc/vramgate/settings.yaml"]
