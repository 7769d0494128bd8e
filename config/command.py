"""Fits a line to a few points by gradient descent. It needs Python alone."""

import argparse
import json

POINTS = [(x / 10, 3 * x / 10 + 1) for x in range(-10, 11)]


def loss_and_gradient(slope, intercept):
    errors = [(slope * x + intercept - y, x) for x, y in POINTS]
    loss = sum(error**2 for error, _ in errors) / len(errors)
    gradient = (
        2 * sum(error * x for error, x in errors) / len(errors),
        2 * sum(error for error, _ in errors) / len(errors),
    )
    return loss, gradient


def fit(learning_rate, epochs, optimizer):
    momentum = optimizer["momentum"]
    weights, steps = [0.0, 0.0], [0.0, 0.0]
    for epoch in range(1, epochs + 1):
        ahead = momentum if optimizer["nesterov"] else 0.0
        _, gradient = loss_and_gradient(*[w + ahead * s for w, s in zip(weights, steps)])
        steps = [momentum * s - learning_rate * g for s, g in zip(steps, gradient)]
        weights = [w + s for w, s in zip(weights, steps)]
        loss, _ = loss_and_gradient(*weights)
        # A line of JSON on standard output is a report.
        print(json.dumps({"epoch": epoch, "validation": {"loss": loss}}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", required=True, help="JSON file with the parameters")
    with open(parser.parse_args().parameters) as file:
        fit(**json.load(file))
