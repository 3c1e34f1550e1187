#!/usr/bin/env bash
# The container engine that the project's scripts use. Sourced, not run: `engine` holds the command (podman or docker), and
# `need_containers` ends the script with 1 and one plain sentence where no container can run.
#
# BASES= (empty): the user's own engine and images, from the registries. BASES=debian: podman with a storage of its own below
# target/containers, where the images that Dockerfile and compose file ask for are made from Debian packages
# (scripts/base-images.sh). They have borrowed names, so they stay out of the user's own images. That way needs root.

CONTAINERS=$PWD/target/containers
engine=()

containers_say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
containers_fail() { containers_say "$*"; exit 1; }

# What podman needs where no systemd runs: control groups by files, events in a file, runc (crun fails where both versions of
# control groups are mounted), and bridges with names.
write_configuration() {
  mkdir -p "$CONTAINERS"/{storage,run,networks}
  # Limits that this machine grants; without them podman asks for more than it may.
  cat >"$CONTAINERS/containers.conf" <<END
[containers]
default_ulimits = ["nofile=$(ulimit -Hn):$(ulimit -Hn)", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "$CONTAINERS/networks"
END
  # The vfs driver (a copy for each layer) works everywhere; overlay needs a file system that takes it.
  local driver=vfs
  ! overlay_works || driver=overlay
  printf '[storage]\ndriver = "%s"\ngraphroot = "%s"\nrunroot = "%s"\n' \
    "$driver" "$CONTAINERS/storage" "$CONTAINERS/run" >"$CONTAINERS/storage.conf"
  printf 'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "permissive"\n' >"$CONTAINERS/registries.conf"
}

overlay_works() {
  local at=$CONTAINERS/try-overlay works=1
  rm -rf "$at"
  mkdir -p "$at"/{lower,upper,work,merged}
  if mount -t overlay overlay -o "lowerdir=$at/lower,upperdir=$at/upper,workdir=$at/work" "$at/merged" 2>/dev/null; then
    umount "$at/merged"
    works=0
  fi
  rm -rf "$at"
  return "$works"
}

need_containers() {
  case "${BASES:-}" in
    debian)
      [ "$(id -u)" -eq 0 ] || containers_fail "containers cannot run here: BASES=debian needs root"
      local program
      for program in podman buildah runc debootstrap iptables; do
        command -v "$program" >/dev/null ||
          containers_fail "containers cannot run here: $program is missing (apt-get install podman buildah runc netavark aardvark-dns podman-compose iptables debootstrap)"
      done
      [ -e "$CONTAINERS/storage.conf" ] || write_configuration
      export CONTAINERS_CONF=$CONTAINERS/containers.conf CONTAINERS_STORAGE_CONF=$CONTAINERS/storage.conf
      export CONTAINERS_REGISTRIES_CONF=$CONTAINERS/registries.conf BUILDAH_ISOLATION=chroot
      engine=(podman)
      ;;
    "")
      if command -v podman >/dev/null; then engine=(podman)
      elif command -v docker >/dev/null && docker version >/dev/null 2>&1; then engine=(docker)
      else containers_fail "containers cannot run here: there is neither podman nor a docker that answers"
      fi
      ;;
    *) containers_fail "BASES is \"$BASES\": expected debian, or nothing" ;;
  esac
  local said
  said=$("${engine[@]}" info 2>&1 >/dev/null) || containers_fail "containers cannot run here: ${engine[*]} info says: ${said##*$'\n'}"
}
