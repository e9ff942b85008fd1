# Two stages: the first resolves the locked requirements, the second carries only the result.
#   docker build .                               answers reviews with PyTorch jobs estimated
#   docker build --build-arg EXTRA=base .        no framework: reads jobs, estimates nothing
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
# base, torch, tensorflow or jax: one of requirements/*.txt
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

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="vramgate" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/vramgate /opt/vramgate
# Nothing is written to the image at run time: the root file system can be read-only.
ENV PATH=/opt/vramgate/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["vramgate"]
CMD ["serve", "--config", "/etc/vramgate/settings.yaml"]
