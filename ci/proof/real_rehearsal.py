"""Uses a real pool as several owners do, and says what was true about each hold.

    real_rehearsal.py MINUTES SEED owners                    prints the names of the owners
    real_rehearsal.py MINUTES SEED servers                   prints the names of the servers
    real_rehearsal.py MINUTES SEED run ROOT FACTS            uses the pool with the root file system ROOT, and writes FACTS
    real_rehearsal.py MINUTES SEED truth FACTS LOG FILE      writes FILE, a truth file for `poolcast rehearse`, about the holds in LOG
"""

import collections
import datetime
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

import numpy as np
from safetensors.numpy import save_file

# What owners do about held jobs. Each looks once in a while: the time in between, in s.
HABITS = {
    "ada": ("policy", 60),  # releases by `periodic_release`
    "bob": ("try", 130),  # releases one job of a cluster, and the others once it got past the fault
    "cai": ("all", 420),  # releases all jobs, whatever they are held for
    "dee": ("never", 0),
    "eli": ("remove", 120),  # removes jobs that have been held for six minutes
    "fay": ("after outages", 60),  # releases the jobs of an outage after it
    "gus": ("repair", 240),  # repairs each fault, and then releases
}
SERVERS = ("data.lab.example", "store.uni.example")
# What fails for a while: the lengths of its outages, and the times in between, in s, and its states during outages.
OUTAGES = {
    SERVERS[0]: ((40, 120, 480), (150, 600), ("503", "503", "overloaded")),
    SERVERS[1]: ((60, 700), (300, 700), ("503", "404", "403")),
    "mount": ((90, 420), (300, 800), ("away",)),
    "licence": ((50, 300, 500), (150, 600), ("down",)),
}
# Success of a run while a server is overloaded, as in file_server.py, and of a program that forgets its output in a quarter
# of its runs.
OVERLOADED, FORGETFUL = 0.4, 0.75
# Faults that stay until somebody repairs them, with their share among clusters.
PERMANENT = {"misnamed": 4, "misnamed each": 2, "lost address": 3, "no output": 3, "memory": 3, "interpreter": 2, "crash": 2}
# Faults that pass, and none at all.
PASSING = {"server": 9, "mount": 5, "licence": 3, "forgetful": 3, "none": 9}
# Programs of jobs, by fault.
SCRIPTS = {
    "licence": "sleep 1\n[ ! -e /srv/state/no-licence ] || exit 75\n",
    "forgetful": "sleep 1\n[ $(($(od -An -N1 -tu1 /dev/urandom) % 4)) = 0 ] || touch table.csv\n",
    "memory": "sleep 2\nexit $1\n",
    "crash": "sleep 1\nkill -SEGV $$\n",
}
# `cause` in a truth file for a cause that the simulation does not have.
UNKNOWN_CAUSE = 255


class Pool:
    """The pool, its jobs, and its outages, at times in s since the start."""

    def __init__(self, minutes, seed, root):
        self.random = random.Random(seed)
        self.end_s = minutes * 60
        self.root = root
        self.state = root / "srv/state"
        self.started = time.time()
        self.outages = [outage for thing in OUTAGES for outage in self.planned_outages(thing)]
        self.clusters = []
        self.looked_s = dict.fromkeys(HABITS, 0)
        self.handled_outages = set()
        self.tried = {}

    def planned_outages(self, thing):
        """Returns (thing, begin, end, state) of each outage."""
        lengths, between, states = OUTAGES[thing]
        begin = self.random.uniform(90, between[1])
        while begin < self.end_s:
            end = begin + self.random.choice(lengths) * self.random.uniform(0.7, 1.3)
            yield thing, begin, end, self.random.choice(states)
            begin = end + self.random.uniform(*between)

    def shell(self, owner, line):
        environment = dict(os.environ, POOL_USER=owner, POOL_DIR="")
        command = ["ci/proof/pool", "run", "sh", "-c", line]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.stdout

    def use(self):
        """Submits, repairs, releases and removes jobs until the end."""
        submit_s = 0
        while (now := time.time() - self.started) < self.end_s:
            self.apply_outages(now)
            if submit_s <= now < 0.94 * self.end_s:
                self.submit(now)
                submit_s = now + self.random.expovariate(1 / 4)
            for cluster in self.clusters:
                if cluster["repair_s"] and not cluster["repaired_s"] and now >= cluster["repair_s"]:
                    self.repair(cluster, now)
            for owner, (habit, every_s) in HABITS.items():
                if every_s and now - self.looked_s[owner] > every_s:
                    self.looked_s[owner] = now
                    self.look(owner, habit, now)
            time.sleep(0.5)

    def apply_outages(self, now):
        for server in SERVERS:
            # The server may read its state at any time.
            fresh = self.state / f".{server}"
            fresh.write_text(state_of(self.outages, server, now))
            fresh.replace(self.state / server)
        licence, mount = self.state / "no-licence", self.root / "project"
        if state_of(self.outages, "licence", now) == "up":
            licence.unlink(missing_ok=True)
        else:
            licence.touch()
        away = mount.with_name(".project")
        if state_of(self.outages, "mount", now) == "up":
            if away.exists():
                away.rename(mount)
        elif mount.exists():
            mount.rename(away)

    def submit(self, now):
        owner = self.random.choice(list(HABITS))
        shares = PERMANENT | PASSING
        (fault,) = self.random.choices(list(shares), shares.values())
        cluster = {
            "owner": owner,
            "fault": fault,
            "thing": fault if fault in OUTAGES else self.random.choice(SERVERS) if fault in ("server", "lost address") else None,
            "name": f"batch{len(self.clusters)}",
            "jobs": self.random.choice((1, 1, 2, 3, 5, 8, 14)),
            "submitted_s": now,
            "repair_s": None,
            "repaired_s": None,
        }
        home = self.root / "home" / owner
        description = home / "job.sub"
        description.write_text("\n".join(self.description(cluster, home)) + f"\nqueue {cluster['jobs']}\n")
        printed = self.shell(owner, "condor_submit -terse job.sub")
        if not printed:
            return
        cluster["cluster"] = int(printed.split(".")[0])
        habit, _ = HABITS[owner]
        if fault in PERMANENT and (habit == "repair" or habit in ("policy", "all", "try") and self.random.random() < 0.35):
            cluster["repair_s"] = now + self.random.choice((60, 200, 600, 1500)) * self.random.uniform(0.5, 1.5)
        self.clusters.append(cluster)

    def description(self, cluster, home):
        """Returns the lines of a submit description."""
        owner, fault, name, thing = (cluster[key] for key in ("owner", "fault", "name", "thing"))
        yield from ("should_transfer_files = YES", "request_memory = 16", "request_disk = 1024", "skip_filechecks = true")
        yield from (f"log = /home/{owner}/jobs.log", f"JobBatchName = {name}")
        program, arguments = "/bin/sleep", self.random.randint(1, 5)
        if fault in SCRIPTS or fault == "interpreter":
            program = f"/home/{owner}/{name}.sh"
            first = "#!/opt/missing/bin/python" if fault == "interpreter" else "#!/bin/sh"
            write_program(home / f"{name}.sh", f"{first}\n{SCRIPTS.get(fault, '')}")
        match fault:
            case "server":
                file = self.random.choice(("genome.fa", "$(Cluster)/part$(Process).fa"))
                yield f"transfer_input_files = http://{thing}:8000/{owner}/{file}"
            case "lost address":
                yield f"transfer_input_files = http://{thing}:8000/{owner}/lost/x$(Process).fa"
            case "mount":
                yield f"transfer_input_files = /project/ref{self.random.randrange(30)}.dat"
            case "misnamed":
                yield f"transfer_input_files = /home/{owner}/in/{name}.csv"
            case "misnamed each":
                yield f"transfer_input_files = /home/{owner}/in/{name}/deck$(Process).inp"
            case "forgetful":
                yield "transfer_output_files = table.csv"
            case "no output":
                yield "transfer_output_files = result.h5"
            case "licence":
                yield from ("on_exit_hold = ExitCode == 75", 'on_exit_hold_reason = "the solver found no licence"')
            case "crash":
                yield from ("on_exit_hold = ExitBySignal", 'on_exit_hold_reason = strcat("the job died on signal ", ExitSignal)')
            case "memory":
                arguments = 137
                yield from ("on_exit_hold = ExitCode == 137", 'on_exit_hold_reason = "memory usage exceeded request_memory"')
        yield from (f"executable = {program}", f"arguments = {arguments}")
        if HABITS[owner][0] == "policy":
            yield "periodic_release = time() - EnteredCurrentStatus > 60 && NumHolds < 4 && HoldReasonCode != 1"

    def repair(self, cluster, now):
        """Repairs the fault of a cluster, and releases its jobs."""
        owner, fault, name, number = (cluster[key] for key in ("owner", "fault", "name", "cluster"))
        home = self.root / "home" / owner
        inputs = home / "in"
        match fault:
            case "misnamed":
                inputs.mkdir(exist_ok=True)
                (inputs / f"{name}.csv").touch()
            case "misnamed each":
                (inputs / name).mkdir(parents=True, exist_ok=True)
                for proc in range(cluster["jobs"]):
                    (inputs / name / f"deck{proc}.inp").touch()
            case "lost address":
                (self.state / f"found-{owner}").touch()
            case "no output":
                self.shell(owner, f"condor_qedit {number} TransferOutput '\"\"'")
            case "memory":
                self.shell(owner, f"condor_qedit {number} RequestMemory 64 Args '\"0\"' Arguments '\"0\"'")
            case _:
                write_program(home / f"{name}.sh", "#!/bin/sh\nsleep 1\n")
        cluster["repaired_s"] = now
        self.shell(owner, f"condor_release {number}")

    def look(self, owner, habit, now):
        """Does what the owner does about held jobs."""
        match habit:
            case "all":
                self.shell(owner, "condor_release -constraint 'JobStatus == 5 && NumHolds < 6'")
            case "remove":
                self.shell(owner, "condor_rm -constraint 'JobStatus == 5 && time() - EnteredCurrentStatus > 360'")
            case "repair":
                self.shell(owner, "condor_release -constraint 'JobStatus == 5 && regexp(\"table.csv\", HoldReason)'")
            case "after outages":
                for outage in self.outages:
                    if outage[2] + 30 < now and outage not in self.handled_outages:
                        self.handled_outages.add(outage)
                        self.release_jobs_of(owner, outage)
            case "try":
                self.release_after_tries(owner, now)

    def release_jobs_of(self, owner, outage):
        thing, _, end, _ = outage
        of_outage = lambda one: (one["owner"], one["thing"]) == (owner, thing) and one["fault"] in PASSING and one["submitted_s"] < end
        numbers = [str(one["cluster"]) for one in self.clusters if of_outage(one)]
        if numbers:
            self.shell(owner, f"condor_release {' '.join(numbers)}")

    def release_after_tries(self, owner, now):
        printed = self.shell(owner, "condor_q -constraint 'JobStatus == 5 && HoldReasonCode != 1' -af ClusterId ProcId")
        held = collections.defaultdict(list)
        for line in printed.splitlines():
            cluster, proc = line.split()
            held[cluster].append(proc)
        for cluster, procs in held.items():
            tried_s, proc = self.tried.get(cluster, (None, None))
            if tried_s and proc not in procs:
                self.shell(owner, f"condor_release {cluster}")
                del self.tried[cluster]
            elif tried_s is None or now - tried_s > 400:
                proc = self.random.choice(procs)
                self.tried[cluster] = now, proc
                self.shell(owner, f"condor_release {cluster}.{proc}")

    def facts(self):
        """Returns from what the truth about each hold follows."""
        return {"started": self.started, "outages": self.outages, "clusters": self.clusters}


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def state_of(outages, thing, at):
    return next((state for failed, begin, end, state in outages if failed == thing and begin <= at < end), "up")


class Facts:
    """What was true about the clusters of a run."""

    def __init__(self, path):
        facts = json.loads(path.read_text())
        self.started, self.outages = facts["started"], facts["outages"]
        self.clusters = {cluster["cluster"]: cluster for cluster in facts["clusters"]}
        # One repair of an address serves all jobs of the owner.
        self.found_s = {}
        for cluster in facts["clusters"]:
            if cluster["fault"] == "lost address" and cluster["repaired_s"]:
                found_s = self.found_s.get(cluster["owner"], cluster["repaired_s"])
                self.found_s[cluster["owner"]] = min(found_s, cluster["repaired_s"])

    def repaired_s(self, cluster):
        """Returns when the fault of a cluster was repaired; `None` if it was not."""
        return self.found_s.get(cluster["owner"]) if cluster["fault"] == "lost address" else cluster["repaired_s"]

    def success(self, cluster, at):
        """Returns the probability that a job of the cluster succeeds if it is released."""
        repaired_s = self.repaired_s(cluster)
        if cluster["fault"] in PERMANENT and (repaired_s is None or at < repaired_s):
            return 0.0
        if cluster["fault"] == "forgetful":
            return FORGETFUL
        state = state_of(self.outages, cluster["thing"], at)
        return {"up": 1.0, "overloaded": OVERLOADED}.get(state, 0.0)

    def changes(self, cluster, hold_ms):
        """Returns the times, epoch ms, and the probabilities of success from a hold on."""
        times = [self.repaired_s(cluster)]
        times += [at for thing, begin, end, _ in self.outages if thing == cluster["thing"] for at in (begin, end)]
        hold_s = hold_ms / 1000 - self.started
        later = [hold_s, *sorted(at for at in times if at and at > hold_s)]
        return [(max(hold_ms, int((self.started + at) * 1000)), self.success(cluster, at)) for at in later]


def holds_of(log):
    """Returns (cluster, proc, earlier holds, epoch ms) of each hold in a log, whose times are in UTC."""
    year = datetime.date.today().year
    counts = collections.Counter()
    holds = []
    for found in re.finditer(r"^012 \((\d+)\.(\d+)\.\d+\) (\d\d)/(\d\d) (\d\d):(\d\d):(\d\d) Job was held", log, re.M):
        cluster, proc, *numbers = map(int, found.groups())
        at = datetime.datetime(year, *numbers, tzinfo=datetime.timezone.utc)
        holds.append((cluster, proc, counts[cluster, proc], int(at.timestamp()) * 1000))
        counts[cluster, proc] += 1
    return sorted(holds)


def write_truth(facts, log, path):
    rows = [hold for hold in holds_of(log) if hold[0] in facts.clusters]
    clusters = [facts.clusters[hold[0]] for hold in rows]
    changes = [facts.changes(cluster, hold[3]) for cluster, hold in zip(clusters, rows)]
    starts = [0]
    for of_hold in changes:
        starts.append(starts[-1] + len(of_hold))
    unknown = np.full(len(rows), np.nan)
    holds = np.array([hold[:4] for hold in rows], np.int64).reshape(-1, 4)
    columns = {
        "change_time_ms": np.array([at for of_hold in changes for at, _ in of_hold], np.int64),
        "hold_time_ms": holds[:, 3],
        "release_time_ms": np.full(len(rows), -1, np.int64),
        "p_hold": np.array([of_hold[0][1] for of_hold in changes], np.float64),
        "p_release": unknown,
        "p_release_unseen_repair": unknown,
        "p_unmended": np.array([p for of_hold in changes for _, p in of_hold], np.float64),
        "change_start": np.array(starts, np.uint32),
        "earlier_holds": holds[:, 2].astype(np.uint32),
        "cluster": holds[:, 0].astype(np.int32),
        "proc": holds[:, 1].astype(np.int32),
        "cause": np.full(len(rows), UNKNOWN_CAUSE, np.uint8),
        "permanent": np.array([cluster["fault"] in PERMANENT for cluster in clusters], np.uint8),
        "released": np.zeros(len(rows), np.uint8),
    }
    notes = {"format": "truth", "format_version": 2, "notes": {"causes": []}}
    save_file({name: np.ascontiguousarray(column) for name, column in columns.items()}, path, {"poolcast": json.dumps(notes)})


def main():
    minutes, seed, action, *paths = sys.argv[1:]
    paths = [pathlib.Path(path) for path in paths]
    match action:
        case "owners":
            print(*HABITS)
        case "servers":
            print(*SERVERS)
        case "run":
            root, facts = paths
            pool = Pool(float(minutes), int(seed), root)
            pool.use()
            facts.write_text(json.dumps(pool.facts()))
        case "truth":
            facts, log, file = paths
            write_truth(Facts(facts), log.read_text(), file)


main()
