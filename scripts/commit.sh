#!/bin/sh
# The commit of this tree for `seckill --version`, or nothing without one, as in an unpacked archive of the source. Changes that
# are in no commit add `-modified`.
cd "$(dirname "$0")/.." || exit 1
# Not the repository of a folder above.
[ -e .git ] || exit 0
git describe --always --tags --match 'v*' --abbrev=12 --dirty=-modified 2>/dev/null || true
