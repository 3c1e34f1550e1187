#!/usr/bin/env bash
# Builds the image and runs it in every way that docs/operations.md names: image-test.sh [TEST…]
#
# Roles, commands, files, SIGTERM: tests/containers. The servers are the tests' own, as in `make test`. See scripts/containers.sh for
# BASES=debian, and for what is said where no container can run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/containers.sh
source scripts/containers.sh
need_containers
[ "$(id -u)" -eq 0 ] || containers_fail "root is needed: the tests give files to the image's user"
[ "${BUILD:-yes}" = no ] || scripts/image.sh
EXPECTED_COMMIT=$("${engine[@]}" image inspect --format '{{index .Labels "org.opencontainers.image.revision"}}' seckill)
export EXPECTED_COMMIT CONTAINER_ENGINE=${engine[0]}
[ $# -gt 0 ] || set -- image:: commands::
scripts/in-memory.sh "${CARGO:-cargo}" test --locked --test containers -- "$@" --test-threads=1 --nocapture
