"""Checks poolcast's event and tensor shards on the bundled log against HTCondor's own data.

The oracle trusts two sources: the official parser (htcondor2.JobEventLog) for every event, and condor_history with
condor_q, saved beside the log, for the final state of each job. It derives everything else from the docs alone: hold
cycles and their labels, exclusions and their reasons, and the state of any job at any frame. It shares no code with poolcast.

Checked once for OUT/events, against its manifest:
  events      records per event number
  doubles     duplicate records
  jobs        the number of jobs; parser and history must know the same ones
  anomalies   none, because the log is undamaged
  history     the oracle's own reading: times, starts, holds and ends must match condor_history
and for each directory under OUT/tensors:
  settings    the samples were made by rules known to the oracle
  shards      dtypes, shapes and the manifest's counts
  cycles      every hold cycle is a sample, or is left out for the derived reason
  labels      each sample's label, hold time, prediction time, outcome time, code, subcode and earlier holds
  endings     labels against condor_history, without the log
  splits      each labelled hold is in the split of its prediction time, or left out because its outcome came too late
  primary     column 0 of every sample, each frame
  context     every other column is another job of the window, and no job occurs twice
  draw        ended jobs are drawn with the expected frequency, so age gives no preference

Not checked: the order of samples.
"""

import argparse
import json
import lzma
import math
import sys
import tempfile
from bisect import bisect_right
from collections import Counter, defaultdict
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import htcondor2
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

DATA = Path(__file__).resolve().parents[2] / "tests" / "data" / "gel"

SUBMIT, EXECUTE, TERMINATED, GENERIC, ABORTED, HELD, RELEASED, JOB_AD = 0, 1, 5, 8, 9, 12, 13, 28
DECISIVE = {TERMINATED, ABORTED, HELD, RELEASED}
COMPLETED, REMOVED, QUEUED_HELD = 4, 3, 5  # JobStatus

SPLITS = ("train", "validate", "test")
SETTINGS = {"e": 49, "window": "release", "label": "next", "cycles": "all", "split": "time",
            "split_clusters": "keep", "ignore_events": [JOB_AD]}  # fmt: skip
TENSORS = {
    "codes": np.uint8, "label": np.uint8, "hold_time_ms": np.int64, "asked_time_ms": np.int64,
    "outcome_time_ms": np.int64, "cluster": np.int32, "proc": np.int32,
    "hold_code": np.int32, "hold_subcode": np.int32, "earlier_holds": np.uint32,
}  # fmt: skip
SPARE_CODE, NO_EVENT = 48, 255

# holds by the owner say nothing about the job's health: user request, submitted on hold, spooling
EXCLUDED_CODES = {1, 15, 16}
EXCLUDED, TOO_LATE = "hold code excluded", "decided too late"
LABELS = {"success": 1, "held again": 0, "failed": 0, "aborted by policy": 0}


class Disagreement(Exception):
    """An error: two sources differ; the message has the count and the first case."""


class Event(NamedTuple):
    number: int
    time_ms: int
    code: int
    subcode: int
    exit_code: int | None  # none unless the job terminated normally
    reason: str


class Cycle(NamedTuple):
    cluster: int
    proc: int
    earlier_holds: int
    position: int  # index of the hold among the job's events
    hold_time_ms: int
    asked_time_ms: int | None  # none unless a release ended the hold
    outcome_time_ms: int | None  # none unless the outcome is known
    code: int
    subcode: int
    outcome: str

    @property
    def key(self):
        return self.cluster, self.proc, self.earlier_holds


class Sample(NamedTuple):
    split: str
    label: int
    hold_time_ms: int
    asked_time_ms: int
    outcome_time_ms: int
    cluster: int
    proc: int
    code: int
    subcode: int
    earlier_holds: int
    codes: np.ndarray  # [m, j]

    @property
    def key(self):
        return self.cluster, self.proc, self.earlier_holds


# the log, by the official parser


def read_log():
    """Returns the records per event number, the number of duplicates, and each job's events in order.

    Job ad information and the log's own header are counted, but are not events of a job. HTCondor delivers events at
    least once: among identical records, including the time stamp, only the first is an event.
    """
    counts, jobs, said, doubles = Counter(), defaultdict(list), set(), 0
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "EventLog"
        path.write_bytes(lzma.decompress((DATA / "EventLog.xz").read_bytes()))
        records = htcondor2.JobEventLog(str(path)).events(stop_after=0)
        header = next(records)
        year = creation_year(header)
        counts[header["EventTypeNumber"]] += 1
        for record in records:
            number = record["EventTypeNumber"]
            counts[number] += 1
            if number != JOB_AD and record["Cluster"] >= 0:
                doubles += str(record) in said
                if str(record) not in said:
                    jobs[record["Cluster"], record["Proc"]].append(to_event(record, number, year))
                said.add(str(record))
    return counts, doubles, dict(jobs)


def creation_year(header):
    """Returns the year in the log's header: legacy time stamps have no year, and the parser assumes today's."""
    ctime = header["Info"].split("ctime=")[1].split()[0]
    return datetime.fromtimestamp(int(ctime), timezone.utc).year


def to_event(record, number, year):
    stamp = datetime.fromisoformat(record["EventTime"]).replace(year=year, tzinfo=timezone.utc)
    normal = number == TERMINATED and record["TerminatedNormally"]
    return Event(
        number=number,
        time_ms=int(stamp.timestamp()) * 1000,
        code=record.get("HoldReasonCode", 0),
        subcode=record.get("HoldReasonSubCode", 0),
        exit_code=record["ReturnValue"] if normal else None,
        reason=record.get("Reason", ""),
    )


def read_history():
    """Returns the last job ad of each job, finished or still in the queue."""
    finished = json.loads(lzma.decompress((DATA / "history.json.xz").read_bytes()))
    queued = json.loads((DATA / "condor_q.json").read_text())
    return {(ad["ClusterId"], ad["ProcId"]): ad for ad in finished + queued}


# hold cycles and their outcomes


def hold_cycles(jobs):
    """Returns every cycle of every job, by key."""
    cycles = (cycle for job, events in jobs.items() for cycle in job_cycles(job, events))
    return {cycle.key: cycle for cycle in cycles}


def job_cycles(job, events):
    holds = [position for position, event in enumerate(events) if event.number == HELD]
    for earlier, position in enumerate(holds):
        hold = events[position]
        later = [event for event in events[position + 1 :] if event.number in DECISIVE]
        # the exclusion comes first: such a hold is left out for its code, whatever its outcome
        outcome = EXCLUDED if hold.code in EXCLUDED_CODES else outcome_of(later)
        times = hold.time_ms, asked_time(later), outcome_time(later)
        yield Cycle(*job, earlier, position, *times, hold.code, hold.subcode, outcome)


def asked_time(later):
    """Returns the last millisecond before the second of the release: the order of events within that second is unknown."""
    return later[0].time_ms - 1 if later and later[0].number == RELEASED else None


def outcome_time(later):
    return next((event.time_ms for event in later if event.number != RELEASED), None)


def outcome_of(later):
    """Returns the outcome of a hold, from the job's decisive events after it."""
    if not later:
        return "still held"
    if later[0].number == ABORTED:
        return "removed while held"
    if later[0].number != RELEASED:
        return "no release seen"
    return outcome_of_release([event for event in later if event.number != RELEASED])


def outcome_of_release(later):
    if not later:
        return "log ends"
    if later[0].number == HELD:
        return "held again"
    if later[0].number == TERMINATED:
        return "success" if later[0].exit_code == 0 else "failed"
    # condor_rm is a user's choice; an expression is a policy's
    if later[0].reason.startswith("via condor_rm"):
        return "removed after release"
    return "aborted by policy" if "evaluated to TRUE" in later[0].reason else "ended otherwise"


# states of jobs at frames


class Timeline:
    """The states of all jobs as one sorted array, for lookups of a whole window at once."""

    JOB_SPAN = 1 << 42  # larger than any time stamp in milliseconds

    def __init__(self, jobs):
        self.row = {job: row for row, job in enumerate(jobs)}
        self.submitted = np.array([events[0].time_ms for events in jobs.values()])
        self.ended = np.array([end_time(events) for events in jobs.values()])
        self.keys = np.array([r * self.JOB_SPAN + e.time_ms for r, es in enumerate(jobs.values()) for e in es])
        self.codes = np.array([state(e) for es in jobs.values() for e in es], np.uint8)
        # the last event in the log is the latest one only if time never runs backwards within a job
        require(bool(np.all(np.diff(self.keys) >= 0)), "time runs back within a job")

    def others(self, cycle, frames_ms):
        """Returns the rows of the other jobs that were submitted by the last frame and did not end before the first."""
        rows = np.flatnonzero((self.submitted <= frames_ms[-1]) & (self.ended >= frames_ms[0]))
        return rows[rows != self.row[cycle.cluster, cycle.proc]]

    def states(self, rows, frames_ms):
        """Returns the states [rows, m] of jobs at or before each frame."""
        keys = rows[:, None] * self.JOB_SPAN + frames_ms
        last = np.searchsorted(self.keys, keys, side="right") - 1
        return np.where(frames_ms >= self.submitted[rows][:, None], self.codes[last], np.uint8(NO_EVENT))


def end_time(events):
    """Returns the last end of a job: it may be held and run again after it terminated."""
    ends = [event.time_ms for event in events if event.number in (TERMINATED, ABORTED)]
    return ends[-1] if ends else Timeline.JOB_SPAN


def state(event):
    return min(event.number, SPARE_CODE)


def frames(cycle, manifest):
    """Returns the m frame times of a cycle's window, in milliseconds; the last is the prediction time."""
    step_ms = round(manifest["timeframe_len"] * 1000)
    return cycle.asked_time_ms - np.arange(manifest["m"] - 1, -1, -1) * step_ms


def primary_column(events, frames_ms):
    """Returns the primary job's states."""
    times = [event.time_ms for event in events]
    lasts = [bisect_right(times, frame) - 1 for frame in frames_ms.tolist()]
    return [NO_EVENT if last < 0 else state(events[last]) for last in lasts]


# checks: each returns the text to print, or raises a disagreement


def require(true, message):
    if not true:
        raise Disagreement(message)


def require_none(faults, total, what):
    faults = list(faults)
    require(not faults, f"{len(faults)} of {total} {what} disagree; first: {faults[0] if faults else ''}")
    return f"{total} of {total} {what} agree"


def difference(ours, theirs):
    """Returns the differing counts of two maps, as text."""
    keys = sorted({key for key in ours.keys() | theirs.keys() if ours.get(key, 0) != theirs.get(key, 0)})
    return "; ".join(f"{key}: {ours.get(key, 0)} derived, {theirs.get(key, 0)} written" for key in keys)


def check_events(counts, manifest):
    written = {int(number): count for number, count in manifest["events_by_number"].items()}
    differing = difference(counts, written)
    require(not differing, differing)
    return f"{counts.total()} records of {len(counts)} event numbers agree"


def check_doubles(doubles, manifest):
    require(manifest["doubles"] == doubles, f"{doubles} derived, {manifest['doubles']} written")
    return f"{doubles} records were there twice"


def check_jobs(jobs, history, manifest):
    require(jobs.keys() == history.keys(), f"log and history differ in {len(jobs.keys() ^ history.keys())} jobs")
    require(manifest["jobs"] == len(jobs), f"{len(jobs)} jobs in log and history, {manifest['jobs']} written")
    return f"{len(jobs)} in parser, history and manifest"


def check_anomalies(manifest):
    found = {kind: count for kind, count in manifest["anomalies"].items() if count}
    require(not found, f"the log is whole, yet counted are {found}")
    return "none"


def check_history(jobs, history):
    faults = (f"{job}: {fault}" for job, events in jobs.items() for fault in ad_faults(events, history[job]))
    return require_none(faults, len(jobs), "jobs of the official parser")


def ad_faults(events, ad):
    """Yields the contradictions between a job's last ad and its events."""
    last = [event for event in events if event.number in DECISIVE][-1]
    if events[0].number != SUBMIT or not near(events[0], ad["QDate"]):
        yield "not submitted at QDate"
    if sum(event.number == EXECUTE for event in events) != ad["NumJobStarts"]:
        yield "executes differ from NumJobStarts"
    if last.number != {COMPLETED: TERMINATED, REMOVED: ABORTED, QUEUED_HELD: HELD}[ad["JobStatus"]]:
        yield f"event {last.number} is last, JobStatus is {ad['JobStatus']}"
    if last.number == TERMINATED and (last.exit_code != ad.get("ExitCode") or not near(last, ad["CompletionDate"])):
        yield f"exit {last.exit_code}, ExitCode {ad.get('ExitCode')}, or not terminated at CompletionDate"
    if last.number == ABORTED and last.reason != ad["RemoveReason"]:
        yield "reason differs from RemoveReason"
    if last.number == HELD and (last.code, last.subcode) != (ad["HoldReasonCode"], ad["HoldReasonSubCode"]):
        yield "code differs from HoldReasonCode"
    holds = [event.code for event in events if event.number == HELD]
    # for a queued job, the current hold counts; submission on hold writes no held event
    ad_code = ad["HoldReasonCode"] if last.number == HELD else ad.get("LastHoldReasonCode")
    if holds[-1:] != [code for code in [ad_code] if code not in (None, 15)]:
        yield f"last hold codes {holds[-1:]}, the ad says {ad_code}"


def near(event, seconds):
    """Returns true if the times differ by at most a second: the schedd reads its clock twice, for the ad and for the event."""
    return abs(event.time_ms // 1000 - seconds) <= 1


def check_settings(manifest):
    other = {key: manifest.get(key) for key, value in SETTINGS.items() if manifest.get(key) != value}
    require(not other, f"this oracle knows {SETTINGS} only, found {other}")
    return ", ".join(f"{key} {manifest[key]}" for key in ("j", "m", "timeframe_len"))


def read_samples(directory):
    """Returns the samples of all splits, in shard order."""
    shards = [(split, path) for split in SPLITS for path in sorted(directory.glob(f"{split}-*.safetensors"))]
    return [sample for split, path in shards for sample in shard_samples(split, path)]


def shard_samples(split, path):
    tensors = load_file(path)
    for name, dtype in TENSORS.items():
        require(name in tensors, f"{path.name} lacks {name}")
        require(tensors[name].dtype == dtype, f"{path.name}: {name} is {tensors[name].dtype}")
        require(len(tensors[name]) == len(tensors["codes"]), f"{path.name}: {name} has {len(tensors[name])} rows")
    # tolist makes Python integers, whose differences cannot overflow
    columns = [tensors[name].tolist() for name in TENSORS if name != "codes"]
    return [Sample(split, *values, codes) for *values, codes in zip(*columns, tensors["codes"])]


def check_shards(samples, manifest):
    shape = (manifest["m"], manifest["j"])
    wrong = {sample.codes.shape for sample in samples} - {shape}
    require(not wrong, f"codes are {wrong}, not {shape}")
    unknown = [s for s in samples if np.any((s.codes > SPARE_CODE) & (s.codes != NO_EVENT))]
    require(not unknown, f"{len(unknown)} samples hold codes that are no event's")
    counts = {split: Counter(s.label for s in samples if s.split == split) for split in SPLITS}
    found = {split: {"samples": count.total(), "successes": count[1]} for split, count in counts.items()}
    written = {split: {key: manifest["splits"][split][key] for key in found[split]} for split in SPLITS}
    require(found == written, f"shards hold {found}, the manifest says {written}")
    return f"{len(samples)} samples: " + ", ".join(f"{found[split]['samples']} {split}" for split in SPLITS)


def check_cycles(samples, manifest, cycles):
    missing = unsampled(samples, cycles)
    expected = Counter(cycle.outcome for cycle in cycles.values() if cycle.outcome not in LABELS)
    expected[TOO_LATE] = len(missing)
    successes = sum(LABELS[cycle.outcome] for cycle in missing)
    written = {reason: found["cycles"] for reason, found in manifest["left_out"].items()}
    of_missing = manifest["left_out"].get(TOO_LATE, {"successes": 0})["successes"]
    require(of_missing == successes, f"{successes} successes {TOO_LATE}, the manifest says {of_missing}")
    differing = difference(expected, written)
    require(not differing, differing)
    total = len(samples) + sum(written.values())
    require(total == len(cycles), f"{len(cycles)} cycles derived, {total} are a sample or left out")
    require(total == manifest["cycles_total"], f"{total} cycles, the manifest says {manifest['cycles_total']}")
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(written.items()) if count)
    return f"{total} = {len(samples)} samples + {reasons}"


def unsampled(samples, cycles):
    """Returns the labelled cycles that are not in any shard: only a late outcome can be the cause."""
    sampled = {sample.key for sample in samples}
    return [cycle for cycle in cycles.values() if cycle.outcome in LABELS and cycle.key not in sampled]


def check_labels(samples, cycles):
    twice = [key for key, count in Counter(sample.key for sample in samples).items() if count > 1]
    require(not twice, f"{len(twice)} cycles are two samples; first: {twice[:1]}")
    faults = (f"{sample.key}: {fault}" for sample in samples if (fault := sample_fault(sample, cycles)))
    return require_none(faults, len(samples), "samples")


def sample_fault(sample, cycles):
    cycle = cycles.get(sample.key)
    if cycle is None:
        return "no such hold cycle"
    times = sample.hold_time_ms, sample.asked_time_ms, sample.outcome_time_ms
    written = sample.label, *times, sample.code, sample.subcode
    times = cycle.hold_time_ms, cycle.asked_time_ms, cycle.outcome_time_ms
    derived = LABELS.get(cycle.outcome), *times, cycle.code, cycle.subcode
    return "" if written == derived else f"{written} written, {derived} ({cycle.outcome}) derived"


def check_endings(samples, history):
    """Checks labels: a success needs a job that completed with 0, and the last hold decides if the ad counts as many holds."""
    faults, decided = [], 0
    for sample in samples:
        ad = history[sample.cluster, sample.proc]
        completed = ad["JobStatus"] == COMPLETED and ad.get("ExitCode") == 0
        is_last = sample.earlier_holds + 1 == ad["NumHolds"]
        decided += is_last
        if sample.label > completed or (is_last and sample.label != completed):
            faults.append(f"{sample.key}: label {sample.label}, ExitCode {ad.get('ExitCode')}")
    require_none(faults, len(samples), "samples")
    return f"{sum(s.label for s in samples)} successes completed with 0; {decided} last holds agree with the job's end"


def check_splits(samples, manifest, cycles):
    written = {sample.key: sample.split for sample in samples}
    begins = split_begins(manifest["fractions"], cycles)
    derived = {cycle.key: split_of(cycle, begins) for cycle in cycles.values() if cycle.outcome in LABELS}
    faults = (f"{key}: {written.get(key)} written, {split} derived" for key, split in derived.items() if written.get(key) != split)
    return require_none(faults, len(derived), "labelled holds")


def split_begins(fractions, cycles):
    """Returns the starts of the validate and test splits: the earliest times with the required shares before them."""
    asked = sorted(cycle.asked_time_ms for cycle in cycles.values() if cycle.outcome in LABELS)
    return [asked[int(share * len(asked) + 0.5)] for share in (fractions[0], fractions[0] + fractions[1])]


def split_of(cycle, begins):
    """Returns the split of a labelled hold; `None` if its outcome came after the start of the next split."""
    index = bisect_right(begins, cycle.asked_time_ms)
    too_late = index < len(begins) and cycle.outcome_time_ms >= begins[index]
    return None if too_late else SPLITS[index]


def check_primary(samples, manifest, jobs, cycles):
    faults = []
    for sample in samples:
        cycle = cycles[sample.key]
        written = sample.codes[:, 0].tolist()
        derived = primary_column(jobs[cycle.cluster, cycle.proc], frames(cycle, manifest))
        if written != derived:
            faults.append(f"{sample.key}: {written} written, {derived} derived")
    return require_none(faults, len(samples), "columns")


def check_context(samples, manifest, timeline, cycles):
    faults = (f"{s.key}: {fault}" for s in samples if (fault := context_fault(s, manifest, timeline, cycles[s.key])))
    return require_none(faults, len(samples), f"samples with {manifest['j'] - 1} context jobs each")


def context_fault(sample, manifest, timeline, cycle):
    """Returns the fault of a context. States identify jobs: a column may occur once per job with its states."""
    window = frames(cycle, manifest)
    rows = timeline.others(cycle, window)
    jobs = Counter(map(np.ndarray.tobytes, timeline.states(rows, window)))
    columns = Counter(map(np.ndarray.tobytes, np.ascontiguousarray(sample.codes[:, 1:].T)))
    empty = columns.pop(bytes([NO_EVENT]) * manifest["m"], 0)
    if empty != max(0, manifest["j"] - 1 - len(rows)):
        return f"{empty} empty columns, though {len(rows)} other jobs existed"
    surplus = columns - jobs
    return f"no job, or too few, has states {list(next(iter(surplus)))}" if surplus else ""


def check_draw(samples, manifest, timeline, cycles):
    """Checks draws without replacement, which are hypergeometric: a deviation of five standard deviations is a fault."""
    drawn = expected = variance = 0
    for sample in samples:
        window = frames(cycles[sample.key], manifest)
        ended = timeline.ended[timeline.others(cycles[sample.key], window)] <= window[-1]
        size, share = min(manifest["j"] - 1, len(ended)), ended.mean()
        drawn += int(np.isin(sample.codes[-1, 1:], (TERMINATED, ABORTED)).sum())
        expected += size * share
        variance += size * share * (1 - share) * (len(ended) - size) / (len(ended) - 1)
    text = f"{drawn} context jobs had ended by then, {expected:.0f} +- {math.sqrt(variance):.0f} expected"
    require(abs(drawn - expected) <= 5 * math.sqrt(variance), text)
    return text


# running the checks


# a missing or unreadable file or key is a finding too, and must not hide the findings of later checks
FINDINGS = (Disagreement, LookupError, OSError, SafetensorError, TypeError, ValueError)


class Report:
    """Prints a line per check, and counts the results."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, check, *arguments):
        try:
            line = f"ok    {name}: {check(*arguments)}"
            self.passed += 1
        except FINDINGS as error:
            line = f"FAIL  {name}: {describe(error)}"
            self.failed += 1
        print(line, flush=True)


def describe(error):
    """Returns the text of an error: other errors than disagreements need their type, because a key's name alone is unclear."""
    return str(error) if isinstance(error, Disagreement) else f"{type(error).__name__}: {error}"


def read_manifest(directory):
    return json.loads((directory / "manifest.json").read_text())


def check_tensors(report, directory, jobs, history, cycles, timeline):
    name = directory.name
    manifest, samples = read_manifest(directory), read_samples(directory)
    report.check(f"{name} settings", check_settings, manifest)
    report.check(f"{name} shards", check_shards, samples, manifest)
    report.check(f"{name} cycles", check_cycles, samples, manifest, cycles)
    report.check(f"{name} labels", check_labels, samples, cycles)
    report.check(f"{name} endings", check_endings, samples, history)
    report.check(f"{name} splits", check_splits, samples, manifest, cycles)
    report.check(f"{name} primary", check_primary, samples, manifest, jobs, cycles)
    report.check(f"{name} context", check_context, samples, manifest, timeline, cycles)
    report.check(f"{name} draw", check_draw, samples, manifest, timeline, cycles)
    return f"read, {len(samples)} samples"


def check_all(report, out):
    counts, doubles, jobs = read_log()
    history, cycles, timeline = read_history(), hold_cycles(jobs), Timeline(jobs)
    report.check("events", lambda: check_events(counts, read_manifest(out / "events")))
    report.check("doubles", lambda: check_doubles(doubles, read_manifest(out / "events")))
    report.check("jobs", lambda: check_jobs(jobs, history, read_manifest(out / "events")))
    report.check("anomalies", lambda: check_anomalies(read_manifest(out / "events")))
    report.check("history", check_history, jobs, history)
    directories = sorted(path.parent for path in (out / "tensors").glob("*/manifest.json"))
    report.check("tensors", lambda: f"{len(directories)} directories" if directories else no_tensors(out))
    for directory in directories:
        report.check(directory.name, check_tensors, report, directory, jobs, history, cycles, timeline)


def no_tensors(out):
    raise Disagreement(f"no manifest in {out}/tensors/*")


def main():
    parser = argparse.ArgumentParser(description="check poolcast's shards against HTCondor's parser and history")
    parser.add_argument("out", type=Path, help="the directory that `poolcast run config/quickstart.yaml` left")
    report = Report()
    check_all(report, parser.parse_args().out)
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
