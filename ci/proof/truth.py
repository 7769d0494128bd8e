"""Prints the table of the benchmark (docs/benchmark.md) from logs with samples, truth and probabilities.

    truth.py [--entry=NAME=DIR]... LOG_DIR...
    truth.py --self-test

Each LOG_DIR has the output of `poolcast run` in run/, its probabilities for all holds in poolcast.csv, and, if the truth is known,
truth.safetensors. DIR has a file per log, named like LOG_DIR with .csv. The script writes the holds to predict to test-holds.csv
in each log's directory.
"""

import array
import bisect
import collections
import csv
import datetime
import json
import math
import pathlib
import random
import struct
import sys

CELL = {"U8": "B", "I32": "i", "U32": "I", "I64": "q", "F64": "d", "F32": "f", "U16": "H"}
RESAMPLES = 200
# Indices of the probabilities in the rows of the truth.
AT_HOLD, AT_RELEASE, UNSEEN_REPAIR = 0, 1, 3


def columns(path, names):
    """Returns the existing columns of a safetensors file, by name."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    found = {}
    for name in names:
        if name in header:
            start, end = header[name]["data_offsets"]
            found[name] = array.array(CELL[header[name]["dtype"]], data[8 + length + start : 8 + length + end])
    return found


def read_samples(tensors, side):
    """Returns (cluster, proc, hold second, earlier holds, code, label) of the samples of one split."""
    manifest = json.loads((tensors / "manifest.json").read_text())
    names = ["cluster", "proc", "hold_time_ms", "earlier_holds", "hold_code", "hold_subcode", "label"]
    rows = []
    for shard in manifest["splits"][side]["shards"]:
        found = columns(tensors / shard["file"], names)
        cells = zip(*(found[name] for name in names))
        rows += [(c, p, ms // 1000, earlier, (code, sub), label) for c, p, ms, earlier, code, sub, label in cells]
    return rows, manifest


def read_truth(path):
    """Returns {(cluster, proc, hold second): (p_hold, p_release or None, is released, p_release_unseen_repair or None)}."""
    names = ["cluster", "proc", "earlier_holds", "hold_time_ms", "release_time_ms", "p_hold", "p_release", "p_release_unseen_repair", "released"]
    found = columns(path, names)
    truth = {}
    for at in range(len(found["cluster"])):
        released = bool(found["released"][at]) if "released" in found else found["release_time_ms"][at] >= 0
        p_release, p_unseen = (known_chance(found, name, at) if released else None for name in ("p_release", "p_release_unseen_repair"))
        key = (found["cluster"][at], found["proc"][at], found["hold_time_ms"][at] // 1000)
        truth[key] = (found["p_hold"][at], p_release, released, p_unseen)
    return truth


def known_chance(found, name, at):
    """Returns the value of an optional column; `None` if it is missing or NaN."""
    value = found[name][at] if name in found else math.nan
    return None if math.isnan(value) else value


def hold_second(text):
    """Parses epoch seconds, or an ISO 8601 time, in UTC if it has no zone."""
    if text.lstrip("-").replace(".", "", 1).isdigit():
        return int(float(text))
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return int(moment.timestamp())


def read_probabilities(path):
    """Returns {(cluster, proc, hold second): probability}; `poolcast predict` has `job` and `held_at`."""
    found = {}
    with open(path, newline="") as file:
        for line, row in enumerate(csv.DictReader(file), 2):
            cluster, proc = row["job"].split(".") if "job" in row else (row["cluster"], row["proc"])
            second = hold_second(row["held_at"] if "held_at" in row else row["hold_time"])
            probability = float(row["probability"])
            if not 0 <= probability <= 1:
                sys.exit(f"error: {path}, line {line}: {probability} is no probability")
            found[int(cluster), int(proc), second] = probability
    return found


def roc_auc(pairs):
    """Returns the probability that a success scores higher than a failure, for pairs of (score, label)."""
    ordered = sorted(pairs)
    successes = sum(label for _, label in ordered)
    failures = len(ordered) - successes
    if not successes or not failures:
        return None
    wins = below = at = 0
    while at < len(ordered):
        end = bisect.bisect_right(ordered, (ordered[at][0], 2), at)
        up = sum(label for _, label in ordered[at:end])
        down = end - at - up
        wins += up * (below + down / 2)
        below, at = below + down, end
    return wins / (successes * failures)


def interval(holds, score):
    """Returns the middle 95 % of a score over bootstrap resamples of whole clusters."""
    by_cluster = collections.defaultdict(list)
    for cluster, pair in holds:
        by_cluster[cluster].append(pair)
    clusters = list(by_cluster.values())
    draw = random.Random(1)
    values = []
    for _ in range(RESAMPLES):
        value = score([pair for some in draw.choices(clusters, k=len(clusters)) for pair in some])
        if value is not None:
            values.append(value)
    values.sort()
    return (values[int(0.025 * len(values))], values[int(0.975 * len(values))]) if values else None


def brier(pairs):
    return sum((p - label) ** 2 for p, label in pairs) / len(pairs)


def calibration_error(pairs):
    """Returns the mean distance between probability and success rate over ten equal bins, weighted by their holds."""
    bins = collections.defaultdict(list)
    for p, label in pairs:
        bins[min(int(10 * p), 9)].append((p, label))
    return sum(abs(sum(p - label for p, label in some)) for some in bins.values()) / len(pairs)


def rates_by_code(known):
    """Returns {code: success rate}, smoothed with one hold at the mean rate; and that rate."""
    mean = sum(row[5] for row in known) / max(len(known), 1)
    sums = collections.defaultdict(lambda: [mean, 1])
    for row in known:
        sums[row[4]][0] += row[5]
        sums[row[4]][1] += 1
    return {code: good / count for code, (good, count) in sums.items()}, mean


def number(value, range_=None, digits=3):
    if value is None:
        return "-"
    shown = f"{value:.{digits}f}"
    return shown + (f" [{range_[0]:.{digits}f}, {range_[1]:.{digits}f}]" if range_ else "")


def percent(value):
    return "-" if value is None else f"{100 * value:.0f} %"


def line(*cells):
    print("| " + " | ".join(cells) + " |")


def share_of_gap(auc, low, high):
    """Returns the position of `auc` between those of the rate by code and of the best possible predictor."""
    return (auc - low) / (high - low) if None not in (auc, low, high) and high > low else None


def score_row(log, name, clusters, scores, labels, low, high):
    """Prints a line of the table; `low` and `high` are the AUCs of the rate by code and of the best possible predictor."""
    pairs = list(zip(scores, labels))
    auc = roc_auc(pairs)
    by_cluster = list(zip(clusters, pairs))
    line(
        log,
        name,
        number(auc, interval(by_cluster, roc_auc)),
        number(brier(pairs)),
        number(calibration_error(pairs)),
        percent(share_of_gap(auc, low, high)),
    )


def probed_row(log, low, high):
    """Prints the scores of poolcast after probes, which its own evaluation has."""
    after = log.evaluation().get("after_probes")
    if not after:
        return
    scores = {score["name"]: score for score in after["scores"]}
    auc = scores["roc_auc"]
    line(
        log.name,
        f"poolcast, once one job of each cause was tried ({after['samples']} of {len(log.test)} holds)",
        number(auc["value"], auc["interval"]),
        number(scores["brier"]["value"]),
        number(scores["ece"]["value"]),
        percent(share_of_gap(auc["value"], low, high)),
    )


class Log:
    """The samples of a log, and their truth."""

    def __init__(self, directory):
        self.directory = directory
        self.name = directory.name
        best = json.loads((directory / "run/best.json").read_text())["trial"]
        tensors = self.tensors_of(best)
        self.test, manifest = read_samples(tensors, "test")
        self.known = [row for side in ("train", "validate") for row in read_samples(tensors, side)[0]]
        self.window = manifest["window"]
        path = directory / "truth.safetensors"
        self.truth = read_truth(path) if path.exists() else {}

    def tensors_of(self, trial):
        """Returns the tensors of the best trial; all tensors of a log have the same splits."""
        manifest = self.directory / f"run/trials/trial-{trial:04}/manifest.json"
        key = json.dumps(json.loads(manifest.read_text())) if manifest.exists() else ""
        all_tensors = sorted((self.directory / "run/tensors").iterdir())
        for tensors in all_tensors:
            if json.loads((tensors / "manifest.json").read_text())["key"] in key:
                return tensors
        return all_tensors[0]

    def evaluation(self):
        """Returns the evaluation of the best model on the test split."""
        info = (self.directory / "run/bestmodel.info").read_text()
        model = next(words for words in info.splitlines() if words.startswith("model = ")).removeprefix("model = ")
        return json.loads((self.directory / "run" / model).with_name("evaluation-test.json").read_text())

    def keys(self):
        return [(row[0], row[1], row[2]) for row in self.test]

    def best_possible(self, place):
        """Returns the planted probabilities of the test holds at an index of the truth's rows; `None` if one is unknown."""
        found = [self.truth.get(key, [None] * 4)[place] for key in self.keys()]
        return None if None in found else found

    def write_questions(self):
        """Writes the holds that other predictors must predict."""
        with open(self.directory / "test-holds.csv", "w", newline="") as file:
            sheet = csv.writer(file)
            sheet.writerow(["cluster", "proc", "hold_time"])
            for cluster, proc, second in self.keys():
                moment = datetime.datetime.fromtimestamp(second, datetime.timezone.utc)
                sheet.writerow([cluster, proc, moment.strftime("%Y-%m-%dT%H:%M:%SZ")])


def score_log(log, predictors):
    labels = [row[5] for row in log.test]
    clusters = [row[0] for row in log.test]
    rates, mean = rates_by_code(log.known)
    by_code = [rates.get(row[4], mean) for row in log.test]
    low = roc_auc(list(zip(by_code, labels)))
    at_hold, at_release, unseen_repair = (log.best_possible(place) for place in (AT_HOLD, AT_RELEASE, UNSEEN_REPAIR))
    best = at_release if log.window == "release" and at_release else at_hold
    high = roc_auc(list(zip(best, labels))) if best else None

    score_row(log.name, "rate by hold code", clusters, by_code, labels, low, high)
    for name, probabilities in predictors.items():
        missing = sum(key not in probabilities for key in log.keys())
        scores = [probabilities.get(key, rate) for key, rate in zip(log.keys(), by_code)]
        score_row(log.name, name + (f" ({missing} not answered)" if missing else ""), clusters, scores, labels, low, high)
    probed_row(log, low, high)
    for name, scores in (
        ("best possible at the hold", at_hold),
        ("best possible at the release, repairs not seen", unseen_repair),
        ("best possible at the release", at_release),
    ):
        if scores:
            score_row(log.name, name, clusters, scores, labels, low, high)


def bias_rows(log, predictors):
    """Prints the bias of the probabilities for released and never released jobs, after the first test hold."""
    begin = min((row[2] for row in log.test), default=0)
    for name, probabilities in predictors.items():
        for released, words in ((True, "released"), (False, "never released")):
            pairs = []
            for key, (p_hold, p_release, is_released, _) in log.truth.items():
                if is_released == released and key[2] >= begin and key in probabilities:
                    best = p_release if log.window == "release" and p_release is not None else p_hold
                    pairs.append((probabilities[key], best))
            if not pairs:
                continue
            predicted = sum(p for p, _ in pairs) / len(pairs)
            true = sum(best for _, best in pairs) / len(pairs)
            distance = sum(abs(p - best) for p, best in pairs) / len(pairs)
            line(log.name, name, words, str(len(pairs)), number(predicted), number(true), f"{predicted - true:+.3f}", number(distance))


def self_test():
    pairs = [(0.1, 0), (0.4, 0), (0.35, 1), (0.8, 1)]
    assert roc_auc(pairs) == 0.75
    assert roc_auc([(0.5, 0), (0.5, 1)]) == 0.5 and roc_auc([(0.5, 1)]) is None
    assert abs(brier([(0.5, 1), (0.0, 0)]) - 0.125) < 1e-12
    assert abs(calibration_error([(0.95, 1), (0.95, 0)]) - 0.45) < 1e-12
    assert hold_second("1795225807") == hold_second("2026-11-21T01:50:07Z") == hold_second("2026-11-21T01:50:07.000")
    rates, mean = rates_by_code([(0, 0, 0, 0, (13, 2), 1), (0, 0, 0, 0, (12, 2), 0)])
    assert mean == 0.5 and rates[13, 2] == 0.75 and rates[12, 2] == 0.25


def main(arguments):
    entries = [word.removeprefix("--entry=").split("=", 1) for word in arguments if word.startswith("--entry=")]
    logs = [Log(pathlib.Path(word)) for word in arguments if not word.startswith("--")]
    asked = {}
    for log in logs:
        log.write_questions()
        asked[log.name] = {"poolcast": read_probabilities(log.directory / "poolcast.csv")}
        for name, directory in entries:
            path = pathlib.Path(directory) / f"{log.name}.csv"
            if path.exists():
                asked[log.name][name] = read_probabilities(path)

    line("log", "predictor", "ROC-AUC", "Brier score", "calibration error", "share of the gap")
    line(*["---"] * 6)
    for log in logs:
        score_log(log, asked[log.name])

    print("\nHow far the odds are off by what became of the job, over all holds since the first test hold:\n")
    line("log", "predictor", "jobs", "holds", "mean predicted", "mean true", "off by", "mean distance")
    line(*["---"] * 8)
    for log in logs:
        bias_rows(log, asked[log.name])


if __name__ == "__main__":
    self_test() if sys.argv[1:] == ["--self-test"] else main(sys.argv[1:])
