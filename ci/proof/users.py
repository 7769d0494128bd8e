"""Compares the advice that users get from the logs of their own jobs with the advice of a model of the whole pool.

    users.py PROGRAM DIR

DIR has the pool's EventLog, its truth.safetensors, and a run on it in pool/.
"""

import bisect
import collections
import json
import pathlib
import re
import subprocess
import sys

import truth

USERS = 15
# Minimum share of the held jobs of all users that get advice, in percent.
MIN_ADVISED = 85
# How much less often the advice from own logs may be right, in percentage points. All jobs of a cluster are often held for one cause, so
# a single cause of which own logs show no outcome is a tenth of all answers.
MAX_LOSS = 10


def printed(program, *args, codes=(0,)):
    """Runs poolcast, which must end with one of the exit codes; returns its stdout."""
    done = subprocess.run([program, "-q", *map(str, args)], capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"error: exit code {done.returncode}: poolcast {' '.join(map(str, args))}\n{done.stderr}")
    return done.stdout


def own_logs(path):
    """Returns {owner: {cluster: text}}, as the jobs' own logs have it: full dates, and neither a header nor job ads."""
    text = path.read_text()
    year = 2026
    owners, records = {}, collections.defaultdict(list)
    for record in text.split("\n...\n"):
        found = re.match(r"(\d{3}) \((\d+)\.(\d+)\.(\d+)\) (\d\d)/(\d\d) (.*)", record, re.S)
        if not found:
            continue
        number, cluster, proc, sub, month, day, rest = found.groups()
        if number == "028":
            owner = re.search(r'^Owner = "([^"]*)"', record, re.M)
            if owner:
                owners[int(cluster)] = owner[1]
            continue
        records[int(cluster)].append(f"{number} ({cluster}.{proc}.{sub}) {year}-{month}-{day} {rest}\n...\n")
    users = collections.defaultdict(dict)
    for cluster, lines in records.items():
        users[owners[cluster]][cluster] = "".join(lines)
    return users


def read_truth(path):
    """Returns {(cluster, proc, hold second): (permanent, change times, probabilities)}."""
    names = ["cluster", "proc", "hold_time_ms", "permanent", "change_start", "change_time_ms", "p_unmended"]
    found = truth.columns(path, names)
    holds = {}
    for at in range(len(found["cluster"])):
        begin, end = found["change_start"][at], found["change_start"][at + 1]
        key = (found["cluster"][at], found["proc"][at], found["hold_time_ms"][at] // 1000)
        holds[key] = (found["permanent"][at] == 1, found["change_time_ms"][begin:end], found["p_unmended"][begin:end])
    return holds


def key_of(advice):
    """Returns the identity of an advised hold."""
    cluster, proc = advice["job"].split(".")
    return int(cluster), int(proc), advice["held_since_ms"] // 1000


def is_right(action, hold, asked_ms):
    """Returns if an answer is right, as in a rehearsal; `None` if it claims nothing."""
    permanent, times, probabilities = hold
    now = probabilities[bisect.bisect_right(times, asked_ms) - 1] >= 0.5
    passing = not permanent or now
    if action in ("release", "probe"):
        return now
    if action == "later":
        return passing
    return not passing if action in ("fix", "remove") else None


class Tally:
    """Counts of answers."""

    def __init__(self):
        self.held = self.advised = self.right = self.wrong = 0

    def add(self, action, hold, asked_ms):
        self.held += 1
        self.advised += action != "none"
        right = is_right(action, hold, asked_ms)
        self.right += right is True
        self.wrong += right is False

    def right_share(self):
        return 100 * self.right / max(self.right + self.wrong, 1)

    def advised_share(self):
        return 100 * self.advised / max(self.held, 1)

    def cells(self):
        return f"{self.advised} of {self.held}", f"{self.right} of {self.right + self.wrong}"


def main():
    program, out = sys.argv[1], pathlib.Path(sys.argv[2])
    holds = read_truth(out / "truth.safetensors")
    users = own_logs(out / "EventLog")
    pool = json.loads(printed(program, "advise", out / "pool", "--log", out / "EventLog", "--json"))
    of_pool = {key_of(one): one for one in pool["advice"]}
    held = collections.Counter(one["owner"] for one in pool["advice"])
    chosen = sorted(held, key=lambda owner: (-held[owner], owner))[:USERS]

    print("| user | logs | advice without a run | right | advice after a run | right | advice of the pool's model | right |")
    print("| --- " * 8 + "|")
    totals = [Tally() for _ in range(3)]
    kinds = collections.Counter()
    for owner in chosen:
        logs = out / owner
        logs.mkdir()
        for cluster, text in users[owner].items():
            (logs / f"{cluster}.log").write_text(text)
        without = json.loads(printed(program, "advise", logs, "--json"))
        printed(program, "run", "--log", logs, "-o", out / f"{owner}.out")
        after = json.loads(printed(program, "advise", out / f"{owner}.out", logs, "--json"))
        tallies = [Tally() for _ in range(3)]
        for document, tally, total in zip((without, after), tallies, totals):
            for one in document["advice"]:
                for count in (tally, total):
                    count.add(one["action"], holds[key_of(one)], document["asked_ms"])
        for one in after["advice"]:
            right = is_right(one["action"], holds[key_of(one)], after["asked_ms"])
            kinds[one["action"], one["firmness"], right] += 1
            same = of_pool.get(key_of(one))
            if same is None:
                sys.exit(f"error: the pool's log does not have the hold of {one['job']}")
            for count in (tallies[2], totals[2]):
                count.add(same["action"], holds[key_of(one)], pool["asked_ms"])
        cells = [cell for tally in tallies for cell in tally.cells()]
        print("|", " | ".join([owner, str(len(users[owner])), *cells]), "|", flush=True)
    print("|", " | ".join(["all", "", *(cell for tally in totals for cell in tally.cells())]), "|")
    print("\n| answer after a run | certainty | right | wrong |\n| --- | --- | --- | --- |")
    for action, firmness in sorted({kind[:2] for kind in kinds if kind[2] is not None}, key=str):
        print("|", " | ".join([action, firmness or "", *(str(kinds[action, firmness, right]) for right in (True, False))]), "|")

    with_pool = totals[2]
    for own in totals[:2]:
        if own.advised_share() < MIN_ADVISED:
            sys.exit(f"error: {own.advised_share():.0f} % of the held jobs get advice, less than {MIN_ADVISED} %")
        if own.right_share() < with_pool.right_share() - MAX_LOSS:
            sys.exit(f"error: {own.right_share():.0f} % of the advice is right, of the pool's model {with_pool.right_share():.0f} %")


if __name__ == "__main__":
    main()
