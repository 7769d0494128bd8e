"""Makes expected.json: small tables, and the models of scikit-learn and xgboost for them.

    ci/venv pipelines tests/data/pipelines/make.py
"""

import json
import pathlib
import warnings

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from xgboost import XGBClassifier

warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).parent
SCALERS = {"none": "passthrough", "standard": StandardScaler(), "minmax": MinMaxScaler()}


def table(rng, n, classes):
    """Returns ten correlated features on different scales; three have main effects, two an interaction."""
    z = rng.normal(size=(n, 10)) @ (np.eye(10) + 0.3 * rng.normal(size=(10, 10)))
    ways = [z[:, 0] - z[:, 1] + z[:, 2], 1.5 * z[:, 3] * z[:, 4], z[:, 5] - z[:, 0], z[:, 6]]
    scores = np.stack([1.2 * way for way in ways[: max(classes, 2)]], axis=1)
    if classes == 2:
        scores = np.stack([np.zeros(n), scores.sum(axis=1)], axis=1)
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return np.round(z * (10.0 ** rng.integers(-1, 2, size=10)) + rng.integers(-3, 4, size=10), 4), y


def model(pipeline, p, seed):
    if pipeline in LOGISTIC:
        ratio = {"lasso": 1.0, "ridge": 0.0}.get(pipeline) if pipeline != "enet" else p["l1_ratio"]
        return LogisticRegression(
            solver="saga", l1_ratio=ratio, C=p["C"], tol=1e-9, max_iter=1_000_000, random_state=seed,
            class_weight=p.get("class_weight"),
        )
    if pipeline == "svc":
        shrinking = p.get("shrinking", True)
        gamma = p.get("gamma", "scale")
        return SVC(
            kernel=p["kernel"], C=p["C"], gamma=gamma, shrinking=shrinking, probability=True, random_state=seed
        )
    if pipeline == "xgb":
        # xgboost reads None as its default, and 0 as no limit.
        depth = {"max_depth": p["max_depth"] or 0} if "max_depth" in p else {}
        return XGBClassifier(n_jobs=1, random_state=seed, **{**p, **depth})
    if pipeline == "rf":
        return RandomForestClassifier(random_state=seed, **p)
    if pipeline == "et":
        return ExtraTreesClassifier(random_state=seed, **p)
    return MLPClassifier(random_state=seed, **p)


def importances(pipeline, fitted):
    """Returns the total gain of each feature's splits, as shares."""
    if pipeline == "rf":
        return fitted.feature_importances_
    gained = fitted.get_booster().get_score(importance_type="total_gain")
    shares = np.array([gained.get(f"f{at}", 0.0) for at in range(10)])
    return shares / shares.sum()


LOGISTIC = ("lasso", "ridge", "enet")
# Randomised models are compared by their mean over this many seeds.
SEEDS = {"rf": 3, "et": 3, "nn": 8}
SGD = {"solver": "sgd", "learning_rate_init": 0.1, "hidden_layer_sizes": [20], "alpha": 0.1, "batch_size": 32, "scaler": "standard"}
SVD = {"selection": "svd", "scaler": "standard"}
CASES = [
    ("lasso", {"C": 0.05, "scaler": "standard"}),
    ("lasso", {"C": 0.1, "class_weight": "balanced", "scaler": "standard"}),
    ("lasso", {"C": 10.0, "scaler": "minmax"}),
    ("lasso", {"C": 1.0, "scaler": "standard"}),
    ("ridge", {"C": 0.05, "scaler": "standard"}),
    ("ridge", {"C": 10.0, "scaler": "minmax"}),
    ("ridge", {"C": 0.5, "class_weight": "balanced", "scaler": "standard"}),
    ("ridge", {"C": 1.0, "selection_n_components": 4, **SVD}),
    ("lasso", {"C": 0.1, "selection_n_components": 7, **SVD}),
    ("enet", {"C": 0.1, "l1_ratio": 0.3, "scaler": "standard"}),
    ("enet", {"C": 1.0, "l1_ratio": 0.0, "scaler": "standard"}),
    ("enet", {"C": 5.0, "l1_ratio": 0.9, "scaler": "minmax"}),
    ("svc", {"C": 1.0, "kernel": "linear", "scaler": "standard"}),
    ("svc", {"C": 1.0, "kernel": "rbf", "scaler": "standard"}),
    ("svc", {"C": 10.0, "kernel": "rbf", "gamma": 0.02, "scaler": "standard"}),
    ("svc", {"C": 10.0, "kernel": "rbf", "gamma": 0.02, "shrinking": False, "scaler": "standard"}),
    ("xgb", {"n_estimators": 60, "max_depth": None, "learning_rate": 0.1, "subsample": 0.6}),
    ("xgb", {"n_estimators": 60, "max_depth": 3, "learning_rate": 0.1, "reg_lambda": 2.0}),
    ("rf", {"n_estimators": 150, "min_samples_leaf": 3}),
    ("rf", {"n_estimators": 150, "min_samples_leaf": 3, "class_weight": "balanced"}),
    ("rf", {"n_estimators": 100, "min_samples_leaf": 3, "selection": "svd", "selection_n_components": 5}),
    ("et", {"n_estimators": 150, "min_samples_leaf": 3}),
    ("et", {"n_estimators": 150, "min_samples_leaf": 10, "max_features": 0.5}),
    ("nn", {"hidden_layer_sizes": [30], "alpha": 0.1, "max_iter": 40, "scaler": "standard", "batch_size": 32}),
    ("nn", {"learning_rate": "constant", "max_iter": 20, **SGD}),
    ("nn", {"learning_rate": "invscaling", "max_iter": 40, **SGD, "learning_rate_init": 0.5}),
    ("nn", {"learning_rate": "adaptive", "max_iter": 60, **SGD}),
]


def main():
    rng = np.random.default_rng(7)
    document = {"tables": {}, "cases": []}
    for name, classes in (("two", 2), ("three", 3)):
        x, y = table(rng, 600, classes)
        document["tables"][name] = {"x": x.T.tolist(), "y": y.tolist(), "train": 300}
        for pipeline, parameters in CASES:
            steps = ("scaler", "selection", "selection_n_components")
            own = {key: value for key, value in parameters.items() if key not in steps}
            scaler = SCALERS[parameters.get("scaler", "none")]
            selection = "passthrough"
            if parameters.get("selection") == "svd":
                selection = TruncatedSVD(parameters["selection_n_components"], algorithm="arpack", random_state=1)
            aucs = []
            seeds = 4 if "subsample" in parameters or "solver" in parameters else SEEDS.get(pipeline, 1)
            for seed in range(1, seeds + 1):
                fitted = make_pipeline(selection, scaler, model(pipeline, own, seed)).fit(x[:300], y[:300])
                p = fitted.predict_proba(x[300:])
                aucs.append(roc_auc_score(y[300:], p[:, 1] if classes == 2 else p, multi_class="ovr"))
            auc = float(np.mean(aucs))
            case = {"table": name, "pipeline": pipeline, "parameters": parameters, "auc": auc, "seeds": len(aucs)}
            case["auc_error"] = float(np.std(aucs) / np.sqrt(max(len(aucs) - 1, 1)))
            if pipeline in LOGISTIC:
                case["probabilities"] = p[:20].tolist()
                if selection == "passthrough":
                    # The sign of a component is arbitrary, so the sign of its coefficient is too.
                    case["coefficients"] = fitted[-1].coef_.tolist()
                    case["intercepts"] = fitted[-1].intercept_.tolist()
            # `et` is left out: scikit-learn draws values, poolcast draws bins.
            if pipeline in ("xgb", "rf") and selection == "passthrough":
                case["importances"] = importances(pipeline, fitted[-1]).tolist()
            document["cases"].append(case)
            print(name, pipeline, parameters, round(auc, 4), [round(auc, 4) for auc in aucs])
    (HERE / "expected.json").write_text(json.dumps(document) + "\n")


main()
