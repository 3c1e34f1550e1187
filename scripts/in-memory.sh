#!/usr/bin/env bash
# Runs tests with the servers' files in memory, where a sync costs nothing: a busy disk makes servers late, and tests with them.
# No test sees less by it: what was written outlives a killed process there too, and power cuts are staged by the tests
# themselves. Without room in memory the command runs as it is. After a failure the files stay until the next run.
set -euo pipefail

readonly MEMORY=/dev/shm
readonly NEEDED_KIB=$((6 * 1024 * 1024))

has_room() {
  local kib
  [ -w "$MEMORY" ] || return 1
  kib=$(df --output=avail "$MEMORY" | tail -n 1)
  [ "$kib" -ge "$NEEDED_KIB" ] || return 1
  kib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
  [ "${kib:-0}" -ge $((2 * NEEDED_KIB)) ]
}

# Those of runs that are over; the number is the run's process.
for old in "$MEMORY"/seckill-tests-*; do
  [ ! -O "$old" ] || [ -e "/proc/${old##*-}" ] || rm -rf "$old"
done

if [ -n "${TEST_DATA_DIR:-}" ] || ! has_room; then
  exec "$@"
fi
export TEST_DATA_DIR="$MEMORY/seckill-tests-$$"
mkdir -m 700 "$TEST_DATA_DIR"
if TMPDIR=$TEST_DATA_DIR "$@"; then
  rm -rf "$TEST_DATA_DIR"
else
  status=$?
  echo "the servers' files of these tests are in $TEST_DATA_DIR until the next run" >&2
  exit "$status"
fi
