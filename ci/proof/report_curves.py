"""Compares the curves of a report with scikit-learn's on the same predictions.

    report_curves.py PROGRAM SWEEP

Fails if a point of the ROC or precision-recall curve is not on scikit-learn's curve, or if an area differs.
"""
import glob
import json
import os
import struct
import subprocess
import sys

import numpy as np
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve


def answer(*arguments):
    return json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout)


def column(path, name, dtype):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(length))[name]
        begin, end = entry["data_offsets"]
        file.seek(8 + length + begin)
        return np.frombuffer(file.read(end - begin), dtype)


def predictions(program, run, tensors):
    """Returns the run's probabilities and the labels on the test split."""
    rows = answer(program, "predict", run, tensors, "--json")["rows"]
    odds = np.array([row["probability"] for row in rows if row["side"] == "test"])
    labels = np.concatenate([column(path, "label", np.uint8) for path in sorted(glob.glob(f"{tensors}/test-*.safetensors"))])
    assert len(odds) == len(labels), (len(odds), len(labels))
    return odds, labels


def check_points(name, found, wanted):
    distance = np.abs(np.array(found)[:, None, :] - np.array(wanted)[None, :, :]).max(axis=2).min(axis=1)
    assert distance.max() < 1e-9, f"{name}: a point is {distance.max()} from scikit-learn's curve"


def main():
    program, sweep = sys.argv[1:]
    blocks = [block for part in answer(program, "report", sweep, "--json")["parts"] for block in part["blocks"]]
    rows = {block["id"]: block["table"]["rows"] for block in blocks if block["kind"] == "figure"}
    with open(f"{sweep}/best.json", encoding="utf-8") as file:
        best = json.load(file)
    run = f"{sweep}/ensemble" if "ensemble" in best else f"{sweep}/trials/trial-{best['trial']:04}"
    (tensors,) = glob.glob(f"{sweep}/tensors/*")
    odds, labels = predictions(program, run, tensors)

    wrong, right, _ = roc_curve(labels, odds, drop_intermediate=False)
    check_points("ROC", rows["roc"], np.stack([wrong, right], axis=1))
    precision, recall, _ = precision_recall_curve(labels, odds)
    check_points("precision and recall", rows["precision-recall"], np.stack([recall, precision], axis=1))

    points = np.array(rows["roc"])
    area = np.trapezoid(points[:, 1], points[:, 0])
    assert abs(area - roc_auc_score(labels, odds)) < 0.005, area
    scores = next(block for block in blocks if block.get("title") == "Scores on holds that the model has not seen")["rows"]
    named = {row[0].split(" (")[0]: row[1] for row in scores}
    assert abs(named["ROC-AUC"] - roc_auc_score(labels, odds)) < 1e-9, named
    assert abs(named["average precision"] - average_precision_score(labels, odds)) < 1e-9, named
    print(f"curves of {len(labels)} holds are scikit-learn's: ROC-AUC {named['ROC-AUC']:.4f}")


main()
