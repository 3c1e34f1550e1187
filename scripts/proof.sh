#!/bin/bash
# Ten minutes for a sceptic: one short run of each kind of proof, and what came of it in a line or two; docs/proof.md says what to
# make of them. All steps but the first run real servers. Needs the test build (`make proof` makes it); the logs are
# target/proof/*.log.
#
# SEED=… chooses faults and paths; without it they are drawn. Exit code 0: everything held, and everything that was left out on
# purpose was found; 1: not so.
set -uo pipefail

cd "$(dirname "$0")/.."
SEED=${SEED:-$RANDOM}
export CHAOS_SEED=$SEED GENERATED_SEED=$SEED
logs=target/proof red=0
mkdir -p "$logs"

# step NAME TITLE PATTERN ARGUMENTS…: runs tests, and shows the lines of their log that say what came of it.
step() {
    local name=$1 title=$2 pattern=$3 began=$SECONDS word=held
    shift 3
    printf '\n%s\n' "$title"
    if ! scripts/in-memory.sh "${CARGO:-cargo}" test --locked --quiet "$@" -- --nocapture >"$logs/$name.log" 2>&1; then
        word="DID NOT HOLD, see $logs/$name.log" red=1
    fi
    # Without such a line nothing was played.
    if ! grep -aE "$pattern" "$logs/$name.log" | sed 's/^/    /' | cut -c1-250 | grep ''; then
        word="NOTHING WAS PLAYED, see $logs/$name.log" red=1
    fi
    printf '    %s (%s s)\n' "$word" "$((SECONDS - began))"
}

echo "seed $SEED"
step model "1. Every order of steps and faults in small sales. Without each of the mechanisms a law has to break." \
    '^test result' --test model
GENERATED_PATHS=300 step generated "2. Paths of those searches on real servers, step by step; both states are compared after each step." \
    'differ$' --test generated the_servers_do
step controls "3. The real program without one mechanism each. The harm has to be found, and none with the mechanism." \
    'with it,' --test controls rebuilds::
CHAOS_SECONDS=30 step chaos "4. Half a minute of faults everywhere. A checker judges answers and rows; every step is explained." \
    '^seed ' --test chaos a_short_chaos_run_loses_nothing
CHAOS_CONTROLS=confirm_first step without "5. The same with a mechanism left out. It has to go red." \
    'violations|^\| `' --test chaos a_run_without_a_mechanism_goes_red
DAMAGE_CASES=2 step damage "6. Files of a dead Redis are damaged. The audit may not call a harmed sale consistent." \
    '^case ' --test chaos damaged_files

printf '\nseed %s: %s\n' "$SEED" "$([ "$red" = 0 ] && echo 'everything held' || echo 'SOMETHING DID NOT HOLD')"
exit "$red"
