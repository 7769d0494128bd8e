"""The answers of poolcast in Python, by the program that this package installs.

    import poolcast

    for job in poolcast.advise("EventLog"):
        print(job["job"], job["action"], job["reasons"])
    frame = poolcast.frame(poolcast.holds("EventLog"))

Keys and values are those of `poolcast advise --json` and `poolcast parse --dump`. The package needs no other one; `frame` needs pandas.
"""

import json
import pathlib
import shutil
import subprocess
import sys

__all__ = ["PoolcastError", "advise", "frame", "holds"]


class PoolcastError(RuntimeError):
    """The program has failed. The text is its message."""


def advise(*sources, **options):
    """Returns an answer for each held job, as a list of dicts.

    `sources` are those of the command, in any order: held jobs such as "12.3", event logs, directories, and the directory of a run;
    without any, all held jobs by what there is. Options are those of the command: `queue="now"` is `--queue now`, `all_users=True` is
    `--all-users`, and a list repeats the option.
    """
    document = _run(["advise", *_options(options), "--json", "--", *sources])
    try:
        return json.loads(document)["advice"]
    except (ValueError, KeyError, TypeError) as error:
        raise PoolcastError("`poolcast advise` has printed no answers") from error


def holds(*logs, **options):
    """Returns the holds of event logs, as a list of dicts: `cluster`, `proc`, `time`, `hold_code` and `hold_subcode`.

    Options are those of `poolcast parse`, such as `year=2026`.
    """
    events = _run(["parse", *_options(options), "--dump", "--", *logs]).splitlines()
    return [event for event in map(json.loads, events) if event["name"] == "JOB_HELD"]


def frame(rows):
    """Returns a pandas frame of such dicts, with a column for each key."""
    import pandas

    return pandas.DataFrame(rows)


def _options(options):
    """Returns the command-line options for Python's keywords."""
    arguments = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        values = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            if one is True:
                arguments.append(option)
            elif one is not None and one is not False:
                arguments.append(f"{option}={one}")
    return arguments


def _run(arguments):
    """Runs the program of this environment, else the one on the path. Returns what it prints."""
    beside = pathlib.Path(sys.executable).with_name("poolcast")
    program = str(beside) if beside.exists() else shutil.which("poolcast")
    if program is None:
        raise PoolcastError("the program poolcast is neither in this environment nor on the path")
    ended = subprocess.run([program, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    # Exit codes from 10 on are answers.
    if ended.returncode and not 10 <= ended.returncode < 100:
        raise PoolcastError(ended.stderr.strip() or f"poolcast ended with {ended.returncode}")
    return ended.stdout
