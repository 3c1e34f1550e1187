#!/usr/bin/env python3
"""Recomputes the draw of a line: verify-draw.py ENTRIES.txt DRAW.json [ENTRY]

ENTRIES.txt is what GET /v1/sales/{sale}/draw/entries answers, DRAW.json what GET /v1/sales/{sale}/draw does.
Exit code 2 when they do not agree. Written apart from seckill, from the words in "algorithm" alone.
"""
import hashlib
import json
import sys


def sha256(data):
    return hashlib.sha256(data).digest()


text = open(sys.argv[1], "rb").read()
draw = json.load(open(sys.argv[2], encoding="utf-8"))
ids = [int(line) for line in text.split()]
if draw["seed"] is None or draw["needs_beacon"] and draw["state"] == "SEALED":
    sys.exit("the line is not drawn yet")
seed, digest = bytes.fromhex(draw["seed"]), sha256(text)
problems = [
    what
    for what, holds in [
        ("list: not in ascending order, or not one id in each line",
         text == b"".join(b"%d\n" % entry for entry in sorted(set(ids)))),
        ("entries: the file has another number of them", len(ids) == draw["entries"]),
        ("digest: that of the file is another one", digest.hex() == draw["digest"]),
        ("seed: it is not the one of the commitment", sha256(seed).hex() == draw["commitment"]),
        ("beacon: missing, or not awaited",
         draw["needs_beacon"] == (draw["beacon"] is not None)),
    ]
    if not holds
]
if problems:
    print("\n".join(problems), file=sys.stderr)
    sys.exit(2)
key = seed if draw["beacon"] is None else sha256(seed + draw["beacon"].encode())
ranked = sorted(ids, key=lambda entry: (sha256(key + digest + b"%d" % entry), entry))
for rank, entry in enumerate(ranked, 1):
    if rank <= 10 or str(entry) in sys.argv[3:]:
        print(rank, entry)
