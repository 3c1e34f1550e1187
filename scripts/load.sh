#!/bin/sh
# A crowd made by JMeter (tests/load/seckill.jmx) against a fresh `seckill dev` in a temporary folder, and the audit
# afterwards: a load generator that shares no code with seckill. Needs a build (make build, else the debug one) and Debian's
# jmeter and jmeter-http; `make test` needs neither.
#
# BUYERS=2000 STOCK=1000 THREADS=50 say how much; RESULTS names a file to keep JMeter's samples in. SECKILL and JMETER name
# the programs. Exit code 0: every buyer was answered as allowed, exactly as many orders as 202 and as can be sold, and the
# audit is clean; 1: not so, or it could not run.
set -eu

cd "$(dirname "$0")/.."
BUYERS=${BUYERS:-2000} STOCK=${STOCK:-1000} THREADS=${THREADS:-50}
SALE=load DEBIAN=/usr/share/jmeter
dir=$(mktemp -d "${TMPDIR:-/tmp}/seckill-load-XXXXXX")
results=${RESULTS:-$dir/samples.csv}
dev=""

say() { printf 'load: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

leave() {
    if [ -n "$dev" ]; then
        kill -TERM "$dev" 2>/dev/null || true
        wait "$dev" 2>/dev/null || true
    fi
    rm -rf "$dir"
}
trap leave EXIT
trap 'exit 1' INT TERM HUP

if [ -z "${SECKILL:-}" ]; then
    for SECKILL in target/release/seckill target/debug/seckill none; do [ ! -x "$SECKILL" ] || break; done
fi
[ -x "$SECKILL" ] || fail "no binary; make build"
command -v "${JMETER:-jmeter}" >/dev/null || fail "${JMETER:-jmeter} not found; apt-get install jmeter jmeter-http"

jmeter_with() {
    if [ -z "${JMETER:-}" ] && [ -e "$DEBIAN/bin/ApacheJMeter.jar" ]; then
        # tests/load/jmeter.bsh says why.
        java -Djmeter.home="$DEBIAN" -cp "/usr/share/java/bsh.jar:$DEBIAN/bin/ApacheJMeter.jar:$DEBIAN/lib/*:$DEBIAN/lib/ext/*" \
            bsh.Interpreter tests/load/jmeter.bsh "$@"
    else
        "${JMETER:-jmeter}" "$@"
    fi
}
seckill() { "$SECKILL" --data-dir "$dir/data" "$@"; }

say "$SECKILL dev in $dir"
"$SECKILL" --set http.listen=127.0.0.1:0 --set admin.listen=127.0.0.1:0 --set log.level=warn \
    dev --data-dir "$dir/data" --no-demo >"$dir/dev.log" 2>&1 &
dev=$!
tries=0
while [ ! -e "$dir/data/dev.json" ]; do
    kill -0 "$dev" 2>/dev/null || { cat "$dir/dev.log" >&2; fail "seckill dev ended"; }
    tries=$((tries + 1))
    [ "$tries" -le 1200 ] || { cat "$dir/dev.log" >&2; fail "seckill dev is not ready after two minutes"; }
    sleep 0.1
done
# The first one is the buyers', a later one the operators'.
api=$(sed -n 's|.*"api": *"http://\([^"/]*\)/*".*|\1|p' "$dir/data/dev.json" | head -n 1)
[ -n "$api" ] || fail "no api in dev.json"

seckill sale create --id "$SALE" --product load --title 'Load test' --stock "$STOCK" --limit 1 \
    --starts-at 2020-01-01T00:00:00Z --ends-at 2099-01-01T00:00:00Z --warm >&2
seckill token mint --prefix crowd- --count "$BUYERS" --csv --ttl 1day >"$dir/buyers.csv"

say "$BUYERS buyers on $THREADS threads want $STOCK units"
# Only columns that hold no comma, so that the counts below can be read by awk.
save=jmeter.save.saveservice
jmeter_with -n -t tests/load/seckill.jmx -l "$results" -j "$dir/jmeter.log" -Jjmeterengine.nongui.port=0 \
    -J"host=${api%:*}" -J"port=${api##*:}" -J"sale=$SALE" -J"threads=$THREADS" -J"csv=$dir/buyers.csv" \
    -J"$save.output_format=csv" -J"$save.print_field_names=true" -J"$save.response_message=false" \
    -J"$save.thread_name=false" -J"$save.data_type=false" -J"$save.assertion_results_failure_message=false" \
    >"$dir/jmeter.out" 2>&1 || { cat "$dir/jmeter.out" >&2; fail "jmeter failed"; }
grep '^summary' "$dir/jmeter.out" || { cat "$dir/jmeter.out" >&2; fail "jmeter told no summary"; }

# timeStamp,elapsed,label,responseCode,success,…
say "answers:"
awk -F, 'NR > 1 { n[$3 " " $4 " " ($5 == "true" ? "as allowed" : "WRONG")]++ } END { for (k in n) print "  " n[k], k }' \
    "$results" | sort >&2
[ "$(sed -n 1p "$results" | cut -d, -f3-5)" = label,responseCode,success ] || fail "jmeter wrote other columns than asked for"
wrong=$(awk -F, 'NR > 1 && $5 != "true"' "$results" | wc -l)
accepted=$(awk -F, 'NR > 1 && $3 == "order" && $4 == "202"' "$results" | wc -l)
final=$(awk -F, 'NR > 1 && $3 == "order" && ($4 == "202" || $4 == "410")' "$results" | wc -l)
refused=$(awk -F, 'NR > 1 && $3 == "token" && $4 == "410"' "$results" | wc -l)

clean=yes
seckill audit --now || clean=no
ordered=$(seckill audit --now --json --sale "$SALE" | sed -n 's/.*"ordered": *\([0-9]*\).*/\1/p' | head -n 1)
sellable=$((BUYERS < STOCK ? BUYERS : STOCK))
say "$accepted accepted (202), ${ordered:-no} ordered, $sellable could be sold, $((final + refused)) of $BUYERS buyers know, $wrong wrong answers, audit clean: $clean"

[ "$clean" = yes ] || fail "the audit found something"
[ "$accepted" = "$ordered" ] || fail "$accepted were told 202, and there are $ordered orders"
[ "$accepted" -eq "$sellable" ] || fail "$accepted of $sellable units were sold"
[ "$((final + refused))" -eq "$BUYERS" ] || fail "not every buyer heard yes or sold out"
[ "$wrong" -eq 0 ] || fail "$wrong answers that are not allowed"
say "everything adds up"
