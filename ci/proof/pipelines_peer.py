"""The peer of ci/proof/pipelines: makes the tables and cases, then fits the same models and compares.

    pipelines_peer.py make DIR      writes DIR/cases.json, and a training and a test table of each kind
    pipelines_peer.py compare DIR   after `cargo bench --bench pipelines -- DIR`
"""

import json
import pathlib
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_classification
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import (
    ExtraTreesClassifier, ExtraTreesRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor,
    RandomForestClassifier, RandomForestRegressor,
)
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from xgboost import XGBClassifier, XGBRegressor

warnings.filterwarnings("ignore")
AUC_APART = 0.01
COEFFICIENT_APART = 5e-5
# Maximum excess of our mean squared error or pinball loss, as a share of the peer's.
LOSS_APART = 0.02

# Name, training rows, test rows, classes. With an even number of classes, an L1 penalty alone does not determine the
# coefficients: it is constant while all coefficients of a feature move together between the middle two.
TABLES = [("two", 20_000, 10_000, 2), ("three", 6_000, 4_000, 3)]
# Pipeline, hyper-parameters, and the rows that a kernel matrix of their square allows.
CASES = [
    ("lasso", {"C": 0.1}, 20_000),
    ("lasso", {"C": 0.003}, 20_000),
    ("ridge", {"C": 0.1}, 20_000),
    ("ridge", {"C": 1.0, "selection": "svd", "selection_n_components": 20}, 20_000),
    ("enet", {"C": 0.1, "l1_ratio": 0.5}, 20_000),
    ("enet", {"C": 0.01, "l1_ratio": 0.1}, 20_000),
    ("svc", {"C": 1.0, "kernel": "linear"}, 3_000),
    ("svc", {"C": 1.0, "kernel": "rbf"}, 5_000),
    ("svc", {"C": 1.0, "kernel": "rbf", "shrinking": False}, 5_000),
    ("xgb", {"n_estimators": 300, "max_depth": 6, "learning_rate": 0.1}, 20_000),
    ("xgb", {"n_estimators": 150, "max_depth": 4, "learning_rate": 0.1, "subsample": 0.7, "colsample_bytree": 0.5}, 20_000),
    ("xgb", {"n_estimators": 50, "max_depth": None, "learning_rate": 0.1, "min_child_weight": 5}, 6_000),
    ("rf", {"n_estimators": 100}, 20_000),
    ("et", {"n_estimators": 100, "min_samples_leaf": 5, "max_features": 0.3}, 20_000),
    ("nn", {"hidden_layer_sizes": [100], "max_iter": 30, "alpha": 0.01}, 20_000),
    ("nn", {"hidden_layer_sizes": [50], "max_iter": 20, "solver": "sgd", "learning_rate": "adaptive", "learning_rate_init": 0.1}, 20_000),
]

# Cases of regression: pipeline, hyper-parameters, the quantile or none, and the rows that the peer allows.
NUMBER_CASES = [
    ("lasso", {"C": 0.001}, None, 20_000),
    ("ridge", {"C": 0.001}, None, 20_000),
    ("enet", {"C": 0.001, "l1_ratio": 0.5}, None, 20_000),
    ("xgb", {"n_estimators": 200, "max_depth": 6, "learning_rate": 0.1}, None, 20_000),
    ("xgb", {"n_estimators": 200, "max_depth": 4, "learning_rate": 0.1, "min_child_weight": 20}, 0.9, 20_000),
    ("xgb", {"n_estimators": 100, "max_depth": 6, "learning_rate": 0.1, "subsample": 0.7}, 0.5, 20_000),
    ("rf", {"n_estimators": 100, "min_samples_leaf": 3, "max_features": 0.3}, None, 20_000),
    ("rf", {"n_estimators": 100, "min_samples_leaf": 5, "max_features": 0.3}, 0.9, 4_000),
    ("et", {"n_estimators": 100, "min_samples_leaf": 3, "max_features": 0.5}, None, 20_000),
    ("nn", {"hidden_layer_sizes": [100], "max_iter": 30, "alpha": 0.01}, None, 20_000),
]


def numbers(rng, n):
    """Returns correlated columns, and a long-tailed number whose spread is larger where one column is large."""
    z = rng.normal(size=(n, 40)) @ (np.eye(40) + 0.1 * rng.normal(size=(40, 40)))
    spread = np.where(z[:, 4] > 0, 0.5, 0.1)
    y = 10 * np.exp(0.4 * z[:, 0] - 0.3 * z[:, 1] + 0.2 * z[:, 2] * z[:, 3] + spread * rng.normal(size=n))
    return z, y


def make(directory):
    for seed, (name, train, test, classes) in enumerate(TABLES):
        # No column is a sum of others: otherwise the coefficients would not be unique.
        x, y = make_classification(
            train + test, n_features=60, n_informative=25, n_redundant=0, n_classes=classes, n_clusters_per_class=8 // classes,
            weights=[0.7] if classes == 2 else None, flip_y=0.1, class_sep=0.7, random_state=seed,
        )
        rows = np.column_stack([x.round(4), y])
        for side, part in (("train", rows[:train]), ("test", rows[train:])):
            np.savetxt(directory / f"{name}-{side}.csv", part, delimiter=",", fmt="%.10g")
    x, y = numbers(np.random.default_rng(5), 30_000)
    rows = np.column_stack([x.round(4), y.round(4)])
    for side, part in (("train", rows[:20_000]), ("test", rows[20_000:])):
        np.savetxt(directory / f"numbers-{side}.csv", part, delimiter=",", fmt="%.10g")
    cases = [
        {"table": name, "pipeline": pipeline, "parameters": parameters, "rows": rows, "loss": None}
        for name, *_ in TABLES
        for pipeline, parameters, rows in CASES
    ]
    for pipeline, parameters, quantile, rows in NUMBER_CASES:
        loss = "squared" if quantile is None else {"pinball": {"quantile": quantile}}
        cases.append({"table": "numbers", "pipeline": pipeline, "parameters": parameters, "rows": rows, "loss": loss})
    (directory / "cases.json").write_text(json.dumps(cases))


LOGISTIC = {"lasso": 1.0, "ridge": 0.0, "enet": None}


def solvers(ratio, classes):
    """Returns scikit-learn's solvers for a penalty, those first that reach the exact minimum."""
    if ratio == 0:
        return ["newton-cholesky", "lbfgs"]
    return ["saga", "liblinear"] if ratio == 1 and classes == 2 else ["saga"]


def boosted(kind, p, **loss):
    """Returns scikit-learn's own boosting with the parameters that both have."""
    return kind(
        max_iter=p["n_estimators"], max_depth=p["max_depth"], learning_rate=p["learning_rate"], max_leaf_nodes=None,
        max_features=p.get("colsample_bytree", 1.0), min_samples_leaf=p.get("min_child_weight", 1), early_stopping=False,
        random_state=1, **loss,
    )


def models(pipeline, p, classes):
    """Returns peers by name. Our answers are compared with the first, and our time with the fastest."""
    if pipeline in LOGISTIC:
        ratio = p.get("l1_ratio", LOGISTIC[pipeline])
        components = p.get("selection_n_components")
        first = TruncatedSVD(components, n_iter=10, random_state=1) if components else "passthrough"

        def logistic(solver):
            fit = LogisticRegression(solver=solver, l1_ratio=ratio, C=p["C"], tol=1e-7, max_iter=100_000, random_state=1)
            return make_pipeline(first, StandardScaler(), fit)

        return {solver: logistic(solver) for solver in solvers(ratio, classes)}
    if pipeline == "svc":
        return {"libsvm": make_pipeline(StandardScaler(), SVC(**p, probability=True, random_state=1))}
    if pipeline == "xgb":
        # xgboost reads None as its default, and 0 as no limit.
        first = XGBClassifier(**{**p, "max_depth": p["max_depth"] or 0}, n_jobs=1, random_state=1)
        return {"xgboost": first, "HistGradientBoosting": boosted(HistGradientBoostingClassifier, p)}
    if pipeline == "rf":
        return {"RandomForest": RandomForestClassifier(**p, random_state=1)}
    if pipeline == "et":
        return {"ExtraTrees": ExtraTreesClassifier(**p, random_state=1)}
    return {"MLP": make_pipeline(StandardScaler(), MLPClassifier(**p, random_state=1))}


def number_models(pipeline, p, quantile, rows):
    """Like `models`, for numbers."""
    if pipeline in LOGISTIC:
        # The weight C of the errors is that of poolcast's objective, C / 2 * sum of squares + penalty.
        alpha = 1 / (p["C"] * rows)
        linear = {
            "lasso": Lasso(alpha=alpha),
            "ridge": Ridge(alpha=1 / p["C"]),
            "enet": ElasticNet(alpha=alpha, l1_ratio=p.get("l1_ratio", 0.5)),
        }[pipeline]
        return {type(linear).__name__: make_pipeline(StandardScaler(), linear)}
    if pipeline == "xgb":
        objective, loss = {"objective": "reg:squarederror"}, {}
        if quantile is not None:
            objective = {"objective": "reg:quantileerror", "quantile_alpha": quantile}
            loss = {"loss": "quantile", "quantile": quantile}
        first = XGBRegressor(**p, **objective, n_jobs=1, random_state=1)
        return {"xgboost": first, "HistGradientBoosting": boosted(HistGradientBoostingRegressor, p, **loss)}
    if pipeline == "nn":
        scaled = TransformedTargetRegressor(MLPRegressor(**p, random_state=1), transformer=StandardScaler())
        return {"MLP": make_pipeline(StandardScaler(), scaled)}
    kind = {"rf": RandomForestRegressor, "et": ExtraTreesRegressor}[pipeline]
    return {kind.__name__.removesuffix("Regressor"): kind(**p, random_state=1)}


# As in benches/pipelines.rs: maximum number of fits, and the processor time after which no further one begins, in s.
MAX_REPEATS, REPEATED_UP_TO_S = 10, 0.5


def fit_all(peers, x, y):
    """Fits all peers; returns the first one, and the name and CPU seconds of the fastest."""
    seconds = {}
    for name, peer in peers.items():
        times = []
        while len(times) < MAX_REPEATS and sum(times) <= REPEATED_UP_TO_S:
            begun = time.process_time()
            peer.fit(x, y)
            times.append(time.process_time() - begun)
        seconds[name] = min(times)
    fastest = min(seconds, key=seconds.get)
    return next(iter(peers.values())), fastest, seconds[fastest]


def forest_quantiles(forest, x, y, x_new, quantile):
    """Predicts with a quantile regression forest (Meinshausen 2006) over all training rows in scikit-learn's leaves."""
    order = np.argsort(y, kind="stable")
    known, asked = forest.apply(x[order]), forest.apply(x_new)
    found = []
    for leaves in asked:
        same = leaves == known
        reached = np.cumsum((same / same.sum(axis=0)).sum(axis=1))
        found.append(y[order][np.argmax(reached >= (quantile - 1e-12) * reached[-1])])
    return np.array(found)


def compare_numbers(directory, number, case):
    """Returns a line of the table, whether our loss is much larger, our CPU seconds, and the fastest peer with its own."""
    quantile = None if case["loss"] == "squared" else case["loss"]["pinball"]["quantile"]
    (x, y), (x_test, y_test) = (read_numbers(directory / f"{case['table']}-{side}.csv") for side in ("train", "test"))
    x, y = x[: case["rows"]], y[: case["rows"]]
    fitted, fastest, theirs_s = fit_all(number_models(case["pipeline"], case["parameters"], quantile, len(y)), x, y)
    of_leaves = quantile is not None and case["pipeline"] != "xgb"
    theirs = forest_quantiles(fitted, x, y, x_test, quantile) if of_leaves else fitted.predict(x_test)
    ours = json.loads((directory / str(number) / "scores.json").read_text())

    def loss(p):
        error = y_test - np.array(p)
        return (error**2).mean() if quantile is None else np.maximum(quantile * error, (quantile - 1) * error).mean()

    line = f"{'loss':>8} {loss(ours['predictions']):8.4f} / {loss(theirs):8.4f} {'':6} {ours['cpu_s']:6.2f} / {theirs_s:6.2f}"
    return line, loss(ours["predictions"]) > (1 + LOSS_APART) * loss(theirs), (ours["cpu_s"], fastest, theirs_s)


def scores(y, p):
    """Returns the AUC (one against the rest, averaged, for more than two classes) and the Brier score."""
    auc = roc_auc_score(y, p[:, 1] if p.shape[1] == 2 else p, multi_class="ovr")
    brier = ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean()
    return auc, brier / 2 if p.shape[1] == 2 else brier


def read_numbers(path):
    rows = np.loadtxt(path, delimiter=",")
    return rows[:, :-1], rows[:, -1]


def read(path):
    x, y = read_numbers(path)
    return x, y.astype(int)


def compare_classes(directory, number, case):
    """Returns a line of the table, whether the AUC or a coefficient differs too much, our CPU seconds, and the fastest peer
    with its own."""
    x, y = (part[: case["rows"]] for part in read(directory / f"{case['table']}-train.csv"))
    x_test, y_test = read(directory / f"{case['table']}-test.csv")
    fitted, fastest, theirs_s = fit_all(models(case["pipeline"], case["parameters"], y.max() + 1), x, y)
    ours = json.loads((directory / str(number) / "scores.json").read_text())
    p = np.array(ours["predictions"]).reshape(len(y_test), -1)
    (auc, brier), (their_auc, their_brier) = scores(y_test, p), scores(y_test, fitted.predict_proba(x_test))
    line = f"{auc:.4f} / {their_auc:.4f} {brier:.4f} / {their_brier:.4f} {ours['cpu_s']:6.2f} / {theirs_s:6.2f}"
    wrong = abs(auc - their_auc) > AUC_APART
    if case["pipeline"] in LOGISTIC and "selection" not in case["parameters"]:
        target = json.loads((directory / str(number) / "pipeline.json").read_text())["body"]["target"]
        weights = np.array(target["classes"]["model"]["logistic"]["weights"]).reshape(fitted[-1].coef_.shape)
        apart = abs(weights - fitted[-1].coef_).max()
        line += f"  coefficients {apart:.1e} apart, {(weights != 0).sum()} / {(fitted[-1].coef_ != 0).sum()} not 0"
        wrong |= apart > COEFFICIENT_APART
    return line, wrong, (ours["cpu_s"], fastest, theirs_s)


def note(what, ours_s, fastest, theirs_s):
    """Passes the fits per CPU second to ci/bench/all."""
    row = [f"{what}: {fastest}", str(1 / max(ours_s, 1e-4)), "fits per CPU-s", "scikit-learn, xgboost", str(1 / max(theirs_s, 1e-4))]
    subprocess.run([pathlib.Path(__file__).parents[1] / "bench/row", *row], check=True)


def compare(directory):
    failed = 0
    print(f"{'':43} {'AUC':>15} {'Brier':>15} {'CPU s':>15}")
    for number, case in enumerate(json.loads((directory / "cases.json").read_text())):
        compared = compare_numbers if case["loss"] else compare_classes
        line, wrong, timed = compared(directory, number, case)
        failed += wrong
        parameters = ", ".join(str(value) for value in case["parameters"].values())
        print(f"{case['table']:8}{case['pipeline']:6}{parameters:31} {line} {timed[1]}{'  FAILED' if wrong else ''}", flush=True)
        note(", ".join(filter(None, (case["table"], case["pipeline"], parameters))), *timed)
    sys.exit(f"{failed} cases differ" if failed else 0)


{"make": make, "compare": compare}[sys.argv[1]](pathlib.Path(sys.argv[2]))
