"""Runs the published simulator's algorithm, minute by minute, as the peer of a speed comparison, and repeats its log.

    provision_peer.py simulate LOG JOBS NODES STARTS
    provision_peer.py repeat LOG TIMES

`simulate` simulates the first JOBS jobs of a published log on NODES nodes, and writes `JobID<TAB>start` to STARTS. It prints the number
of jobs per CPU second, without reading. `repeat` prints the log TIMES times, in the format of `sacct` with epoch time stamps.
"""

import lzma
import sys
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

SLOTS, SLOT_MIN, BACKFILL_MIN = 288, 10, 10
AGE_PER_MIN, SIZE_WEIGHT = 7000 / (7 * 1440), 100


class Job:
    def __init__(self, fields):
        self.id = fields[0]
        start, submit, end = (datetime.fromisoformat(text) for text in fields[3:6])
        self.limit = int(fields[7])
        self.nodes = int(fields[9])
        self.submit = submit.replace(second=0)
        seconds = min((end - start).total_seconds(), self.limit * 60)
        self.ticks = max(1, -int(-seconds // 60))
        self.priority = 0.0
        self.started = None


def read_rows(path):
    opened = lzma.open if path.endswith(".xz") else open
    with opened(path, "rt") as log:
        rows = (line.rstrip("\n").split("\t") for line in log)
        return [row for row in rows if len(row) == 10 and row[0].isdigit()]


def plan_ahead(pending, running, nodes, now):
    free = [nodes] * SLOTS
    for end_of_limit, used in running:
        for slot in range(SLOTS):
            if end_of_limit <= now + slot * SLOT_MIN:
                break
            free[slot] -= used
    chosen = []
    for job in pending:
        length = -(-job.limit // SLOT_MIN)
        for first in range(SLOTS):
            last = min(first + length, SLOTS)
            if all(free[slot] >= job.nodes for slot in range(first, last)):
                for slot in range(first, last):
                    free[slot] -= job.nodes
                if first == 0:
                    chosen.append(job)
                break
    return chosen


def in_order(pending, free):
    chosen = []
    for job in pending:
        if job.nodes > free:
            break
        free -= job.nodes
        chosen.append(job)
    return chosen


def simulate(jobs, nodes):
    begin = min(job.submit for job in jobs)
    arrivals = {}
    for job in sorted(jobs, key=lambda job: job.id):
        arrivals.setdefault(int((job.submit - begin).total_seconds()) // 60, []).append(job)
    pending, running, now, left = [], [], 0, len(jobs)
    while left:
        if now in arrivals:
            for job in arrivals[now]:
                job.priority = SIZE_WEIGHT * job.nodes / nodes
                pending.append(job)
            pending.sort(key=lambda job: -job.priority)
        free = nodes - sum(job.nodes for job, _ in running)
        if now % BACKFILL_MIN == 0:
            limits = [(job.started + job.limit, job.nodes) for job, _ in running]
            chosen = plan_ahead(pending, limits, nodes, now)
        else:
            chosen = in_order(pending, free)
        for job in chosen:
            job.started = now
            pending.remove(job)
            running.append((job, now + job.ticks))
            left -= 1
        for job in pending:
            job.priority += AGE_PER_MIN
        now += 1
        running = [(job, end) for job, end in running if end > now]
    return begin


def write_starts(path, count, nodes, starts):
    jobs = sorted(map(Job, read_rows(path)), key=lambda job: job.submit)[: int(count)]
    clock = time.process_time()
    begin = simulate(jobs, int(nodes))
    seconds = time.process_time() - clock
    with open(starts, "w") as file:
        for job in jobs:
            file.write(f"{job.id}\t{(begin + timedelta(minutes=job.started)).isoformat()}\n")
    print(f"{len(jobs) / seconds:.1f}")


def epoch_seconds(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("America/Chicago")).timestamp())


def repeat(path, times):
    rows = [(row[2], *map(epoch_seconds, row[3:6]), row[7], row[9]) for row in read_rows(path)]
    submits = [submit for _, _, submit, *_ in rows]
    period = max(submits) - min(submits) + 60
    print("JobID|User|Submit|Start|End|TimelimitRaw|NNodes")
    for number in range(int(times) * len(rows)):
        user, start, submit, end, limit, nodes = rows[number % len(rows)]
        later = number // len(rows) * period
        print(f"{number + 1}|{user}|{submit + later}|{start + later}|{end + later}|{limit}|{nodes}")


{"simulate": write_starts, "repeat": repeat}[sys.argv[1]](*sys.argv[2:])
