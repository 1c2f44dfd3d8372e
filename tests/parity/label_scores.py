"""Mean average precision and F1 of multi-label scores, compared with scikit-learn's definitions in NumPy, and with
scikit-learn itself where it is installed.

Usage: label_scores.py PARITY_LABEL_SCORES; that is the program that prints the engine's metrics.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np

try:
    from sklearn import metrics
except ImportError:
    metrics = None


def average_precision(targets, scores):
    """average_precision_score: precision and recall at the last sample of each distinct score."""
    order = np.argsort(-scores, kind="stable")
    targets, scores = targets[order], scores[order]
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    hits = np.cumsum(targets)[last]
    precision, recall = hits / (last + 1), hits / targets.sum()
    return float(np.sum(np.diff(recall, prepend=0) * precision))


def f1(hits, found, positives):
    return float(2 * hits / (found + positives)) if found + positives else 0.0


def reference(targets, logits):
    found = logits > 0
    hits, predicted, positives = (targets * found).sum(0), found.sum(0), targets.sum(0)
    with_positives = np.flatnonzero(positives)
    divisor = max(len(with_positives), 1)
    return {
        "mean_average_precision": sum(average_precision(targets[:, c], logits[:, c]) for c in with_positives) / divisor,
        "classes_without_positives": targets.shape[1] - len(with_positives),
        "micro_f1": f1(hits.sum(), predicted.sum(), positives.sum()),
        "macro_f1": sum(f1(hits[c], predicted[c], positives[c]) for c in with_positives) / divisor,
    }


def by_scikit_learn(targets, logits):
    some = np.flatnonzero(targets.sum(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "mean_average_precision": metrics.average_precision_score(targets[:, some], logits[:, some], average="macro"),
            "micro_f1": metrics.f1_score(targets, logits > 0, average="micro"),
            "macro_f1": metrics.f1_score(targets[:, some], (logits > 0)[:, some], average="macro"),
        }


def main(program):
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "scores"
        for samples, classes, share, levels in ((1, 1, 0.9, 0), (50, 3, 0.3, 4), (400, 20, 0.01, 0), (400, 20, 0.2, 7),
                                                (3000, 400, 0.005, 50)):
            targets = (rng.random((samples, classes)) < share).astype(np.float32)
            logits = (rng.normal(size=(samples, classes)) * 3 + targets).astype(np.float32)
            if levels:
                logits = np.round(logits * levels) / np.float32(levels)
            np.concatenate([logits, targets], axis=1).astype("<f4").tofile(path)
            found = json.loads(subprocess.run([program, str(classes), str(path)], check=True, capture_output=True).stdout)
            expected = reference(targets.astype(np.float64), logits)
            assert found.keys() == expected.keys(), found
            for name, value in expected.items():
                assert abs(found[name] - value) < 1e-12, (name, found[name], value)
            if metrics and targets.any():
                for name, value in by_scikit_learn(targets, logits).items():
                    assert abs(found[name] - value) < 1e-9, (name, found[name], value)
            print(f"{samples} samples of {classes} classes: {found}")
    print("equal to NumPy" + (" and scikit-learn" if metrics else ""))


if __name__ == "__main__":
    main(sys.argv[1])
