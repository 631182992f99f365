# gguf-audit in a container that needs no root, no network for local checks, and may have a
# read-only root file system:
#
#   docker build -t gguf-audit .
#   docker run --rm --read-only --tmpfs /tmp --network none \
#     -v "$PWD/models:/models:ro" gguf-audit check /models

FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY auditor auditor
COPY rules rules
# Compiled here, because nothing can be written later.
RUN python -m venv /opt/gguf-audit \
 && /opt/gguf-audit/bin/pip install --no-cache-dir --disable-pip-version-check --compile . \
 && /opt/gguf-audit/bin/pip uninstall --yes pip

FROM python:3.12-slim
COPY --from=build /opt/gguf-audit /opt/gguf-audit
# What the Hub sends is kept where a tmpfs or a volume can be.
ENV PATH=/opt/gguf-audit/bin:$PATH \
    HOME=/tmp \
    HF_HOME=/tmp/huggingface \
    PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
WORKDIR /
# The first process of a container doesn't hear SIGTERM unless it asks to.
STOPSIGNAL SIGINT
ENTRYPOINT ["gguf-audit"]
CMD ["--help"]
