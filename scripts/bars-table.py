#!/usr/bin/env python3
"""The table of docs/performance.md, "The bars as they stand", from what `seckill bench --json` printed.

    scripts/bars-table.py docs/data/2026-11-23-bars.json [MORE.json …]

Of a bar that is in several files the last one counts. Bars come in the order of the list below, those that it does not
name after them. Rates and memory have no digits behind the point, ratios two. Python's standard library only.
"""

import json
import sys

ORDER = """accept accept_rs256 cost_api cost_redis sold_out replay poll cost_poll latency latency_landed relay landing
landing_rows end_to_end end_to_end_plain cost_end_to_end memory memory_settled growth_memory_closed memory_role waiters
waiters_replicated rush rush_within_1s rush_p99 crowd crowd_exact recovery recovery_server recovery_host""".split()


def number(value):
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if value == int(value):
        return f"{value:.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def with_unit(value, unit):
    if value is None:
        return "–"
    per_second = unit == "1/s"
    return f"{number(value)}/s" if per_second else f"{number(value)} {unit}"


def measured(bar):
    runs = bar.get("runs") or []
    spread = f" ({number(min(runs))} to {number(max(runs))})" if len(runs) > 1 and min(runs) != max(runs) else ""
    return with_unit(bar["value"], bar["unit"]) + spread


def limit(bar):
    signs = {"at_least": "≥ {} ×", "ratio_at_most": "≤ {} ×", "at_most": "≤ {}"}
    return "–" if bar["bar"] is None else signs[bar["rule"]].format(number(bar["bar"]))


def row(bar):
    ratio = "–" if bar["ratio"] is None else f"{bar['ratio']:.2f}"
    holds = {True: "yes", False: "**no**", None: "–"}[bar["holds"]]
    cells = [f"`{bar['name']}`", measured(bar), with_unit(bar["baseline"], bar["unit"]), ratio, limit(bar), holds]
    return f"| {' | '.join(cells)} |"


def main(files):
    if not files:
        sys.exit(__doc__)
    bars = {}
    for name in files:
        with open(name, encoding="utf-8") as file:
            bars.update({bar["name"]: bar for bar in json.load(file)["bars"]})
    last = len(ORDER)
    rank = {name: at for at, name in enumerate(ORDER)}
    print("| measured | median (lowest to highest) | baseline of the same run | ratio | bar | holds |")
    print("|---|---|---|---|---|---|")
    for name in sorted(bars, key=lambda name: rank.get(name, last)):
        print(row(bars[name]))


main(sys.argv[1:])
