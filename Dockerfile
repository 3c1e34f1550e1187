# One image for all roles: `docker run seckill --role relay`. Built with `make image`, or with `docker build -t seckill .`
# (BuildKit; `--build-arg SECKILL_COMMIT=…` for the commit that `--version` names).

# The newest compiler is not needed; the oldest that works is in Cargo.toml (rust-version). The same Debian as below, so that the
# binary meets the C library it was linked with.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /build
COPY . .
# The image holds the product only; the workspace wants to see its other package, the load generator, which is not copied.
RUN mkdir -p bench/src && touch bench/src/lib.rs
# The caches keep a second build short: crates and their compiled form survive a change of the source. `locked`, because two
# builds at once would share them; the binary must leave the cached folder in the same step.
ARG SECKILL_COMMIT=
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/build/target,sharing=locked \
    cargo build --profile dist --locked --package seckill && cp target/dist/seckill /seckill

# glibc, CA certificates (/etc/ssl/certs) and nothing to log in with. Not the static base: that would ask for musl, whose
# resolver and allocator we do not test. Times are UTC everywhere, so nothing reads the zone files.
FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="seckill" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build --chmod=0555 /seckill /usr/local/bin/seckill
# The defaults are in the binary; this is what `--config /etc/seckill/production.toml` finds.
COPY --chmod=0444 config/production.toml /etc/seckill/production.toml
# A container's loopback is nobody else's: listen on all of its addresses.
ENV SECKILL__HTTP__LISTEN=0.0.0.0:8080 \
    SECKILL__ADMIN__LISTEN=0.0.0.0:9090 \
    SECKILL__LOG__FORMAT=json
# 8080: buyers. 9090: operators only (health, metrics, admin API, console).
EXPOSE 8080 9090
# `nonroot`, as a number: Kubernetes' runAsNonRoot can only judge numbers. Nothing is written, the root may be read-only.
USER 65532:65532
# No HEALTHCHECK: it would need a program to ask with, and whoever runs this asks /livez and /readyz itself. Docker alone would
# only note the answer; a process that cannot go on ends, and `restart` starts it.
# SIGTERM drains the roles before the end; allow more than runtime.drain_ms for it.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/seckill"]
