#!/bin/sh
# Installs what `make run` and `make test` need and this machine lacks: the three servers, a C compiler, redis-benchmark,
# faketime, Chromium, Prometheus with promtool.
#
# Quick and silent when everything is there. On a system without apt it installs nothing and says what is missing.
# A server whose URL is given (SECKILL_REDIS_URL, SECKILL_AMQP_URL, SECKILL_MYSQL_URL) is not needed here.
set -eu

# A normal user's PATH lacks these, and servers live there.
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

RUST_MINOR_MIN=89
POLICY=/usr/sbin/policy-rc.d
missing=""

say() { printf 'install-deps: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
need() { case " $missing " in *" $1 "*) ;; *) missing="${missing:+$missing }$1" ;; esac; }

look_for_rust() {
    have cargo || fail "cargo not found: install Rust 1.$RUST_MINOR_MIN or newer, see https://rustup.rs"
    # "cargo 1.90.0 (…)" gives 90.
    minor=$(cargo --version | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')
    if [ -n "$minor" ] && [ "$minor" -lt "$RUST_MINOR_MIN" ]; then
        fail "Rust 1.$minor is too old: 1.$RUST_MINOR_MIN or newer is needed (\`rustup update stable\`)"
    fi
}

look_for_packages() {
    if [ -z "${SECKILL_REDIS_URL:-}" ]; then
        have redis-server || need redis-server
        have redis-benchmark || need redis-tools
    fi
    if [ -z "${SECKILL_AMQP_URL:-}" ]; then
        have rabbitmq-server || need rabbitmq-server
    fi
    if [ -z "${SECKILL_MYSQL_URL:-}" ]; then
        { have mariadbd && have mariadb-install-db; } || need mariadb-server
    fi
    # For the tests: processes whose clock is wrong, and a browser that presses the buttons of the pages.
    have faketime || need faketime
    have chromedriver || { need chromium; need chromium-driver; }
    # For the tests: promtool, which checks the alert rules, and prometheus, which the tests start on ports of their own to see
    # the alerts fire. The package's own service is not started.
    { have promtool && have prometheus; } || need prometheus
    # One dependency is C: the allocator.
    if ! have cc; then
        need gcc
        need libc6-dev
    fi
    have make || need make
    # cargo downloads over https.
    [ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] || [ -e /etc/ssl/cert.pem ] ||
        need ca-certificates
}

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

look_for_rust
look_for_packages
[ -n "$missing" ] || exit 0

if ! have apt-get; then
    fail "missing, and this is not a Debian-like system. Install what these Debian packages stand for: $missing"
fi
if [ "$(id -u)" -ne 0 ] && ! have sudo; then
    fail "missing: $missing. Run as root: apt-get update && apt-get install $missing"
fi

say "installing $missing"
forbid_autostart
apt_get update || say "apt-get update failed; trying with the package lists there are"
# shellcheck disable=SC2086 # a list of words
apt_get install --no-install-recommends $missing || fail "could not install: $missing"

missing=""
look_for_packages
[ -z "$missing" ] || fail "still missing after the installation: $missing"
