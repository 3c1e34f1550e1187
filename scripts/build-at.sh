#!/usr/bin/env bash
# Builds the program of another commit as it is shipped (its profile `dist`), for `seckill bench --against`: build-at.sh REV
#
# The last line of the output is the program's path, target/at/<commit>/dist/seckill. A commit that was built before is not
# built again. Its source is unpacked below target/ and stays there until `cargo clean`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rev=${1:-}
[ -n "$rev" ] || { echo "build-at: no commit named, for example: make build-at REV=d59404a4" >&2; exit 64; }
commit=$(git rev-parse --verify --quiet --short=7 "$rev^{commit}") ||
  { echo "build-at: $rev is no commit of this repository (a shallow clone has only the newest: git fetch --unshallow)" >&2; exit 64; }

place=$PWD/target/at/$commit
program=$place/dist/seckill
if [ ! -x "$program" ]; then
  rm -rf "$place/source"
  mkdir -p "$place/source"
  git archive "$commit" | tar -x -C "$place/source"
  "${CARGO:-cargo}" build --profile dist --locked --manifest-path "$place/source/Cargo.toml" --target-dir "$place" --bin seckill
fi
echo "$program"
