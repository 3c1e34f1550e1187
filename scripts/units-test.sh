#!/usr/bin/env bash
# Runs the units of deploy/systemd: their ExecStart lines as they stand, in a mount namespace; and with BASES=debian really, by a
# systemd that is the first process of a container: units-test.sh. Needs root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/containers.sh
source scripts/containers.sh
[ "$(id -u)" -eq 0 ] || containers_fail "root is needed, for a mount namespace with the paths of the units"
tests=(units::)
if [ "${BASES:-}" = debian ]; then
  need_containers
  scripts/base-images.sh systemd
  tests+=(systemd::)
  export CONTAINER_ENGINE=${engine[0]}
else
  containers_say "the units are not started by systemd: BASES=debian does that, in a container"
fi
scripts/in-memory.sh "${CARGO:-cargo}" test --locked --test containers -- "${tests[@]}" --test-threads=1 --nocapture
