#!/usr/bin/env python3
"""Prints the median of the best values that Optuna's default sampler finds in 100 trials, over 20 seeds, for each function of
`src/sweep/search/samplers/test_functions.rs`. The second line of a function is the interquartile range.

    python3 ci/bench/search_peer.py [FIRST_SEED]

It needs `optuna==5.0.0`.
"""

import math
import statistics
import sys

import optuna

ALPHA = [1.0, 1.2, 3.0, 3.2]
A = [
    [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
    [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
    [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
    [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
]
P = [
    [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
    [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
    [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
    [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
]


def floats(trial, names, low, high):
    return [trial.suggest_float(name, low, high) for name in names]


def hartmann(trial):
    x = floats(trial, "abcdef", 0.0, 1.0)
    return -sum(
        ALPHA[i] * math.exp(-sum(A[i][j] * (x[j] - P[i][j]) ** 2 for j in range(6))) for i in range(4)
    )


def mixed(trial):
    kind = trial.suggest_categorical("kind", "abcde")
    rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
    layers = trial.suggest_int("layers", 1, 16)
    cost, best = {"a": (0.0, -3.0), "b": (0.3, -2.0), "c": (0.6, -4.0), "d": (0.9, -1.5), "e": (1.2, -4.5)}[kind]
    return cost + (math.log10(rate) - best) ** 2 + ((layers - 7.0) / 4.0) ** 2


def branin(trial):
    x, y = trial.suggest_float("x", -5.0, 10.0), trial.suggest_float("y", 0.0, 15.0)
    valley = y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0
    return valley**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x) + 10.0


def ackley(trial):
    x = floats(trial, "abcde", -5.0, 5.0)
    square = sum(value**2 for value in x) / 5.0
    waves = sum(math.cos(2.0 * math.pi * value) for value in x) / 5.0
    return -20.0 * math.exp(-0.2 * math.sqrt(square)) - math.exp(waves) + 20.0 + math.e


def rosenbrock(trial):
    x = floats(trial, "abcde", -2.048, 2.048)
    total = sum(100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2 for i in range(4))
    return math.log(1e-6 + total)


def main():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for function in (hartmann, mixed, branin, ackley, rosenbrock):
        best = []
        for seed in range(first, first + 20):
            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
            study.optimize(function, n_trials=100)
            best.append(study.best_value)
        low, middle, high = statistics.quantiles(best, n=4)
        print(f"{function.__name__}: median {statistics.median(best):.4f}, quartiles {low:.4f} and {high:.4f}", flush=True)


main()
