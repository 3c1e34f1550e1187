#!/usr/bin/env bash
# Runs tests/hosts in a network, a mount namespace and process ids of its own, so that nothing is left behind, however it ends:
# hosts.sh FILTER…
#
# TRACED=1 takes the test build, whose processes write a line for each step, and explains every line (tests/traces).
# RECORD=1 keeps the results in docs/data/hosts, also of a red run: docs/proof.md has to explain it. KEEP=1 keeps the hosts' files.
# Needs root (namespaces, packet filter), Linux, and Debian's haproxy, galera-4, rsync and iptables, which it installs where apt
# can. The hosts' files are in memory; the servers of the database run as the user mysql.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'hosts: %s\n' "$*" >&2; }
fail() { say "three hosts cannot run here: $*"; exit 1; }

# install PROGRAM PACKAGE
install() {
  command -v "$1" >/dev/null || [ -e "$1" ] || missing+=("$2")
}

[ "$(uname -s)" = Linux ] || fail "network namespaces need Linux"
[ "$(id -u)" -eq 0 ] || fail "root is needed, for network namespaces and packet filters"
missing=()
install haproxy haproxy
install iptables iptables
install rsync rsync
install ip iproute2
install ss iproute2
install nsenter util-linux
install setpriv util-linux
install redis-server redis-server
install mariadb mariadb-client
install /usr/lib/galera/libgalera_smm.so galera-4
if [ "${#missing[@]}" -gt 0 ]; then
  command -v apt-get >/dev/null || fail "missing: ${missing[*]}"
  say "installing ${missing[*]}"
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null || fail "apt-get failed"
fi
unshare --net true 2>/dev/null || fail "the kernel gives no network namespace"

HOSTS_FOLDER=$(mktemp -d /dev/shm/seckill-hosts-XXXXXX)
chmod 755 "$HOSTS_FOLDER"
# Copies, so that a build or an edit beside the run changes nothing in it.
if [ -n "${TRACED:-}" ]; then
  cp target/debug/seckill "$HOSTS_FOLDER/seckill"
  export HOSTS_TRACED=1
else
  cp target/release/seckill "$HOSTS_FOLDER/seckill"
fi
cp config/production.toml "$HOSTS_FOLDER/production.toml"
cp deploy/three-hosts/seckill.toml "$HOSTS_FOLDER/three-hosts.toml"
# That of the program, which may be older than the checkout: "seckill 0.2.0 (4d1c716ce479)".
HOSTS_COMMIT=$("$HOSTS_FOLDER/seckill" --version | sed -n 's/.*(\(.*\)).*/\1/p') HOSTS_DATE=$(date -u +%F)
export HOSTS_FOLDER HOSTS_COMMIT HOSTS_DATE TEST_DATA_DIR=$HOSTS_FOLDER
keep=${KEEP:-}
began=$(mktemp)
clear() { rm -f "$began"; [ -n "$keep" ] || rm -rf "$HOSTS_FOLDER"; }
trap clear EXIT
ended=0
# The shell is the first process there, and takes leave of those whose parents have ended.
# shellcheck disable=SC2016
unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private \
  bash -c '"$@"; exit $?' hosts "${CARGO:-cargo}" test --offline --locked --test hosts -- "$@" --nocapture || ended=$?
if [ -n "${RECORD:-}" ]; then
  mkdir -p docs/data/hosts
  find target/hosts -name '*.json' -newer "$began" | while read -r file; do
    cp "$file" "docs/data/hosts/$HOSTS_DATE-$(basename "$file")"
  done
fi
exit "$ended"
