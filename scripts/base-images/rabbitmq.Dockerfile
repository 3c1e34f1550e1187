# Stands in for rabbitmq:4.0: Debian 13's RabbitMQ 4.0. RABBITMQ_DEFAULT_USER and _PASS are read by the server itself.
FROM localhost/debian:trixie
# A package that starts its service has no init here.
RUN printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d && \
    apt-get update -q && apt-get install -q -y --no-install-recommends rabbitmq-server && rm -rf /var/lib/apt/lists/* /var/lib/rabbitmq/*
COPY rabbitmq.sh /usr/local/bin/entrypoint
LABEL seckill.made-of="rabbitmq-server of Debian 13 (4.0)"
ENV HOME=/var/lib/rabbitmq RABBITMQ_LOGS=- LANG=C.UTF-8 PATH=/usr/lib/rabbitmq/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
VOLUME /var/lib/rabbitmq
ENTRYPOINT ["/bin/sh", "/usr/local/bin/entrypoint"]
CMD ["rabbitmq-server"]
