#!/bin/sh
# Runs as the server's own user; a new volume belongs to root. As in the real image the server answers other containers without a
# password.
set -eu
chown redis:redis /data
[ "$1" != redis-server ] || set -- "$@" --protected-mode no
exec setpriv --reuid=redis --regid=redis --clear-groups -- "$@"
