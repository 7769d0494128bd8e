"""Logs to measure on, and tables of results, for the proofs in this directory."""

import argparse
import functools
import os
import pathlib
import subprocess
import sys

BUNDLED = pathlib.Path("tests/data/gel/EventLog.xz")


@functools.cache
def poolcast():
    """Returns the program: that in POOLCAST, else the static one, which is built."""
    if "POOLCAST" not in os.environ:
        printed("ci/build/static")
    return os.path.realpath(os.environ.get("POOLCAST", "target/x86_64-unknown-linux-gnu/release/poolcast"))


def printed(*command, **variables):
    """Runs a command, which must succeed; returns its stdout. The variables are added to the environment."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | variables)
    if done.returncode:
        sys.exit(f"error: exit code {done.returncode}: {' '.join(words)}\n{done.stderr}")
    return done.stdout


def simulate(directory, jobs, seed):
    """Simulates a pool; writes its EventLog and its truth.safetensors."""
    directory.mkdir(parents=True, exist_ok=True)
    files = ["-o", directory / "EventLog", "--truth", directory / "truth.safetensors", "--overwrite"]
    printed(poolcast(), "simulate", *files, "--jobs", jobs, "--seed", seed)


def logs_parser(doc, jobs, seeds):
    """Returns a parser of the arguments that choose logs, with the default number of jobs and the default seeds."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=pathlib.Path, action="append", default=[], metavar="DIR")
    parser.add_argument("jobs", type=int, nargs="?", default=jobs)
    parser.add_argument("seeds", type=int, nargs="*", default=seeds)
    return parser


def chosen_logs(out, arguments):
    """Yields (directory, log, truth) of each log: simulated pools, the bundled log, and those of `--logs`.

    The directory is below `out`, and the truth is None if it is not known. A pool whose log was used once is not simulated again.
    """
    for seed in arguments.seeds:
        directory = out / f"pool-{arguments.jobs}-{seed}"
        if not (directory / "used").exists():
            simulate(directory, arguments.jobs, seed)
        yield directory, directory / "EventLog", directory / "truth.safetensors"
        (directory / "used").touch()
        (directory / "EventLog").unlink(missing_ok=True)
    yield out / "bundled", BUNDLED, None
    for given in arguments.logs:
        log, truth = given / "EventLog", given / "truth.safetensors"
        yield out / given.name, log if log.exists() else given / "EventLog.xz", truth if truth.exists() else None


def line(*cells):
    """Prints a line of a table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def head(*cells):
    """Prints the head of a table."""
    line(*cells)
    line(*["---"] * len(cells))


def percent(value):
    return "-" if value is None else f"{100 * value:.0f} %"
