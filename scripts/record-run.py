#!/usr/bin/env python3
"""Runs the whole suite and writes down what it ran on: record-run.py [newest|valkey]; without a name, the system's servers.

Output: docs/data/compat/DATE-COMMIT-SERVERS.json, also for a red run, and the table of docs/compatibility.md, which is made from
all of them (`UPDATE_DOCS=1 cargo test --test docs`). The servers' versions are what the servers themselves answered to the tests
(TEST_SERVERS); the counts are those of the test runner. Nothing is written when the tree has changes, or when a suite is missing:
a record is of one commit, and whole.
"""
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACE = ROOT / "docs/data/compat"
# What `Running …` says, and the suite's name; the library's tests and the programs' own are the unit tests.
SUITES = {
    "unit": r"unittests (bench/)?src/",
    **{name: rf"tests/{name}(/main)?\.rs" for name in ["chaos", "controls", "docs", "drops", "generated", "it", "model", "ops", "system", "tidy", "traces"]},
}


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def suites_of(text):
    """Counts by suite, and the names of the tests that failed."""
    found, failed, suite = {}, set(), None
    for line in text.splitlines():
        if running := re.match(r" +Running (\S+ ?\S*) \(", line):
            suite = next((name for name, shape in SUITES.items() if re.match(shape, running[1])), None)
        elif line.startswith("   Doc-tests "):
            suite = None
        elif result := re.match(r"test result: \w+\. (\d+) passed; (\d+) failed; .* finished in ([\d.]+)s", line):
            if suite:
                of = found.setdefault(suite, {"passed": 0, "failed": 0, "seconds": 0.0})
                of["passed"] += int(result[1])
                of["failed"] += int(result[2])
                of["seconds"] = round(of["seconds"] + float(result[3]), 1)
        elif suite and (red := re.match(r"    (\w+(?:::\w+)*)$", line)):
            failed.add(f"{suite}: {red[1]}")
    return found, sorted(failed)


def main():
    servers = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] else "system"
    changed = output_of("git", "status", "--porcelain", "--", ".", ":!docs/data/compat", ":!docs/compatibility.md")
    if changed:
        sys.exit(f"record-run: commit first, a record is of a commit:\n{changed}")
    commit = output_of("git", "rev-parse", "--short=7", "HEAD")
    environment = dict(os.environ)
    if servers != "system":
        environment["SECKILL_SERVERS"] = output_of("scripts/newest-servers.sh", servers)
    started = ROOT / "target/record-servers.json"
    started.unlink(missing_ok=True)
    environment["TEST_SERVERS"] = str(started)
    cargo = os.environ.get("CARGO", "cargo")
    subprocess.run([cargo, "build", "--locked", "--features", "faults"], cwd=ROOT, check=True)
    subprocess.run([cargo, "test", "--locked", "--no-run"], cwd=ROOT, check=True)
    log = ROOT / f"target/record-{servers}.log"
    begun = time.monotonic()
    with open(log, "w") as out:
        command = ["scripts/in-memory.sh", cargo, "test", "--locked", "--no-fail-fast"]
        subprocess.run(command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT, check=False)
    minutes = round((time.monotonic() - begun) / 60, 1)
    suites, failed = suites_of(log.read_text(errors="replace"))
    missing = sorted(set(SUITES) - set(suites))
    if missing:
        sys.exit(f"record-run: nothing is written, these suites did not end: {', '.join(missing)}; see {log}")
    today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    os_name = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    record = {
        "date": today,
        "commit": commit,
        "servers": json.loads(started.read_text()),
        "machine": f"{os.cpu_count()} cores, {os_name}, {platform.machine()}",
        "rust": output_of("rustc", "--version").split()[1],
        "suites": suites,
        "failed": failed,
        "minutes": minutes,
    }
    PLACE.mkdir(parents=True, exist_ok=True)
    file = PLACE / f"{today}-{commit}-{servers}.json"
    file.write_text(json.dumps(record, indent=2) + "\n")
    # The page agrees with the records again, so that the next run's own tests of the pages can be green.
    subprocess.run(
        [cargo, "test", "--locked", "--quiet", "--test", "docs", "compatibility::the_table"],
        cwd=ROOT, env={**environment, "UPDATE_DOCS": "1"}, check=True, capture_output=True,
    )
    print(f"{file.relative_to(ROOT)}: {minutes} minutes, {len(failed)} red: {', '.join(failed) or 'none'}")


main()
