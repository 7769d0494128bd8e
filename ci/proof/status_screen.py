"""Draws `poolcast sweep status` on emulated terminals, and fails if a screen is unreadable.

    status_screen.py PROGRAM
"""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import pyte

PROGRAM = os.path.abspath(sys.argv[1])
HOME = os.path.abspath("target/status")
# The longest wait, on a machine that is busy with other proofs.
LIMIT_S = 300
CONFIG = """
logs: [{log}]
out: {home}/sweep
runs: 1000
epochs: 400
earlystop_threshold: 400
wandb: {{sweep: {{name: status, method: random}}}}
preprocessing: {{parameters: {{j: 10, m: 8, timeframe_len: 20}}}}
training: {{time_cuts: 1, parameters: {{model: lstm, hidden_size: 48, learning_rate: {{distribution: uniform, min: 0.001, max: 0.02}}}}}}
"""
NODE = '[\n  Type = "NodeStatus";\n  Node = "{name}";\n  NodeStatus = {state};\n  JobProcsHeld = {held};\n]\n'
DAG = '[\n  Type = "DagStatus";\n  DagStatus = 3;\n  JobProcsHeld = 1;\n  Timestamp = {now};\n]\n'


class Window:
    """A terminal that shows the status."""

    def __init__(self, directory, lines, columns, **variables):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = b""
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            environment = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", **variables}
            time.sleep(0.2)
            os.execve(PROGRAM, [PROGRAM, "sweep", "status", directory], environment)
        self.resize(lines, columns)
        self.modes = termios.tcgetattr(self.terminal)

    def resize(self, lines, columns):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def read(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.terminal], [], [], left)[0]:
                return
            try:
                some = os.read(self.terminal, 1 << 16)
            except OSError:
                return
            if not some:
                return
            self.bytes += some
            self.stream.feed(some)

    def read_until(self, is_shown):
        """Reads until `is_shown` accepts the lines: a busy machine may take its time."""
        end = time.monotonic() + LIMIT_S
        while not is_shown(self.lines()) and time.monotonic() < end:
            self.read(1)

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def end(self):
        """Presses Ctrl-C: the program must exit, and restore the terminal."""
        before = len(self.bytes)
        os.write(self.terminal, b"\x03")
        self.read(3)
        _, state = os.waitpid(self.process, 0)
        assert os.waitstatus_to_exitcode(state) == 0, state
        rest = self.bytes[before:]
        assert b"\x1b[?25h\x1b[?1049l" in rest, rest
        assert self.bytes.count(b"\x1b[?1049h") == 1 and self.bytes.count(b"\x1b[?1049l") == 1
        assert termios.tcgetattr(self.terminal) == self.modes, "the modes of the terminal changed"
        os.close(self.terminal)


def check_frames(window, columns):
    """Checks that no frame clears the screen first, or has a line longer than the window."""
    shown = window.bytes.split(b"\x1b[?2026h")
    assert len(shown) > 1, window.bytes
    for frame in shown[1:]:
        assert b"\x1b[2J" not in frame, "the screen flickers"
        text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", frame.split(b"\x1b[?2026l")[0]).decode()
        longest = max(len(line) for line in re.split(r"[\r\n]+", text))
        assert longest <= columns, (longest, text)


def has_spark(line):
    return line.startswith("trial ") and not set(line).isdisjoint("▁▂▃▄▅▆▇█")


def check_sweep(lines, columns, **variables):
    window = Window(f"{HOME}/sweep", lines, columns, **variables)
    window.read(7)
    window.read_until(lambda shown: any(map(has_spark, shown)) and any(line.startswith("managed by ") for line in shown))
    shown = window.lines()
    print("\n".join(f"    |{line}" for line in shown if line))
    assert shown[0].startswith("1,000 trials: # "), shown[0]
    bar = shown[1]
    assert len(bar) == columns and bar[0] == "[" and bar[-1] == "]", bar
    assert any(map(has_spark, shown)), "no trial with a spark line"
    assert any(line.startswith("managed by ") for line in shown), shown
    assert window.screen.cursor.hidden, "the cursor blinks"
    check_frames(window, columns)
    has_colours = re.search(rb"\x1b\[[0-9;]+m", window.bytes) is not None
    assert has_colours != ("NO_COLOR" in variables), "colours"
    return window


def start_sweep():
    os.makedirs(HOME)
    log = os.path.abspath("tests/data/gel/EventLog.xz")
    with open(f"{HOME}/sweep.yaml", "w", encoding="utf-8") as file:
        file.write(CONFIG.format(log=log, home=HOME))
    subprocess.run([PROGRAM, "-q", "sweep", "init", f"{HOME}/sweep.yaml"], check=True, stdout=subprocess.DEVNULL)
    worker = subprocess.Popen([PROGRAM, "-q", "sweep", "run", f"{HOME}/sweep", "--threads", "2"], stderr=subprocess.DEVNULL)
    for _ in range(5 * LIMIT_S):
        time.sleep(0.2)
        status = subprocess.run([PROGRAM, "sweep", "status", f"{HOME}/sweep", "--json"], capture_output=True, check=True)
        running = json.loads(status.stdout)["running"]
        if any((trial["epoch"] or 0) > 3 for trial in running):
            return worker
    worker.kill()
    raise SystemExit("no trial has come to its fourth epoch")


def make_dag():
    """Makes the directory of a running DAG with a held job of trials and a failed node."""
    directory = f"{HOME}/dag"
    with open(f"{HOME}/sweep.yaml", encoding="utf-8") as file:
        config = file.read().replace("runs: 1000", "runs: 30").replace(f"{HOME}/sweep", directory)
    config += "dag: {image: 'docker://example.org/poolcast:1', trials_per_job: 3}\n"
    with open(f"{HOME}/dag.yaml", "w", encoding="utf-8") as file:
        file.write(config)
    subprocess.run([PROGRAM, "-q", "dag", f"{HOME}/dag.yaml"], check=True, stdout=subprocess.DEVNULL)
    nodes = [("tensors-a", 5, 0)] + [(f"trials-{at:04}", (5, 3, 3, 1)[at % 4], 1 if at == 1 else 0) for at in range(10)]
    with open(f"{directory}/pipeline.status", "w", encoding="utf-8") as file:
        file.write(DAG.format(now=int(time.time())))
        file.writelines(NODE.format(name=name, state=state, held=held) for name, state, held in nodes)
    os.makedirs(f"{directory}/logs", exist_ok=True)
    with open(f"{directory}/logs/trials-0001.log", "w", encoding="utf-8") as file:
        file.write("000 (2.0.0) 2026-11-22 01:00:14 Job submitted from host: <10.0.0.1:9618>\n...\n")
        file.write("012 (2.0.0) 2026-11-22 01:00:19 Job was held.\n\tNo space left on device\n\tCode 12 Subcode 28\n...\n")
    return directory


def check_dag(directory, lines, columns):
    window = Window(directory, lines, columns)
    window.read(3)
    window.read_until(lambda shown: shown[0].startswith("the DAG is running"))
    shown = window.lines()
    print("\n".join(f"    |{line}" for line in shown if line))
    assert shown[0].startswith("the DAG is running"), shown
    assert any(line.startswith("trials  [") and line.endswith("/10") and len(line) == columns for line in shown), shown
    assert any("trials-0001 is held: 12/28" in line for line in shown), shown
    check_frames(window, columns)
    window.end()


def check_lines():
    """Checks the output without a terminal: a line per change."""
    watching = subprocess.Popen([PROGRAM, "sweep", "status", f"{HOME}/sweep", "--watch"], stdout=subprocess.PIPE, text=True)
    first = watching.stdout.readline()
    assert first.startswith("1,000 trials: ") and "\x1b" not in first, first
    watching.send_signal(signal.SIGINT)
    rest = watching.communicate(timeout=LIMIT_S)[0]
    assert watching.returncode == 0 and "running" in rest, rest
    print(f"    |{first}", end="")


def main():
    shutil.rmtree(HOME, ignore_errors=True)
    worker = start_sweep()
    try:
        check_sweep(24, 80).end()
        check_sweep(50, 200, NO_COLOR="1").end()
        window = check_sweep(24, 80)
        window.resize(12, 60)
        window.read_until(lambda shown: len(shown[1]) == 60)
        assert len(window.lines()[1]) == 60, window.lines()
        window.end()
        check_lines()
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait()
    directory = make_dag()
    check_dag(directory, 24, 80)
    check_dag(directory, 50, 200)
    print("the status is drawn as it should be")


main()
