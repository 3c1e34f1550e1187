#!/usr/bin/env bash
# Makes images under names that Dockerfile and deploy/compose.yaml ask for, from Debian packages: base-images.sh NAME…
#
# For machines that reach a Debian mirror and no registry of images. NAME: rust, distroless, redis, rabbitmq, mariadb, systemd. They are
# stand-ins: the versions are Debian's (the label `seckill.made-of` names them), the start scripts do what the compose file uses of
# the real ones and no more. They go into the storage of BASES=debian only. An image that is there is not made again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BASES=debian
# shellcheck source=scripts/containers.sh
source scripts/containers.sh
need_containers

# shellcheck source=scripts/debian-mirror.sh
source scripts/debian-mirror.sh

# The name that a file of the project asks for: asked_for FILE START
asked_for() {
  local name
  name=$(sed -n "s#^\\(FROM\\|  *image:\\) \\($2:[^ ]*\\).*#\\2#p" "$1" | head -n 1)
  [ -n "$name" ] || containers_fail "$1 asks for no image $2"
  echo "$name"
}

# A minimal Debian, localhost/debian:SUITE.
debian() {
  local suite=$1 root
  ! podman image exists "localhost/debian:$suite" || return 0
  containers_say "Debian $suite by debootstrap"
  root=$(mktemp -d "$CONTAINERS/debootstrap.XXXXXX")
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$(mirror)" >"$CONTAINERS/debootstrap-$suite.log" 2>&1 ||
    containers_fail "debootstrap failed, see $CONTAINERS/debootstrap-$suite.log"
  rm -rf "$root"/var/cache/apt/archives/*.deb
  tar -C "$root" -c . | podman import --quiet - "localhost/debian:$suite" >/dev/null
  rm -rf "$root"
}

# build SUITE FILE NAME [ARGUMENT…]: an image from scripts/base-images/FILE.
build() {
  local suite=$1 file=$2 name=$3
  shift 3
  podman image exists "$name" && return
  debian "$suite"
  containers_say "$name from Debian $suite"
  buildah build --quiet --layers=false --network host "$@" --file "scripts/base-images/$file" --tag "$name" scripts/base-images >/dev/null
}

toolchain() { rustc --print sysroot; }

for name in "$@"; do
  case "$name" in
    rust)
      build bookworm rust.Dockerfile "docker.io/library/$(asked_for Dockerfile rust)" --volume "$(toolchain):/toolchain:ro"
      ;;
    distroless) build bookworm distroless.Dockerfile "$(asked_for Dockerfile 'gcr.io/distroless/[a-z0-9-]*')" ;;
    redis) build bookworm redis.Dockerfile "docker.io/library/$(asked_for deploy/compose.yaml redis)" ;;
    rabbitmq) build trixie rabbitmq.Dockerfile "docker.io/library/$(asked_for deploy/compose.yaml rabbitmq)" ;;
    mariadb) build bookworm mariadb.Dockerfile "docker.io/library/$(asked_for deploy/compose.yaml mariadb)" ;;
    systemd) build bookworm systemd.Dockerfile localhost/seckill-systemd ;;
    *) containers_say "no such image: $name (rust, distroless, redis, rabbitmq, mariadb, systemd)"; exit 64 ;;
  esac
done
