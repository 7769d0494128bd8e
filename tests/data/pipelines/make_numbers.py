"""Makes numbers.json: a small regression table, and the models of scikit-learn and xgboost for it.

    ci/venv pipelines tests/data/pipelines/make_numbers.py
"""

import json
import pathlib
import warnings

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.linear_model import ElasticNet, Lasso, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBRegressor

warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).parent
TRAIN = 200
# Randomised models are compared by their mean over this many seeds.
SEEDS = 6


def table(rng, n):
    """Returns eight features on different scales, and a long-tailed number whose spread depends on one feature."""
    z = rng.normal(size=(n, 8)) @ (np.eye(8) + 0.2 * rng.normal(size=(8, 8)))
    spread = np.where(z[:, 4] > 0, 0.5, 0.1)
    y = 10 * np.exp(0.4 * z[:, 0] - 0.3 * z[:, 1] + 0.2 * z[:, 2] * z[:, 3] + spread * rng.normal(size=n))
    return np.round(z * 10.0 ** rng.integers(-1, 2, size=8), 3), np.round(y, 3)


def pinball(y, p, quantile):
    error = y - p
    return float(np.maximum(quantile * error, (quantile - 1) * error).mean())


def forest_quantile(forest, x, y, x_new, quantile):
    """Predicts with a quantile regression forest over all training rows (Meinshausen 2006), in scikit-learn's leaves."""
    order = np.argsort(y, kind="stable")
    known, asked = forest.apply(x[order]), forest.apply(x_new)
    weights = np.zeros((len(asked), len(y)))
    for tree in range(known.shape[1]):
        same = asked[:, [tree]] == known[:, tree][None, :]
        weights += same / same.sum(axis=1, keepdims=True)
    reached = np.cumsum(weights, axis=1) >= (quantile - 1e-12) * weights.sum(axis=1, keepdims=True)
    return y[order][reached.argmax(axis=1)]


BOOSTED = {"n_estimators": 12, "max_depth": 3, "learning_rate": 0.3}
LINEAR = ("lasso", "ridge", "enet")
# These draw nothing at random.
FIXED = (*LINEAR, "xgb")
CASES = [
    ("lasso", {"C": 0.01}, None, None),
    ("ridge", {"C": 0.05}, None, None),
    ("enet", {"C": 0.01, "l1_ratio": 0.4}, None, None),
    ("enet", {"C": 0.01, "l1_ratio": 0.4}, None, "weighted"),
    ("xgb", BOOSTED, None, None),
    ("xgb", {**BOOSTED, "reg_lambda": 4.0, "reg_alpha": 4.0, "gamma": 100.0, "min_child_weight": 6}, None, None),
    ("xgb", BOOSTED, 0.5, None),
    ("xgb", {**BOOSTED, "min_child_weight": 8}, 0.9, None),
    ("xgb", {**BOOSTED, "min_child_weight": 5}, 0.75, "weighted"),
    ("xgb", BOOSTED, None, "weighted"),
    ("rf", {"n_estimators": 100, "min_samples_leaf": 3, "max_features": 0.5}, None, None),
    ("rf", {"n_estimators": 100, "min_samples_leaf": 5, "max_features": 0.5}, 0.9, None),
    ("et", {"n_estimators": 100, "min_samples_leaf": 3, "max_features": 1.0}, None, None),
    ("et", {"n_estimators": 100, "min_samples_leaf": 5, "max_features": 1.0}, 0.75, None),
    ("nn", {"hidden_layer_sizes": [20], "alpha": 1.0, "max_iter": 60, "batch_size": 32, "learning_rate_init": 0.01}, None, None),
]


def linear_model(pipeline, parameters, weights):
    """Returns the estimator with the penalty of poolcast's objective, C / 2 * sum of squares + penalty."""
    c = parameters["C"]
    if pipeline == "ridge":
        return Ridge(alpha=1 / c)
    kind = Lasso if pipeline == "lasso" else lambda **p: ElasticNet(l1_ratio=parameters["l1_ratio"], **p)
    return kind(alpha=1 / (c * weights.sum()), tol=1e-12, max_iter=1_000_000)


def fitted_model(pipeline, parameters, quantile, x, y, weights, seed):
    if pipeline in LINEAR:
        weights = np.ones(len(y)) if weights is None else weights
        steps = Pipeline([("scaler", StandardScaler()), ("linear", linear_model(pipeline, parameters, weights))])
        return steps.fit(x, y, linear__sample_weight=weights)
    if pipeline == "xgb":
        objective = {"objective": "reg:squarederror"}
        if quantile is not None:
            objective = {"objective": "reg:quantileerror", "quantile_alpha": quantile}
        return XGBRegressor(n_jobs=1, random_state=seed, **objective, **parameters).fit(x, y, sample_weight=weights)
    if pipeline == "nn":
        network = TransformedTargetRegressor(MLPRegressor(random_state=seed, **parameters), transformer=StandardScaler())
        return make_pipeline(StandardScaler(), network).fit(x, y)
    kind = RandomForestRegressor if pipeline == "rf" else ExtraTreesRegressor
    return kind(random_state=seed, **parameters).fit(x, y)


def main():
    rng = np.random.default_rng(11)
    x, y = table(rng, 1000)
    weights = rng.integers(1, 5, size=TRAIN).astype(float)
    document = {"x": x.T.tolist(), "y": y.tolist(), "train": TRAIN, "weights": weights.tolist(), "cases": []}
    for pipeline, parameters, quantile, weighted in CASES:
        known, own = x[:TRAIN], y[:TRAIN]
        losses = []
        for seed in range(1, 1 + (1 if pipeline in FIXED else SEEDS)):
            model = fitted_model(pipeline, parameters, quantile, known, own, weights if weighted else None, seed)
            if quantile is not None and pipeline != "xgb":
                p = forest_quantile(model, known, own, x[TRAIN:], quantile)
            else:
                p = model.predict(x[TRAIN:])
            loss = ((y[TRAIN:] - p) ** 2).mean() if quantile is None else pinball(y[TRAIN:], p, quantile)
            losses.append(float(loss))
        case = {"pipeline": pipeline, "parameters": parameters, "quantile": quantile, "is_weighted": weighted is not None}
        case |= {"loss": float(np.mean(losses)), "seeds": len(losses), "loss_error": 0.0}
        if len(losses) > 1:
            case["loss_error"] = float(np.std(losses) / np.sqrt(len(losses) - 1))
        if pipeline in FIXED:
            # On the training rows, the position of a split between two values does not matter.
            case["predictions"] = [float(value) for value in model.predict(known)]
        document["cases"].append(case)
        print(pipeline, parameters, quantile, round(case["loss"], 4), [round(loss, 4) for loss in losses])
    (HERE / "numbers.json").write_text(json.dumps(document) + "\n")


main()
