#!/usr/bin/env python3
"""Writes the files of a large sweep without training: rows and histories of many trials with random curves.

    report_sweep.py PROGRAM DIRECTORY TRIALS EPOCHS

PROGRAM trains one trial. The other rows are copies of its row with other hyper-parameters, values and ends.
"""
import copy
import json
import math
import os
import random
import shutil
import subprocess
import sys

SPACE = """
logs: [tests/data/gel/EventLog.xz]
out: {out}
runs: {runs}
epochs: {epochs}
wandb:
  sweep:
    name: synthetic
    method: random
    metric: {{name: validation_loss, goal: minimize}}
    {early}
preprocessing: {{parameters: {{j: {{values: [5, 10, 20]}}, m: 8, timeframe_len: 20}}}}
training:
  time_cuts: 1
  parameters:
    model: {model}
    hidden_size: {{values: [8, 16, 32, 64]}}
    learning_rate: {{distribution: log_uniform_values, min: 0.0001, max: 0.1}}
    weight_decay: {{distribution: uniform, min: 0, max: 0.1}}
    batch_size: {{values: [32, 64, 128]}}
    clip_grad_norm: {{distribution: log_uniform_values, min: 0.1, max: 10}}
"""
FAILURES = ["non-finite", "time-limit", "error", "quarantined"]
RUNGS = [10, 30, 90]


def call(program, *arguments):
    subprocess.run([program, "-q", *arguments], check=True, stdout=subprocess.DEVNULL)


def make_sweep(program, out, runs, epochs, model, early):
    shutil.rmtree(out, ignore_errors=True)
    with open(f"{out}.yaml", "w", encoding="utf-8") as file:
        file.write(SPACE.format(out=out, runs=runs, epochs=epochs, model=model, early=early))
    call(program, "sweep", "init", f"{out}.yaml")


def curve(draws, parameters, epochs):
    """Returns the loss after each epoch: it falls, is lowest at one learning rate, and rises again for large networks."""
    distance = abs(math.log10(parameters["learning_rate"]) + 2.3)
    floor = 0.35 + 0.08 * distance**2 + 0.02 * (parameters["model"] == "mlp") + draws.gauss(0, 0.01)
    speed = 0.02 * 10 ** (1 - distance)
    rise = 0.00002 * parameters["hidden_size"]
    return [floor + 0.4 * math.exp(-speed * at) + rise * at + draws.gauss(0, 0.004) for at in range(1, epochs + 1)]


def drawn_parameters(draws):
    return {
        "j": draws.choice([5, 10, 20]), "model": draws.choice(["lstm", "gru", "lstm+static", "mlp"]),
        "hidden_size": draws.choice([8, 16, 32, 64]), "learning_rate": 10 ** draws.uniform(-4, -1),
        "weight_decay": draws.uniform(0, 0.1), "batch_size": draws.choice([32, 64, 128]),
        "clip_grad_norm": 10 ** draws.uniform(-1, 1),
    }


def ended_row(template, trial, draws, epochs):
    """Returns the row of a trial, and its history."""
    row = copy.copy(template)
    row["trial"], row["budget"] = trial, epochs
    row["parameters"] = {**template["parameters"], **drawn_parameters(draws)}
    row["pipeline"] = row["parameters"]["model"]
    losses = curve(draws, row["parameters"], epochs)
    if draws.random() < 0.03:
        row["ended"], row["value"], row["values"], row["metrics"] = draws.choice(FAILURES), None, [], None
        row["error"] = "the loss is no number" if row["ended"] == "non-finite" else "<b>it failed</b>\u202e"
        return row, []
    status = "finished"
    for rung in RUNGS:
        if rung < epochs and losses[rung - 1] > 0.75 - 0.0015 * rung + draws.gauss(0, 0.04):
            losses, status = losses[:rung], "terminated early"
            break
    best = min(range(len(losses)), key=losses.__getitem__)
    if status == "finished" and best + 20 < len(losses):
        losses, status = losses[: best + 20], "stopped early"
    row["value"], row["values"] = losses[best], losses
    metrics = copy.deepcopy(template["metrics"])
    metrics["status"], metrics["epochs"] = status, len(losses)
    metrics["best"]["epoch"], metrics["best"]["validation_loss"] = best + 1, losses[best]
    metrics["judged"]["loss"], metrics["judged"]["roc_auc"] = losses[best], 1.05 - losses[best]
    row["metrics"] = metrics
    return row, losses


def history(template, losses):
    least = math.inf
    for at, loss in enumerate(losses):
        epoch = dict(template)
        epoch["epoch"], epoch["train_loss"], epoch["validation_loss"] = at + 1, loss - 0.001 * at, loss
        epoch["is_best"] = loss < least
        least = min(least, loss)
        yield json.dumps(epoch) + "\n"


def trial_directory(directory, trial):
    if trial < 1000:
        return f"{directory}/trials/trial-{trial:04}"
    return f"{directory}/trials/thousands/{trial // 1000:04}/trial-{trial:04}"


def main():
    program, directory, trials, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    one = f"{directory}-one"
    make_sweep(program, one, 1, 1, "mlp", "early_terminate: null")
    call(program, "sweep", "run", one)
    with open(f"{one}/results.jsonl", encoding="utf-8") as file:
        template = json.loads(file.readline())
    with open(f"{one}/trials/trial-0001/history.jsonl", encoding="utf-8") as file:
        epoch = json.loads(file.readline())

    models = "{values: [lstm, gru, lstm+static, mlp]}"
    make_sweep(program, directory, trials, epochs, models, "early_terminate: {type: hyperband, min_iter: 10, eta: 3}")
    draws = random.Random(1)
    with open(f"{directory}/results.jsonl", "w", encoding="utf-8") as file:
        for trial in range(1, trials + 1):
            row, losses = ended_row(template, trial, draws, epochs)
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
            place = trial_directory(directory, trial)
            os.makedirs(place)
            with open(f"{place}/history.jsonl", "w", encoding="utf-8") as lines:
                lines.writelines(history(epoch, losses))


main()
