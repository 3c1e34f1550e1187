#!/usr/bin/env bash
# Unpacks newer servers than the system's below target/servers, without installing anything: newest-servers.sh newest|valkey
#
# newest: Redis 8 and RabbitMQ 4 of Debian 13, MySQL 9 of Debian unstable. valkey: Valkey 8 of Debian 13 in the place of Redis;
# the other two are the system's. The last line of the output is the folder, which `SECKILL_SERVERS` takes: its bin/ has the
# programs, and bin/VERSIONS says what they are.
#
# How: apt with a configuration and a state of its own, the sources of the machine's own Debian mirror, signatures checked. Each
# suite is unpacked into a root of its own (their C libraries differ). patchelf then points every program at the loader and the
# libraries of its root, so that nothing needs a chroot or root's rights. A finished folder is used again; remove it to renew it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'newest-servers: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

set_name=${1:-}
case "$set_name" in newest | valkey) ;; *) say "expected newest or valkey, not \"$set_name\""; exit 64 ;; esac
for program in apt-get dpkg-deb; do
  command -v "$program" >/dev/null || fail "$program is missing: this needs a Debian-like system. Elsewhere put the servers into a folder with bin/ and set SECKILL_SERVERS"
done
[ "$(dpkg --print-architecture)" = amd64 ] || fail "only tried on amd64"

readonly PLACE=$PWD/target/servers
readonly DONE=$PLACE/$set_name
readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
readonly LOADER=lib64/ld-linux-x86-64.so.2
# The programs name their place, so a tree that was moved or copied needs them anew.
[ "$(cat "$PLACE/place" 2>/dev/null)" = "$PLACE" ] || rm -rf "$PLACE"
if [ -e "$DONE/bin/VERSIONS" ]; then echo "$DONE"; exit 0; fi
[ -r "$KEYRING" ] || fail "$KEYRING is missing: install debian-archive-keyring"

# shellcheck source=scripts/debian-mirror.sh
source scripts/debian-mirror.sh

# unpack SUITE [OPTION-OF-THE-SOURCE] PACKAGE…: the packages with all they depend on, in $PLACE/SUITE.
unpack() {
  local suite=$1 option=$2 apt=$PLACE/apt-$1 root=$PLACE/$1
  shift 2
  rm -rf "$root" "$apt"
  mkdir -p "$root" "$apt/lists/partial" "$apt/archives/partial" "$apt/preferences"
  echo "deb [signed-by=$KEYRING$option] $(mirror) $suite main" >"$apt/sources.list"
  : >"$apt/status"
  cat >"$apt/apt.conf" <<END
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferencesparts "$apt/preferences";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "3";
Debug::NoLocking "true";
END
  [ "$(id -u)" -ne 0 ] || echo 'APT::Sandbox::User "root";' >>"$apt/apt.conf"
  say "$suite: $*"
  APT_CONFIG=$apt/apt.conf apt-get -q -q update >&2
  # What the packages' own installation would need, and nothing here does.
  APT_CONFIG=$apt/apt.conf apt-get -q -q -y --download-only install "$@" >&2
  # The folders that a merged /usr has, so that packages unpack through them.
  mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
  local folder package
  for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root/$folder"; done
  for package in "$apt"/archives/*.deb; do
    # Through tar, which keeps the links of the folders above.
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink --no-same-owner
  done
  rm -rf "$apt"
  # The loader that programs ask for.
  [ -e "$root/$LOADER" ] || fail "$suite has no $LOADER"
}

# relocate ROOT FILE…: makes programs run from their root. patchelf is one of them, and runs by its root's loader.
relocate() {
  local root=$1 libraries=$1/usr/lib/x86_64-linux-gnu file
  shift
  for file in "$@"; do
    "$root/$LOADER" --library-path "$libraries" "$root/usr/bin/patchelf" \
      --set-interpreter "$root/$LOADER" --force-rpath --set-rpath "$libraries:$libraries/private:$root/usr/lib/mysql/private" "$file"
  done
}

# Programs (with an interpreter) below a folder.
programs_below() {
  local file
  find "$1" -type f -perm -u+x | while read -r file; do
    [ "$(head -c 4 "$file" | tr -d '\0')" != $'\x7fELF' ] || ! LC_ALL=C grep -q -a 'ld-linux-x86-64' "$file" || echo "$file"
  done
}

mkdir -p "$PLACE"
echo "$PLACE" >"$PLACE/place"
readonly NEW=$DONE.new
rm -rf "$NEW"
mkdir -p "$NEW/bin"
trixie=$PLACE/trixie

link() { ln -s "$1" "$NEW/bin/$2"; }
# RabbitMQ's script looks for its siblings beside the name it was called by.
call() { printf '#!/bin/sh\nexec "%s" "$@"\n' "$1" >"$NEW/bin/$2"; chmod +x "$NEW/bin/$2"; }

if [ ! -e "$trixie/unpacked" ]; then
  unpack trixie "" redis-server redis-tools valkey-server valkey-tools rabbitmq-server patchelf libc6
  relocate "$trixie" "$trixie"/usr/bin/{redis-check-rdb,redis-benchmark,redis-cli,valkey-check-rdb,valkey-benchmark,valkey-cli}
  mapfile -t erlang < <(programs_below "$trixie/usr/lib/erlang")
  relocate "$trixie" "${erlang[@]}"
  # Erlang's start script names its place, which is the system's there.
  sed -i "s#/usr/lib/erlang#$trixie/usr/lib/erlang#g" "$trixie"/usr/lib/erlang/{,erts-*/}bin/{erl,start}
  touch "$trixie/unpacked"
fi

if [ "$set_name" = valkey ]; then
  # The names that the rest of the project starts.
  link "$trixie/usr/bin/valkey-check-rdb" redis-server
  link "$trixie/usr/bin/valkey-benchmark" redis-benchmark
  link "$trixie/usr/bin/valkey-cli" redis-cli
else
  unstable=$PLACE/unstable
  if [ ! -e "$unstable/unpacked" ]; then
    # Its release file counts as expired on mirrors that stand still; signatures stay checked.
    unpack unstable " check-valid-until=no" mysql-server-core mysql-client-core patchelf libc6
    relocate "$unstable" "$unstable"/usr/sbin/mysqld "$unstable"/usr/bin/mysql
    touch "$unstable/unpacked"
  fi
  link "$trixie/usr/bin/redis-check-rdb" redis-server
  link "$trixie/usr/bin/redis-benchmark" redis-benchmark
  link "$trixie/usr/bin/redis-cli" redis-cli
  link "$unstable/usr/sbin/mysqld" mysqld
  link "$unstable/usr/bin/mysql" mysql
  call "$(echo "$trixie"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server)" rabbitmq-server
  link "$trixie/usr/lib/erlang/bin/erl" erl
  link "$trixie/usr/bin/erl_call" erl_call
fi

{
  "$NEW/bin/redis-server" --version
  [ ! -e "$NEW/bin/mysqld" ] || echo "mysqld $("$NEW/bin/mysqld" --version | sed 's/.* Ver //')"
  [ ! -e "$NEW/bin/rabbitmq-server" ] || basename "$(echo "$trixie"/usr/lib/rabbitmq/lib/rabbitmq_server-*)"
} >"$NEW/bin/VERSIONS"
mv "$NEW" "$DONE"
cat "$DONE/bin/VERSIONS" >&2
echo "$DONE"
