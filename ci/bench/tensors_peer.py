"""Builds tensors like the published pipeline: for every held job, a one-hot array of j jobs and m frames.

    python3 ci/bench/tensors_peer.py DUMP J M TIMEFRAME_LEN

DUMP is the output of `poolcast parse LOG --dump`. Other jobs are drawn at random until one has events in the window. Every
frame of every job searches all of the job's events. The published mistakes are corrected: comparison by time of day only,
frames in reverse order, and an endless search if too few jobs are left. Each time stamp is parsed once. Runs for ten
seconds, and prints samples per CPU second.
"""

import json
import random
import sys
import time
from datetime import datetime

STATES = 49
SECONDS = 10


def histories(dump):
    """Returns the events of each job as (time, number)."""
    jobs = {}
    for line in dump:
        event = json.loads(line)
        if event["cluster"] < 0 or event["type"] == 28:
            continue
        moment = datetime.fromisoformat(event["time"]).timestamp()
        jobs.setdefault((event["cluster"], event["proc"]), []).append((moment, event["type"]))
    return jobs


def row(events, start, m, length):
    """Returns the last event of each frame, or the previous frame's if a frame has none."""
    states, state = [], None
    for frame in range(m):
        low, high = start + frame * length, start + (frame + 1) * length
        within = [number for moment, number in events if low <= moment <= high]
        state = within[-1] if within else state
        states.append(state)
    return states


def sample(jobs, names, primary, hold, j, m, length):
    """Returns the one-hot array `[j][m][STATES]` of a held job and j - 1 others."""
    start = hold - m * length
    chosen = [primary]
    for _ in range(50 * j):
        other = names[random.randrange(len(names))]
        if len(chosen) == j:
            break
        if other not in chosen and any(start <= moment <= hold for moment, _ in jobs[other]):
            chosen.append(other)
    tensor = []
    for name in chosen:
        one_hot = [[0] * STATES for _ in range(m)]
        for frame, state in enumerate(row(jobs[name], start, m, length)):
            if state is not None:
                one_hot[frame][min(state, STATES - 1)] = 1
        tensor.append(one_hot)
    return tensor


def main():
    with open(sys.argv[1], encoding="utf-8") as dump:
        jobs = histories(dump)
    j, m, length = map(int, sys.argv[2:5])
    random.seed(1)
    names = list(jobs)
    holds = [(name, moment) for name, events in jobs.items() for moment, number in events if number == 12]
    random.shuffle(holds)
    begin, built = time.process_time(), 0
    for name, moment in holds:
        sample(jobs, names, name, moment, j, m, length)
        built += 1
        if time.process_time() - begin > SECONDS:
            break
    rate = built / (time.process_time() - begin)
    print(f"builder in Python: j = {j}, m = {m}: {built} samples, {rate:.1f} per cpu-s")


main()
