"""Prints the tables of docs/evaluation.md from the scores of ci/proof/recipes.

    recipes.py DIR...

Each DIR holds one NAME.json per way to predict, as printed by `poolcast evaluate --json`.
"""

import json
import pathlib
import sys

MODELS = {
    "alone": "LSTM, j = 1",
    "context": "LSTM, with context",
    "alone-static": "LSTM, j = 1, static features",
    "context-static": "LSTM, with context, static features",
}
RECIPES = {
    "published": "window life, split random, label final (as published)",
    "published-by-time": "window life, split time, label final",
    "published-at-the-hold": "window hold, split random, label final",
    "published-next": "window hold, split random, label next",
}


def scores(directory, name):
    """Returns {method: {score: (value, interval)}} of one way to predict; the first method is also named model."""
    evaluation = json.loads((directory / f"{name}.json").read_text())
    rows = {}
    for method in evaluation["methods"]:
        rows[method["name"]] = {s["name"]: (s["value"], s["interval"]) for s in method["scores"]}
    rows["model"] = next(iter(rows.values()))
    return rows


def show(score):
    value, interval = score
    return f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else f"{value:.3f}"


def line(*cells):
    print("| " + " | ".join(cells) + " |")


def models(directory):
    found = scores(directory, "context")
    auc = {name: found[name]["roc_auc"][0] for name in found}
    low, high = auc["rate by hold code"], auc.get("best possible")
    line("method", "ROC-AUC", "Brier score", "share of the gap")
    line("---", "---", "---", "---")
    rows = [("rate by hold code", found["rate by hold code"])]
    rows += [(words, scores(directory, name)["model"]) for name, words in MODELS.items()]
    rows += [("best possible", found["best possible"])] if high else []
    for words, row in rows:
        gap = f"{100 * (row['roc_auc'][0] - low) / (high - low):.0f} %" if high else "-"
        line(words, show(row["roc_auc"]), show(row["brier"]), gap)


def recipes(directory):
    line("recipe", "ROC-AUC", "accuracy", "majority's accuracy")
    line("---", "---", "---", "---")
    for name, words in RECIPES.items():
        found = scores(directory, name)
        row, majority = found["model"], found["always majority"]
        line(words, show(row["roc_auc"]), show(row["accuracy"]), f"{majority['accuracy'][0]:.3f}")
    row = scores(directory, "context")["model"]
    line("window hold, split time, label next (poolcast at the hold, with context)", show(row["roc_auc"]), show(row["accuracy"]), "")


for directory in map(pathlib.Path, sys.argv[1:]):
    print(f"\n{directory.name}\n")
    models(directory)
    print()
    recipes(directory)
