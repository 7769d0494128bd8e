"""Prints a table of ci/proof/features' scores: test ROC-AUC with all groups, and the value of each group.

    features.py DIR LABEL MODELS SEEDS GROUPS

DIR holds one LABEL-MODEL-SEED-WITHOUT.json per training, as printed by `poolcast sweep best --json`.
"""

import json
import pathlib
import sys

directory, label, models, seeds, groups = sys.argv[1:]
directory, models, seeds, groups = pathlib.Path(directory), models.split(), seeds.split(), groups.split()


def score(model, without):
    """Returns the ROC-AUC on the test split, averaged over the seeds."""
    values = []
    for seed in seeds:
        best = json.loads((directory / f"{label}-{model}-{seed}-{without}.json").read_text())
        values.append(best["choices"][0]["test"]["value"])
    return sum(values) / len(values)


def line(*cells):
    print("| " + " | ".join(cells) + " |")


line("left out", *models)
line("---", *["---"] * len(models))
whole = {model: score(model, "nothing") for model in models}
line("nothing", *[f"{whole[model]:.3f}" for model in models])
for group in groups:
    line(f"`{group}`", *[f"{score(model, group) - whole[model]:+.3f}" for model in models])
