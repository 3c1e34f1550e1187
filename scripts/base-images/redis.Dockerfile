# Stands in for redis:7.2: Debian 12's Redis 7.0, with the data in /data and without root's rights.
FROM localhost/debian:bookworm
RUN apt-get update -q && apt-get install -q -y --no-install-recommends redis-server redis-tools && rm -rf /var/lib/apt/lists/*
RUN mkdir -p /data && chown redis:redis /data
LABEL seckill.made-of="redis-server of Debian 12 (7.0)"
VOLUME /data
WORKDIR /data
COPY redis.sh /usr/local/bin/entrypoint
ENTRYPOINT ["/bin/sh", "/usr/local/bin/entrypoint"]
CMD ["redis-server"]
