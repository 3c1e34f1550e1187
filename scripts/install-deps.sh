#!/bin/sh
# Installs what this machine lacks, and says what each package is for: install-deps.sh [run|test|long]
#
# `run` (the default): the three servers and a C compiler. `test`: also a browser with its driver, Prometheus, and faketime.
# `long`: also the languages of the programs in docs/passes/ and examples/clients/. Their generators come from npm and PyPI, by the
# build.sh of each example.
# Quick and silent when everything is there. On a system without apt it installs nothing and says what is missing.
# A server whose URL is given (SECKILL_REDIS_URL, SECKILL_AMQP_URL, SECKILL_MYSQL_URL) is not needed here.
#
# Tried on Debian 12. Not tried: Debian 13, which has the same package names, and Ubuntu 24.04, whose `chromium` packages only
# install a snap: there the browser's driver is taken from the snap where snapd runs; where it does not (a container), any
# chromedriver in PATH with the Chromium or Chrome it belongs to will do.
set -eu

# A normal user's PATH lacks these, and servers live there.
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

RUST_MINOR_MIN=89
POLICY=/usr/sbin/policy-rc.d
missing=""
reasons=""
wanted_for=${1:-run}

say() { printf 'install-deps: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
# need PACKAGE WHAT-FOR
need() {
    case " $missing " in *" $1 "*) return ;; esac
    missing="${missing:+$missing }$1"
    reasons="$reasons
  $1: $2"
}

look_for_rust() {
    have cargo || fail "cargo not found: install Rust 1.$RUST_MINOR_MIN or newer, see https://rustup.rs"
    # "cargo 1.90.0 (…)" gives 90.
    minor=$(cargo --version | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')
    if [ -n "$minor" ] && [ "$minor" -lt "$RUST_MINOR_MIN" ]; then
        fail "Rust 1.$minor is too old: 1.$RUST_MINOR_MIN or newer is needed (\`rustup update stable\`)"
    fi
}

look_for_packages() {
    missing="" reasons=""
    if [ -z "${SECKILL_REDIS_URL:-}" ]; then
        have redis-server || need redis-server "the private Redis"
    fi
    if [ -z "${SECKILL_AMQP_URL:-}" ]; then
        have rabbitmq-server || need rabbitmq-server "the private RabbitMQ"
    fi
    if [ -z "${SECKILL_MYSQL_URL:-}" ]; then
        { have mariadbd && have mariadb-install-db; } || need mariadb-server "the private MariaDB"
    fi
    if ! have cc; then
        need gcc "a C compiler, for the allocator and the cryptography among the dependencies"
        need libc6-dev "the C library's headers, for the same"
    fi
    have make || need make "make run, make test"
    [ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] || [ -e /etc/ssl/cert.pem ] ||
        need ca-certificates "cargo downloads over https"
    [ "$wanted_for" = run ] || look_for_test_packages
    [ "$wanted_for" != long ] || look_for_languages
}

look_for_languages() {
    have python3 || need python3 "docs/passes/sign_pass.py, examples/clients/python"
    have node || need nodejs "docs/passes/sign_pass.mjs, examples/clients/typescript"
    have php || need php-cli "docs/passes/sign_pass.php"
    have npm || need npm "examples/clients/typescript: the generators of types"
    # Debian's python3 has the module venv without what it installs.
    python3 -c 'import ensurepip' 2>/dev/null || need python3-venv "examples/clients: an environment of their own"
    have go || need golang-go "examples/clients/go"
    have java || need default-jre-headless "examples/clients/go: its generator"
    have curl || need curl "examples/clients/documents.sh"
}

look_for_test_packages() {
    if [ -z "${SECKILL_REDIS_URL:-}" ]; then
        have redis-benchmark || need redis-tools "redis-benchmark, a baseline of seckill bench"
    fi
    have faketime || need faketime "tests: processes whose clock is wrong"
    # The package's own service is not started.
    { have promtool && have prometheus; } || need prometheus "tests: alert rules are checked, and seen to fire"
    have chromedriver && return
    if is_ubuntu; then
        need chromium-browser "tests: a browser that presses the buttons of the pages (a snap: needs snapd)"
        need chromium-chromedriver "tests: drives the browser"
    else
        need chromium "tests: a browser that presses the buttons of the pages"
        need chromium-driver "tests: drives the browser"
    fi
}

is_ubuntu() { grep -qs '^ID=ubuntu' /etc/os-release; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif [ -t 0 ]; then
        sudo "$@"
    else
        # Nobody there to type a password.
        sudo -n "$@"
    fi
}

apt_get() {
    # Another apt may be at work on a fresh machine: wait for it.
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@"
}

# Debian starts a server on install; the private ones are started by seckill itself, on other ports. A policy that is
# there already is the administrator's and stays.
forbid_autostart() {
    [ -e "$POLICY" ] && return
    trap allow_autostart EXIT
    trap 'exit 130' INT TERM HUP
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$POLICY" >/dev/null
    as_root chmod 755 "$POLICY"
}
allow_autostart() { as_root rm -f "$POLICY"; }

case "$wanted_for" in run | test | long) ;; *) fail "$wanted_for: expected run, test or long" ;; esac
look_for_rust
look_for_packages
[ -n "$missing" ] || exit 0

if ! have apt-get; then
    fail "missing, and this is not a Debian-like system. Install what these Debian packages stand for: $missing"
fi
if [ "$(id -u)" -ne 0 ] && ! have sudo; then
    fail "missing: $missing. Run as root: apt-get update && apt-get install $missing"
fi

say "installing, for make $wanted_for:$reasons"
forbid_autostart
apt_get update || say "apt-get update failed; trying with the package lists there are"
# shellcheck disable=SC2086 # a list of words
apt_get install --no-install-recommends $missing || fail "could not install: $missing"

look_for_packages
[ -z "$missing" ] || fail "still missing after the installation: $missing"
