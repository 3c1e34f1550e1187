#!/bin/sh
# Starts RabbitMQ as its own user; a new volume belongs to root.
set -eu
chown rabbitmq:rabbitmq /var/lib/rabbitmq
# Listens on every address: the other containers are somewhere else.
exec setpriv --reuid=rabbitmq --regid=rabbitmq --clear-groups -- "$@"
