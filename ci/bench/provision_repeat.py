#!/usr/bin/env python3
"""Prints a published log several times, in the format of `sacct` with epoch time stamps.

    provision_repeat.py LOG REPEATS
"""

import lzma
import sys
from datetime import datetime
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("America/Chicago")


def read_rows(path):
    opened = lzma.open if path.endswith(".xz") else open
    with opened(path, "rt") as log:
        for line in log:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 10 and fields[0].isdigit():
                start, submit, end = (
                    int(datetime.fromisoformat(text).replace(tzinfo=ZONE).timestamp()) for text in fields[3:6]
                )
                yield fields[2], submit, start, end, fields[7], fields[9]


def main():
    path, repeats = sys.argv[1], int(sys.argv[2])
    rows = list(read_rows(path))
    submits = [row[1] for row in rows]
    period = max(submits) - min(submits) + 60
    print("JobID|User|Submit|Start|End|TimelimitRaw|NNodes")
    number = 0
    for repeat in range(repeats):
        later = repeat * period
        for user, submit, start, end, limit, nodes in rows:
            number += 1
            print(f"{number}|{user}|{submit + later}|{start + later}|{end + later}|{limit}|{nodes}")


main()
