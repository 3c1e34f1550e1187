# One image for all roles: `docker run seckill --role relay`. Built with `docker build -t seckill .`

# The newest compiler is not needed; the oldest that works is in Cargo.toml (rust-version).
FROM rust:1.95-slim-bookworm AS build
WORKDIR /build
COPY . .
# The caches keep a second build short; the binary must leave the cached folder in the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --profile dist --locked --bin seckill && cp target/dist/seckill /seckill

# glibc, CA certificates and nothing to log in with.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /seckill /usr/local/bin/seckill
COPY config /etc/seckill
# A container's loopback is nobody else's: listen on all of its addresses.
ENV SECKILL__HTTP__LISTEN=0.0.0.0:8080 \
    SECKILL__ADMIN__LISTEN=0.0.0.0:9090 \
    SECKILL__LOG__FORMAT=json
# 8080: buyers. 9090: operators only (health, metrics, admin API, console).
EXPOSE 8080 9090
USER nonroot
# SIGTERM drains the roles before the end; allow runtime.drain_ms for it.
STOPSIGNAL SIGTERM
ENTRYPOINT ["seckill"]
