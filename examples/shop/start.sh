#!/bin/sh
# The shop, its identity provider and seckill, one command: examples/shop/start.sh. Ctrl-C stops everything; started again it
# goes on with its data (examples/shop/data). Everything listens on loopback only.
#
# SECKILL=path/to/seckill, else the one of `make build` or `make run`, else the one in PATH. SHOP_DATA=folder for the data.
# SHOP_PORT=3400, IDP_PORT=3401, SHOP_DB_PORT=3402. STOCK=100 units, PAY_WITHIN_S=120, PAY_GRACE_S=10 of the sale.
set -eu
cd "$(dirname "$0")"

fail() { echo "start.sh: $*" >&2; exit 1; }
command -v node >/dev/null || fail "node is missing: 20.19 or newer (Debian: apt-get install nodejs npm)"
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
    fail "node $(node --version) is too old: 20.19 or newer"
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
command -v mariadbd >/dev/null || fail "mariadbd is missing: make deps, or apt-get install mariadb-server"

for program in "${SECKILL:-}" ../../target/release/seckill ../../target/debug/seckill "$(command -v seckill || true)"; do
    [ -n "$program" ] && [ -x "$program" ] && break
done
[ -x "${program:-}" ] || fail "no program seckill: make build, or SECKILL=path/to/seckill"
export SECKILL="$program"

# The exact versions of package-lock.json. Without warnings: some packages of Vendure ask for Node 22 and run with 20 all the same.
[ node_modules/.package-lock.json -nt package-lock.json ] ||
    { npm ci --loglevel=error && touch node_modules/.package-lock.json; }
[ -z "$(find shop tsconfig.json -newer dist/main.js 2>/dev/null || echo all)" ] || npx tsc
exec node start.mjs
