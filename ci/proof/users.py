"""Compares the advice that users get from the logs of their own jobs with the advice of a model of the whole pool.

    users.py PROGRAM DIR

DIR has the pool's EventLog, its truth.safetensors, and a run on it in pool/.
"""

import bisect
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

import truth

USERS = 15
# Minimum share of the held jobs of all users that get advice, in percent.
MIN_ADVISED = 85
# How much less often the advice from own logs may be right, in percentage points, if no file is looked at. All jobs of a cluster are
# often held for one cause, so a single cause of which own logs show no outcome is a tenth of all answers.
MAX_LOSS = 10
# The same for advice that looks at files: a single cause is up to three of a hundred answers.
MAX_LOSS_WITH_LOOKS = 3
# Runs a program in a root directory that has the devices, processes and libraries of this machine, and none of its other files.
IN_ROOT = """
root=$1
for directory in dev lib lib64 proc usr; do
    [ ! -e "/$directory" ] || { mkdir -p "$root/$directory" && mount --rbind "/$directory" "$root/$directory"; }
done
exec chroot "$@"
"""


def printed(*command):
    """Runs a command, which must succeed; returns its stdout."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: exit code {done.returncode}: {' '.join(words)}\n{done.stderr}")
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


def succeeds(hold, asked_ms):
    """Returns if a job that is released unrepaired probably succeeds."""
    _, times, probabilities = hold
    return probabilities[bisect.bisect_right(times, asked_ms) - 1] >= 0.5


def is_right(action, hold, asked_ms):
    """Returns if an answer is right, as in a rehearsal; `None` if it claims nothing."""
    now = succeeds(hold, asked_ms)
    passing = not hold[0] or now
    if action in ("release", "probe"):
        return now
    if action == "later":
        return passing
    return not passing if action in ("fix", "remove") else None


def input_file(advice):
    """Returns the file on the access point that a job could not read; `None` if its hold reason names none."""
    found = re.search(r"failure at access point .* reading from file (/\S+): \(errno 2\)", advice["reason"] or "")
    return found and found[1]


def advised_with_looks(program, run, logs, without_looks, holds):
    """Returns the advice on the same jobs, in a root directory that has the files that are there when the log ends."""
    root = logs.with_name(f"{logs.name}.root")
    for path, place in ((run, "run"), (logs, "logs")):
        shutil.copytree(path, root / place)
    shutil.copy(program, root / "poolcast")
    for one in without_looks["advice"]:
        path = input_file(one)
        if not path:
            continue
        file = root / path.lstrip("/")
        is_there = succeeds(holds[key_of(one)], without_looks["asked_ms"])
        # A file system that is not mounted has no directories.
        if is_there or holds[key_of(one)][0]:
            file.parent.mkdir(parents=True, exist_ok=True)
        if is_there:
            file.touch()
    # Not as root, who looks with the rights of the owners: this root directory has no users.
    inside = ["unshare", "--user", "--map-user=1000", "--keep-caps", "--mount", "env", f"USER={logs.name}", "sh", "-ec", IN_ROOT, "sh", root]
    return json.loads(printed(*inside, "/poolcast", "-q", "advise", "/run", "/logs", "--look", "--no-network", "--json"))


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
    poolcast = [program, "-q"]
    pool = json.loads(printed(*poolcast, "advise", out / "pool", "--log", out / "EventLog", "--json"))
    of_pool = {key_of(one): one for one in pool["advice"]}
    held = collections.Counter(one["owner"] for one in pool["advice"])
    chosen = sorted(held, key=lambda owner: (-held[owner], owner))[:USERS]

    kinds = ("without a run", "after a run", "and files looked at", "of the pool's model")
    print("| user | logs |", " | ".join(f"advice {kind} | right" for kind in kinds), "|")
    print("| --- " * 10 + "|")
    totals = [Tally() for _ in kinds]
    certainties = collections.Counter()
    for owner in chosen:
        logs, run = out / owner, out / f"{owner}.out"
        logs.mkdir()
        for cluster, text in users[owner].items():
            (logs / f"{cluster}.log").write_text(text)
        without = json.loads(printed(*poolcast, "advise", logs, "--json"))
        printed(*poolcast, "run", "--log", logs, "-o", run)
        after = json.loads(printed(*poolcast, "advise", run, logs, "--json"))
        looked = advised_with_looks(program, run, logs, after, holds)
        same = pool | {"advice": [of_pool[key_of(one)] for one in after["advice"]]}

        tallies = [Tally() for _ in kinds]
        for document, tally, total in zip((without, after, looked, same), tallies, totals):
            for one in document["advice"]:
                for count in (tally, total):
                    count.add(one["action"], holds[key_of(one)], document["asked_ms"])
        for one in looked["advice"]:
            right = is_right(one["action"], holds[key_of(one)], looked["asked_ms"])
            certainties[one["action"], one["firmness"], right] += 1
        cells = [cell for tally in tallies for cell in tally.cells()]
        print("|", " | ".join([owner, str(len(users[owner])), *cells]), "|", flush=True)
    print("|", " | ".join(["all", "", *(cell for tally in totals for cell in tally.cells())]), "|")

    print("\n| answer with files looked at | certainty | right | wrong |\n| --- | --- | --- | --- |")
    for action, firmness in sorted({one[:2] for one in certainties if one[2] is not None}, key=str):
        counts = (str(certainties[action, firmness, right]) for right in (True, False))
        print("|", " | ".join([action, firmness or "", *counts]), "|")

    *of_own_logs, with_pool = totals
    for own, loss in zip(of_own_logs, (MAX_LOSS, MAX_LOSS, MAX_LOSS_WITH_LOOKS)):
        if own.advised_share() < MIN_ADVISED:
            sys.exit(f"error: {own.advised_share():.0f} % of the held jobs get advice, less than {MIN_ADVISED} %")
        if own.right_share() < with_pool.right_share() - loss:
            sys.exit(f"error: {own.right_share():.0f} % of the advice is right, of the pool's model {with_pool.right_share():.0f} %")


if __name__ == "__main__":
    main()
