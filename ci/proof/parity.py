"""Compares `poolcast parse --dump` with HTCondor's own event log reader, event by event.

    parity.py POOLCAST [LOG ...]

Without logs, it uses the bundled log and small built-in logs.

On the bundled log and on sound small logs, both must agree. On damaged logs, the official reader loses events, and
sometimes returns wrong ones. Each such case is listed with its reason and the correct result. A listed case in which
both agree is a failure too, so that the list stays true.

The comparison covers event number, ids, time, hold code and subcode, return value and signal. For time stamps without
a year, the official reader assumes the current year, so only month, day and time are compared.
"""

import json
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path

import htcondor2

BUNDLED = Path(__file__).resolve().parents[2] / "tests" / "data" / "gel" / "EventLog.xz"

SUBMIT = "000 (123.000.000) 2024-01-02 03:04:05 Job submitted from host: <1.2.3.4:9618?addrs=1.2.3.4-9618>\n...\n"
EXECUTE = "001 (123.000.000) 2024-01-02 03:05:05 Job executing on host: <5.6.7.8:9618>\n...\n"
HELD = "012 (123.000.000) 2024-01-02 03:06:05 Job was held.\n\tvia condor_hold (by user bob)\n\tCode 1 Subcode 0\n...\n"
RELEASED = "013 (123.000.000) 2024-01-02 03:07:05 Job was released.\n\tvia condor_release (by user bob)\n...\n"
USAGE = "".join(
    f"\t\tUsr 0 00:00:01, Sys 0 00:00:02  -  {which} Usage\n"
    for which in ("Run Remote", "Run Local", "Total Remote", "Total Local")
)
EXITED = f"005 (123.000.000) 2024-01-02 03:08:05 Job terminated.\n\t(1) Normal termination (return value 3)\n{USAGE}...\n"
KILLED = (
    "005 (123.000.000) 2024-01-02 03:08:05 Job terminated.\n\t(0) Abnormal termination (signal 9)\n"
    f"\t(0) No core file\n{USAGE}...\n"
)


def at(stamp):
    return RELEASED.replace("2024-01-02 03:07:05", stamp)


# logs on which both readers agree
SOUND = {
    "plain": SUBMIT + EXECUTE + HELD + RELEASED + EXITED,
    "signal": SUBMIT + KILLED,
    "crlf": (SUBMIT + HELD + RELEASED).replace("\n", "\r\n"),
    "wide ids": HELD.replace("(123.000.000)", "(12345678.1234.001)"),
    "negative ids": RELEASED.replace("(123.000.000)", "(-01.-01.-01)"),
    "unpadded ids": HELD.replace("(123.000.000)", "(1.2.3)"),
    "negative subcode": HELD.replace("Subcode 0", "Subcode -256"),
    "no reason": HELD.replace("\tvia condor_hold (by user bob)\n\tCode 1 Subcode 0", "\tReason unspecified"),
    "spaces for tabs": HELD.replace("\t", "    "),
    "a reason of dots": HELD.replace("via condor_hold (by user bob)", "..."),
    "legacy stamp": at("01/02 03:07:05"),
    "legacy stamp with milliseconds": at("01/02 03:07:05.500"),
    "milliseconds": at("2024-01-02 03:07:05.123"),
    "utc": at("2024-01-02 03:07:05.123Z"),
    "T": at("2024-01-02T03:07:05"),
    "midnight as 24": at("2024-01-02 24:00:00"),
    "the 30th of February": at("2024-02-30 00:00:00"),
    "no seconds": at("2024-01-02 03:07"),
    "ad information": SUBMIT + "028 (123.000.000) 2024-01-02 03:04:05 Job ad information event triggered.\nSize = 1\n...\n",
    "unknown number": SUBMIT + "099 (123.000.000) 2024-01-02 03:04:05 Something new\n\tx\n...\n" + EXECUTE,
}  # fmt: skip

# the correct result, and the reason why the official reader's differs
DAMAGED = {
    "blank line between": (SUBMIT + "\n" + HELD, [0, 12], "stops at it as at an end"),
    "junk between": (SUBMIT + "one\ntwo\n" + HELD, [0, 12], "stops at each line as at an end"),
    "begins with a blank line": ("\n" + SUBMIT + HELD, [0, 12], "stops at it as at an end"),
    "begins in the middle": ("\tCode 1 Subcode 0\n...\n" + RELEASED, [13], "takes it for no event log"),
    "begins with a terminator": ("...\n" + SUBMIT, [0], "takes it for no event log"),
    "byte order mark": ("\ufeff" + SUBMIT, [0], "takes it for no event log"),
    "lost terminator": (HELD.replace("...\n", "") + EXECUTE, [12, 1], "swallows the next header as text"),
    "glued header": (HELD.replace("...\n", "...") + RELEASED, [12, 13], "swallows the next header as text"),
    "NULs between": (SUBMIT + "\0" * 64 + HELD, [0, 12], "stops at them as at an end"),
    "reason of two lines": (
        HELD.replace("\tvia condor_hold (by user bob)", "\tone\n\ttwo"), [12], "looks for the code in the second line only"),
    "offset in the stamp": (at("2024-01-02 03:07:05+05:00"), [13], "ignores the offset"),
    "bytes that are no UTF-8": (SUBMIT + HELD.replace("bob", "b\udcf6b") + RELEASED, [0, 12, 13], "cannot decode it"),
    "text of another event": (
        SUBMIT + HELD.replace("Job was held.", "Job terminated.") + RELEASED, [0, 13], "reports it as an error"),
    "a job number of 32 bits": (
        RELEASED.replace("(123.", "(2147483648."), [13], "wraps around to a negative number"),
}  # fmt: skip


def official(path):
    """Returns the events of the official reader, up to its end of the log."""
    log, events = htcondor2.JobEventLog(str(path)), []
    while True:
        try:
            events.append(from_official(next(log.events(stop_after=0))))
        except StopIteration:
            return events
        except (htcondor2.HTCondorException, UnicodeDecodeError):
            events.append("an error")


def from_official(event):
    number = event["EventTypeNumber"]
    normal = event.get("TerminatedNormally") if number == 5 else None
    return (
        number, *(event.get(name, -1) for name in ("Cluster", "Proc", "Subproc")), without_zone(event["EventTime"]),
        event.get("HoldReasonCode", 0) if number == 12 else None,
        event.get("HoldReasonSubCode", 0) if number == 12 else None,
        event["ReturnValue"] if normal else None, event["TerminatedBySignal"] if normal is False else None,
    )  # fmt: skip


def ours(poolcast, path):
    text = subprocess.run([poolcast, "parse", str(path), "--dump"], check=True, capture_output=True, text=True).stdout
    names = ("type", "cluster", "proc", "subproc", "time", "hold_code", "hold_subcode", "return_value", "signal")
    found = [tuple(json.loads(line).get(name) for name in names) for line in text.splitlines()]
    return [(*event[:4], without_zone(event[4]), *event[5:]) for event in found]


def without_zone(time):
    """Returns a time without zone and zero milliseconds: all compared times are in UTC."""
    return time.removesuffix("Z").removesuffix(".000")


def same(left, right):
    """Returns true if two events agree; compares the year only if both have one."""
    years = len(left[4]) == len(right[4])
    return left[:4] == right[:4] and left[5:] == right[5:] and (left[4] == right[4] if years else left[4][-14:] == right[4][-14:])


def agree(left, right):
    return len(left) == len(right) and all("an error" not in (a, b) and same(a, b) for a, b in zip(left, right))


def check_small(poolcast, directory):
    """Yields a line per small log, and whether its result is as expected."""
    for name, text in SOUND.items():
        found, expected = read_both(poolcast, directory, text)
        yield f"{name}: both give {len(found)} events", agree(found, expected), (found, expected)
    for name, (text, numbers, reason) in DAMAGED.items():
        found, other = read_both(poolcast, directory, text)
        right = [event[0] for event in found] == numbers and not agree(found, other)
        yield f"{name}: {len(found)} events; the official reader {reason}", right, (found, other)


def read_both(poolcast, directory, text):
    path = Path(directory) / "log"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return ours(poolcast, path), official(path)


def check_bundled(poolcast, directory):
    path = Path(directory) / "EventLog"
    path.write_bytes(lzma.decompress(BUNDLED.read_bytes()))
    return check_log(poolcast, path)


def check_log(poolcast, path):
    # the official reader reads one file, but ours would also read the rotated ones beside it
    with tempfile.TemporaryDirectory() as directory:
        alone = Path(directory) / "log"
        alone.symlink_to(path.resolve())
        found, expected = ours(poolcast, alone), official(alone)
    # the official reader assumes the current year
    found = [(*event[:4], event[4][5:], *event[5:]) for event in found]
    expected = [(*event[:4], event[4][5:], *event[5:]) for event in expected]
    differing = [pair for pair in zip(found, expected) if pair[0] != pair[1]]
    right = len(found) == len(expected) and not differing
    return f"{path.name}: {len(found)} events", right, differing[:3]


def main():
    poolcast, logs, passed, failed = sys.argv[1], sys.argv[2:], 0, 0
    with tempfile.TemporaryDirectory() as directory:
        own = [] if logs else [check_bundled(poolcast, directory), *check_small(poolcast, directory)]
        for line, right, detail in [*own, *(check_log(poolcast, Path(log)) for log in logs)]:
            print("ok  " if right else "FAIL", line)
            if not right:
                print("    ", *detail, sep="\n     ")
            passed, failed = passed + right, failed + (not right)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
