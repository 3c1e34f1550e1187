#!/usr/bin/env bash
# Starts deploy/compose.yaml as a project of its own, sells through it, kills each container in turn, restarts all, and compares the
# books: compose.sh
#
# Uses the image `seckill` that is there (`make image`), else builds it. Ports, secrets and volumes are the run's own. See
# scripts/containers.sh for BASES=debian, and for what is said where no container can run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/containers.sh
source scripts/containers.sh
need_containers
if [ "${engine[0]}" = podman ] && command -v podman-compose >/dev/null; then COMPOSE=podman-compose
elif "${engine[0]}" compose version >/dev/null 2>&1; then COMPOSE="${engine[0]} compose"
else containers_fail "compose cannot run here: neither podman-compose nor ${engine[0]} compose is there"
fi
[ "${BASES:-}" != debian ] || scripts/base-images.sh redis rabbitmq mariadb
"${engine[@]}" image inspect seckill >/dev/null 2>&1 || scripts/image.sh
export COMPOSE CONTAINER_ENGINE=${engine[0]}
"${CARGO:-cargo}" test --locked --test containers -- compose:: --test-threads=1 --nocapture
