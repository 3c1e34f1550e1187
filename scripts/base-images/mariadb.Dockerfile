# Stands in for mariadb:10.11: Debian 12's MariaDB 10.11, with the variables and the health check that deploy/compose.yaml uses.
FROM localhost/debian:bookworm
RUN printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d && apt-get update -q && \
    apt-get install -q -y --no-install-recommends mariadb-server && rm -rf /var/lib/apt/lists/* /var/lib/mysql/*
COPY mariadb.sh /usr/local/bin/entrypoint
COPY --chmod=0755 mariadb-healthcheck.sh /usr/local/bin/healthcheck.sh
LABEL seckill.made-of="mariadb-server of Debian 12 (10.11)"
VOLUME /var/lib/mysql
ENTRYPOINT ["/bin/sh", "/usr/local/bin/entrypoint"]
