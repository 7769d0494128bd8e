"""Tests a sender while sweeps run: tracking_live.py PROGRAM PLACE, see ci/proof/tracking.

Buttons on W&B's pages must reach the trials. Workers without a key must receive the points of a sweep on W&B. A minute without
a server must cost nothing but time.
"""
import concurrent.futures
import contextlib
import json
import os
import subprocess
import sys
import time

from served_wandb import WandbServer

PROGRAM, PLACE = sys.argv[1:]
LIMIT_S = 900

CONFIG = """
logs: [{logs}/EventLog.xz]
seed: 3
runs: {runs}
epochs: {epochs}
wandb: {{project: held-jobs, sweep: {{{sweep}}}}}
preprocessing: {{parameters: {{j: 4, m: 4, timeframe_len: 20}}}}
training: {{parameters: {{model: mlp, hidden_size: 4, learning_rate: {learning_rate}}}}}
"""
DRAWN = "{distribution: uniform, min: 0.001, max: 0.02}"


def check(is_right, message):
    if not is_right:
        raise SystemExit(f"error: ci/proof/tracking_live.py: {message}")


class Sweep:
    """A sweep in a separate folder, and its processes for the length of a block."""

    def __init__(self, name, **wishes):
        self.dir = f"{PLACE}/{name}"
        self.processes = contextlib.ExitStack()
        wishes = {"runs": 3, "epochs": 5, "sweep": f"name: {name}", "learning_rate": DRAWN} | wishes
        with open(f"{self.dir}.yaml", "w") as file:
            file.write(CONFIG.format(logs=os.path.abspath("tests/data/gel"), **wishes))
        self.poolcast("sweep", "init", f"{self.dir}.yaml", "-o", self.dir)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return self.processes.__exit__(*error)

    def poolcast(self, *words, environment=None):
        """Runs the program, which must succeed, and returns its output."""
        command = [PROGRAM, "-q", *words]
        told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
        check(told.returncode == 0, f"{' '.join(words)}: {told.stderr}")
        return told.stdout

    def begin(self, *words, environment=None):
        """Starts a process of the program, which is killed at the end of the block if it still runs."""
        with open(f"{self.dir}.txt", "a") as log:
            process = subprocess.Popen([PROGRAM, "-q", *words], env=environment, stdout=log, stderr=log)
        self.processes.callback(process.wait)
        self.processes.callback(process.kill)
        return process

    def track(self, server, *flags):
        return self.poolcast("track", self.dir, "--to", "wandb", *flags, environment=server.environment)

    def status(self):
        return json.loads(self.poolcast("sweep", "status", self.dir, "--json"))

    def at_work(self):
        return len(self.status()["running"] or [])

    def rows(self):
        return [json.loads(line) for line in open(f"{self.dir}/results.jsonl")]


def wait_until(is_true, what):
    end = time.monotonic() + LIMIT_S
    while not is_true():
        check(time.monotonic() < end, f"not in {LIMIT_S} s: {what}")
        time.sleep(0.2)


def run_at_work(sweep, server, others=()):
    """Returns the run id of the current trial, once the server has one of its epochs."""
    found = []

    def look():
        sweep.track(server)
        runs = server.state()["runs"].items()
        found[:] = [name for name, run in runs if run["exit_code"] is None and run["history"] and name not in others]
        return found

    wait_until(look, "a trial is at work")
    return found[0]


def check_control():
    """Checks that Stop ends a trial with its best weights, and that a paused sweep starts no trial until it is resumed."""
    began = time.monotonic()
    with Sweep("control", runs=4, epochs="100000\nearlystop_threshold: 100000") as sweep, WandbServer(sweep.dir) as server:
        work = sweep.begin("sweep", "run", sweep.dir, "--threads", "1")
        first = run_at_work(sweep, server)
        server.control(stop=first)
        sweep.track(server)
        wait_until(lambda: sweep.status()["done"] == 1, "the stopped trial ends")

        second = run_at_work(sweep, server)
        server.control(stop=second, sweep_state="PAUSED")
        sweep.track(server)
        wait_until(lambda: sweep.status()["done"] == 2, "the trial at work ends while the sweep is paused")
        time.sleep(2)
        check(sweep.at_work() == 0, "a paused sweep hands something out")

        server.control(sweep_state="RUNNING")
        third = run_at_work(sweep, server)
        server.control(stop=third, sweep_state="FINISHED")
        sweep.track(server)
        check(work.wait(LIMIT_S) == 0, "the sweep ends ill")
        sweep.track(server)
        rows, runs = sweep.rows(), server.state()["runs"]

    check(len({first, second, third}) == 3 and set(runs) == {first, second, third}, runs.keys())
    check(len(rows) == 3, f"{len(rows)} trials, and the fourth was not to be made")
    for run in runs.values():
        summary = run["summary"]
        check((run["exit_code"], summary["status"]) == (0, "ended on request"), summary)
        best = max(run["history"].values(), key=lambda line: (line["validation_roc_auc"], -line["_step"]))
        check(summary["best_epoch"] == best["_step"], f"{summary}: epoch {best['_step']} is the best")
    for row in rows:
        model = f"{sweep.dir}/trials/trial-{row['trial']:04}/model.safetensors"
        check(row["ended_on_request"] and row["value"] is not None and os.path.isfile(model), row)
    print(f"W&B's pages: three trials stopped, one sweep paused, in {time.monotonic() - began:.0f} s")


CREATE_SWEEP = "mutation UpsertSweep { upsertSweep(input: {}) { sweep { name } } }"


def check_points():
    """Checks that workers without a key try the points of a sweep on W&B, each as the run that W&B has named."""
    began = time.monotonic()
    grid = {"hidden_size": {"values": [3, 4, 5, 6]}, "learning_rate": {"value": 0.004}}
    space = {"method": "grid", "metric": {"name": "validation_roc_auc", "goal": "maximize"}, "parameters": grid}
    with WandbServer(f"{PLACE}/points") as server:
        created = server.ask(CREATE_SWEEP, config=json.dumps(space), projectName="held-jobs")
        name = created["data"]["upsertSweep"]["sweep"]["name"]
        with Sweep("points", runs=9, learning_rate="0.01", sweep=f"id: tester/held-jobs/{name}") as sweep:
            manager = sweep.begin("sweep", "manage", sweep.dir, environment=server.environment)
            workers = [sweep.begin("sweep", "work", sweep.dir) for _ in range(2)]
            check(manager.wait(LIMIT_S) == 0, f"the manager ends ill: {sweep.dir}.txt")
            check(all(worker.wait(LIMIT_S) == 0 for worker in workers), f"a worker ends ill: {sweep.dir}.txt")
            rows, state = sweep.rows(), server.state()

    parameters = [row["parameters"] for row in rows]
    check(all(point["learning_rate"] == 0.004 for point in parameters), parameters)
    check(sorted(point["hidden_size"] for point in parameters) == [3, 4, 5, 6], parameters)
    check(sorted(state["runs"]) == [f"{name}run{number}" for number in range(1, 5)], state["runs"].keys())
    for run in state["runs"].values():
        check((run["sweep"], run["exit_code"], len(run["history"])) == (name, 0, 5), run)
    print(f"W&B's points: {len(rows)} of its sweep tried, in {time.monotonic() - began:.0f} s")


def check_outage(name, **outage):
    """Checks that after an outage the server has the same state as without one."""
    began = time.monotonic()
    with Sweep(name) as sweep, WandbServer(sweep.dir) as server, WandbServer(f"{sweep.dir}-undisturbed") as undisturbed:
        server.control(outage=outage)
        work = sweep.begin("sweep", "run", sweep.dir)
        sender = sweep.begin("track", sweep.dir, "--to", "wandb", "--watch", environment=server.environment)
        wait_until(lambda: any(tracker["silent_since"] for tracker in sweep.status()["trackers"]), "the sender sees it")
        check(work.wait(LIMIT_S) == 0, "the sweep ends ill")
        check(sender.wait(LIMIT_S) == 0, f"the sender ends ill: {sweep.dir}.txt")
        took_s = time.monotonic() - began
        os.remove(f"{sweep.dir}/tracked-wandb.json")
        sweep.track(undisturbed)
        left, expected = server.state(), undisturbed.state()

    check(took_s >= outage["seconds"], f"the server was away for {took_s:.0f} s only")
    for kept in "runs", "sweeps":
        # NaN differs from itself.
        texts = [json.dumps(state[kept], sort_keys=True) for state in (left, expected)]
        check(texts[0] == texts[1], f"{kept} after the {name}: {texts[0]}\nundisturbed: {texts[1]}")
    check(len(left["runs"]) == 3, left["runs"].keys())
    print(f"{name} of {outage['seconds']} s: {len(left['runs'])} runs as without it, in {took_s:.0f} s")


def check_away():
    check_outage("outage", after=5, seconds=60)


def check_hanging():
    # An attempt takes at most 30 s.
    check_outage("hang", after=5, seconds=35, hangs=True)


with concurrent.futures.ThreadPoolExecutor() as threads:
    for result in [threads.submit(each) for each in (check_away, check_hanging, check_control, check_points)]:
        result.result()
