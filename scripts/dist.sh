#!/usr/bin/env bash
# Makes what a release consists of, in target/dist-VERSION: the stripped programs, the source, an SBOM, licence and changelog, and
# SHA256SUMS over all of it: dist.sh
#
# The SBOM needs cargo-cyclonedx (`cargo install cargo-cyclonedx`); without it the release is made and the lack is said. With
# cargo-auditable installed the programs carry the list of their dependencies too. Refuses changes that are in no commit, unless
# DIRTY=yes; works from an unpacked archive without git.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'dist: %s\n' "$*" >&2; }
cargo=${CARGO:-cargo}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
commit=$(scripts/commit.sh)
case "$commit" in *-modified)
  [ "${DIRTY:-no}" = yes ] || { say "there are changes in no commit (DIRTY=yes makes it all the same)"; exit 1; } ;;
esac
grep -q "^## \[$version\]" CHANGELOG.md || { say "CHANGELOG.md has no section [$version]"; exit 1; }

triple=$("${RUSTC:-rustc}" -vV | sed -n 's/^host: //p')
place=$PWD/target/dist-$version
name=seckill-$version-$triple
rm -rf "$place"
mkdir -p "$place/$name"

build=(build)
if command -v cargo-auditable >/dev/null; then build=(auditable build)
else say "cargo-auditable is not installed: the programs do not carry the list of their dependencies"
fi
SECKILL_COMMIT=$commit "$cargo" "${build[@]}" --profile dist --locked
cp target/dist/seckill target/dist/seckill-bench LICENSE README.md CHANGELOG.md "$place/$name/"
cp -r config "$place/$name/"
# The same bytes from the same inputs: no owner, a date from the commit.
date=$(git log -1 --format=%cI 2>/dev/null || echo 2026-01-01T00:00:00Z)
pack=(tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="$date" --use-compress-program='gzip -n -9')
"${pack[@]}" -C "$place" -cf "$place/$name.tar.gz" "$name"
rm -r "${place:?}/$name"
if [ -e .git ]; then
  git archive --format=tar --prefix="seckill-$version/" HEAD | gzip -n -9 >"$place/seckill-$version-source.tar.gz"
fi

if command -v cargo-cyclonedx >/dev/null; then
  # Beside the manifest, where it is moved from; the lock file decides the versions.
  "$cargo" cyclonedx --format json --target "$triple" --override-filename "seckill-$version.cdx" >/dev/null
  mv "seckill-$version.cdx.json" "$place/"
  rm -f "bench/seckill-$version.cdx.json"
else
  say "cargo-cyclonedx is not installed: there is no SBOM"
fi
(cd "$place" && sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
cat "$place/SHA256SUMS"
say "made $place${commit:+ from $commit}"
