"""Measures and checks the jobs of ci/proof/provision.

provision.py turnaround                   prints the seconds that a node needs between two jobs, from the jobs `turn`
provision.py chains DIRECTORY NUMBER...   compares both chains in a busy queue, over the runs with these numbers
provision.py start FORECAST START         checks a forecast of `provision start` by the start of the job, in epoch seconds
provision.py kills DIRECTORY KILLS        checks a chain that was killed KILLS times
provision.py replay DIRECTORY             checks the simulation of all jobs
"""

import json
import os
import pathlib
import subprocess
import sys


def gaps(name):
    """Returns the seconds from each job's predecessor's end to its start, for the jobs with this name or of the chain."""
    columns = "--format=JobID,JobName,Start,End"
    command = ["sacct", "-a", "-X", "-n", "-P", "-S", "now-1hour", columns]
    environment = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
    printed = subprocess.run(command, capture_output=True, check=True, text=True, env=environment).stdout
    rows = [line.split("|") for line in printed.splitlines()]
    runs = [(int(start), int(end)) for _, job, start, end in rows if job == name]
    return [later[0] - earlier[1] for earlier, later in zip(runs, runs[1:])]


def split(all_gaps):
    interruption = sum(max(gap, 0) for gap in all_gaps) / len(all_gaps)
    overlap = sum(max(-gap, 0) for gap in all_gaps) / len(all_gaps)
    return interruption, overlap


def check_chains(directory, numbers):
    reactive, chain = [], []
    for number in numbers:
        reactive += gaps(f"reactive-{number}")
        found = gaps(f"link-{number}.sbatch")
        told = json.loads((directory / f"chain-{number}.json").read_text())["links"][1:]
        assert [link["gap_s"] for link in told] == found, told
        chain += found
    waited, _ = split(reactive)
    interruption, overlap = split(chain)
    print(f"links of a minute: reactive {waited:.1f} s without a job, chain {interruption:.1f} s and {overlap:.1f} s with two; {chain}")
    assert waited >= 10, "the queue is not busy"
    # The first links wait as long as without a forecast: the cluster has no past to learn from, and a busy machine lengthens this.
    assert interruption <= waited / 2, "the chain saves too little"
    assert overlap < 15, "the chain overlaps too long"


def check_start(forecast, start):
    print(f"started {start - forecast['start_p50_s']} s after the median of {forecast['draws']} draws; forecast: {forecast}")
    assert forecast["answer"] == "expected", forecast
    assert forecast["now_s"] <= forecast["start_p10_s"] <= forecast["start_p50_s"] <= forecast["start_p90_s"]
    # No job that is submitted later starts first. A minute is the turnaround of nodes on a busy machine.
    assert start <= forecast["start_by_limits_s"] + 60, "the job started later than if all others had run to their limits"
    [shape] = forecast["shapes"]
    assert shape["planned_start_s"] and shape["nodes"] == 1 and shape["limit_s"] == 60, shape


def check_kills(directory, kills):
    links = [int(link) for link in (directory / "short.out").read_text().split()]
    print(f"a chain that was killed {kills} times, and whose controller was away, ran its links: {links}")
    assert sorted(links) == list(range(1, 12)), "a link ran twice, or not at all"
    assert kills >= 10, "it was hardly killed"


def check_replay(directory):
    replay = json.loads((directory / "replay.json").read_text())["all"]
    simulated, logged = replay["simulated_mean_h"] * 3600, replay["logged_mean_h"] * 3600
    half = replay["error_p50_h"] * 3600
    print(f"{replay['jobs']} jobs: simulated mean wait {simulated:.1f} s, logged {logged:.1f} s; half of the starts within {half:.0f} s")
    # One second of a turnaround is a tenth of such short waits.
    assert abs(simulated - logged) <= 0.2 * logged
    assert half <= 10


what, *rest = sys.argv[1:]
directory = rest.pop(0) if rest else None
if what == "turnaround":
    all_gaps = gaps("turn")
    print(f"from one job to the next: {all_gaps} s", file=sys.stderr)
    print(round(sum(all_gaps) / len(all_gaps)))
elif what == "chains":
    check_chains(pathlib.Path(directory), rest)
elif what == "start":
    check_start(json.loads(pathlib.Path(directory).read_text()), int(rest[0]))
elif what == "kills":
    check_kills(pathlib.Path(directory), int(rest[0]))
else:
    check_replay(pathlib.Path(directory))
