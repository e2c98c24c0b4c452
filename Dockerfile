# The fleet reconciler as a container image. How to run it and how to add exec plugins: docs/how-to/container.md.
# tests/unit/test_dockerfile.py runs the same steps without a container engine.

# A tag can be moved; a digest cannot: docker build --build-arg BASE=python:3.12-slim@sha256:...
ARG BASE=python:3.12-slim
ARG GO=golang:1.26

# sops, of its source: the sum covers its code and, by its go.sum, all that it is built of.
FROM --platform=${BUILDPLATFORM} ${GO} AS sops
ENV SOPS=github.com/getsops/sops/v3@v3.13.3 SOPS_SUM=h1:saYczbT88kD1saNChe1cAbFQe5mrRhTIfEw3TaEcmK0=
ARG TARGETOS TARGETARCH
RUN go mod download -json "$SOPS" | grep -qF "\"Sum\": \"$SOPS_SUM\"" && cd "$(go env GOMODCACHE)/$SOPS" \
    && CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w" -o /sops ./cmd/sops

FROM ${BASE} AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/fleet-reconciler
# The locked dependencies alone, so that a change of the code builds on a cached layer.
COPY requirements.lock ./
RUN /opt/fleet-reconciler/bin/pip install --require-hashes --only-binary :all: -r requirements.lock
# The wheel is built by locked tools too; they stay behind in this stage.
COPY requirements-dev.lock ./
RUN pip install --require-hashes --only-binary :all: -r requirements-dev.lock
COPY pyproject.toml README.md LICENSE ./
COPY reconciler ./reconciler
COPY examples ./examples
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .
RUN /opt/fleet-reconciler/bin/pip install --no-deps --no-index /wheels/*.whl
# pip and its copies of other packages are of no use in the image.
RUN /opt/fleet-reconciler/bin/pip uninstall --yes pip

# The same image: a virtual environment works with the Python that made it.
FROM ${BASE}
LABEL org.opencontainers.image.title="fleet-reconciler" \
      org.opencontainers.image.description="Keeps many Kubernetes clusters equal to a Git repository" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/fleet-reconciler /opt/fleet-reconciler
COPY --from=sops /sops /usr/local/bin/sops
# git and ssh fetch from URLs, and come from the distribution of the base. OpenSSH wants a name for the user it runs as.
RUN apt-get update && apt-get install --yes --no-install-recommends git openssh-client && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 65532 fleet \
    && useradd --uid 65532 --gid fleet --home-dir /var/lib/fleet-reconciler --no-create-home --shell /usr/sbin/nologin fleet
# Numbers, so that Kubernetes can see that it is not root (runAsNonRoot).
RUN install -d -o 65532 -g 65532 -m 700 /var/lib/fleet-reconciler
ENV PATH=/opt/fleet-reconciler/bin:$PATH \
    MALLOC_ARENA_MAX=2 \
    STATE_DIRECTORY=/var/lib/fleet-reconciler \
    HOME=/var/lib/fleet-reconciler \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /var/lib/fleet-reconciler
VOLUME ["/var/lib/fleet-reconciler"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["reconciler"]
CMD ["--help"]
