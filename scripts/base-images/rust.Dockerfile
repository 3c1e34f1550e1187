# Stands in for rust:…-slim-bookworm: a C compiler, and the toolchain of the machine that builds (mounted at /toolchain).
FROM localhost/debian:bookworm
LABEL seckill.made-of="Debian 12 and the machine's own Rust toolchain"
RUN apt-get update -q && apt-get install -q -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
RUN mkdir -p /usr/local/rust && cp -a /toolchain/bin /usr/local/rust/ && mkdir /usr/local/rust/lib && \
    cp -a /toolchain/lib/*.so* /usr/local/rust/lib/ && mkdir /usr/local/rust/lib/rustlib && \
    cp -a /toolchain/lib/rustlib/*-linux-gnu /usr/local/rust/lib/rustlib/
ENV PATH=/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    CARGO_HOME=/usr/local/cargo
