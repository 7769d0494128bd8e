"""Compares poolcast's sender with `wandb sync`, and trains beside a hanging server: tracking_peer.py PROGRAM PLACE, see ci/bench/tracking."""
import filecmp
import glob
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

PROGRAM, PLACE = sys.argv[1:]
TOOLS = os.path.dirname(sys.executable)
MOST_REQUESTS_PER_RUN = 4
MOST_PEAK_BYTES = 64 << 20
MOST_CPU_RATIO = 1.01
TRAININGS = 12
LENGTH = "epochs: 40\nearlystop_threshold: 40\n"


def check(is_right, message):
    if not is_right:
        sys.exit(f"error: ci/bench/tracking_peer.py: {message}")


def measured(command, environment):
    """Runs a command; returns wall time and CPU seconds, including its children, and peak memory in bytes."""
    began = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    check(os.waitstatus_to_exitcode(status) == 0, f"{command[:3]} has failed")
    return time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def sent(name, command):
    """Runs a sender; returns its requests per run, CPU seconds and peak memory."""
    port_file = f"{PLACE}/{name}.port"
    server = subprocess.Popen([sys.executable, "ci/proof/wandb_server.py", port_file])
    try:
        while not (os.path.exists(port_file) and open(port_file).read().endswith("\n")):
            time.sleep(0.05)
        address = f"http://127.0.0.1:{open(port_file).read().strip()}"
        environment = os.environ | {"WANDB_BASE_URL": address, "WANDB_API_KEY": "k" * 40}
        wall, cpu, peak = measured(command, environment)
        with urllib.request.urlopen(f"{address}/state") as answer:
            state = json.load(answer)
    finally:
        server.kill()
        server.wait()
    requests, runs = state["requests"], len(state["runs"])
    print(f"{name}: {runs} runs, {requests} requests, {wall:.1f} s, {cpu:.1f} processor seconds, {peak / 1e6:.0f} MB")
    return requests / runs, cpu, peak


def compare_senders():
    requests, cpu, peak = sent("poolcast", [PROGRAM, "-q", "track", f"{PLACE}/sweep", "--to", "wandb"])
    files = sorted(glob.glob(f"{PLACE}/offline/offline-run-*"))
    _, their_cpu, _ = sent("wandb sync", [f"{TOOLS}/wandb", "sync", "--yes", *files])
    row = ["1,000 runs of up to 200 epochs", str(1000 / cpu), "runs per CPU-s", "wandb sync", str(1000 / their_cpu)]
    subprocess.run(["ci/bench/row", *row], check=True)
    check(requests <= MOST_REQUESTS_PER_RUN, f"{requests} requests a run")
    check(cpu <= their_cpu / 2, f"{cpu} processor seconds beside {their_cpu}")
    check(peak <= MOST_PEAK_BYTES, f"{peak} bytes")


def train(name, more, address):
    config = f"{PLACE}/{name}.yaml"
    with open(config, "w") as file:
        file.write(more)
    out = f"{PLACE}/{name}"
    shutil.rmtree(out, ignore_errors=True)
    command = [PROGRAM, "-q", "train", f"{PLACE}/tensors", "-c", config, "-o", out, "--hidden-size", "64"]
    environment = os.environ | {"WANDB_BASE_URL": address, "WANDB_API_KEY": "k" * 40}
    return measured(command, environment)[1]


def hang(listener):
    """Accepts connections, and never answers."""
    kept = []
    while True:
        kept.append(listener.accept())


def compare_trainings():
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=hang, args=(listener,), daemon=True).start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    lengths = {"alone": LENGTH, "beside": LENGTH + "wandb: {enable: true}\n"}
    used = {name: [] for name in lengths}
    # The order within a pair alternates, because a CPU that has just worked differs in speed from a rested one.
    for pair in range(TRAININGS):
        for name in sorted(lengths, reverse=pair % 2 == 1):
            used[name].append(train(name, lengths[name], address))
    for name in ("model.safetensors", "metrics.json", "history.jsonl"):
        check(filecmp.cmp(f"{PLACE}/alone/{name}", f"{PLACE}/beside/{name}", shallow=False), f"another {name}")
    # A single pair may differ by a tenth on a shared machine.
    ratio = statistics.median(beside / alone for alone, beside in zip(used["alone"], used["beside"]))
    seconds = statistics.median(used["alone"])
    print(f"training beside a server that hangs: {ratio:.3f} of the processor time alone ({seconds:.2f} s), the same bytes")
    check(ratio <= MOST_CPU_RATIO, f"{ratio}: {used}")


compare_senders()
compare_trainings()
