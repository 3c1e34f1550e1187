#!/usr/bin/env bash
# Builds the image `seckill` from the Dockerfile, and says its size and version: image.sh
#
# BASES=debian: without a registry of images; the two base images are made from Debian packages (scripts/base-images.sh). Crates
# still come from their registry. An image that cannot be built here is said to be so, with exit code 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/containers.sh
source scripts/containers.sh
need_containers

options=()
if [ "${BASES:-}" = debian ]; then
  scripts/base-images.sh rust distroless
  # The machine's network as it is, and its authorities: behind a company's proxy it has one of its own.
  options=(--network host --volume /etc/ssl/certs/ca-certificates.crt:/etc/ssl/certs/ca-certificates.crt:ro --layers=false)
fi
commit=$(scripts/commit.sh)
"${engine[@]}" build "${options[@]}" --build-arg "SECKILL_COMMIT=$commit" --label "org.opencontainers.image.revision=$commit" \
  --tag seckill .
echo "image seckill: $("${engine[@]}" image inspect --format '{{.Size}}' seckill) bytes, of them the program:" \
  "$("${engine[@]}" run --rm seckill --version)"
