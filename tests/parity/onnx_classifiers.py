"""Exported classifiers in ONNX Runtime against the engine: one model per family, or every model of the catalogue.

Usage: onnx_classifiers.py PARITY_ONNX [--all | NAME...]; PARITY_ONNX is the program that runs the engine's side.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import python_packages  # noqa: E402

with python_packages.required():
    import numpy as np
    import onnx
    import onnxruntime

from arrays import load_safetensors  # noqa: E402

CLASSES = 7
BOUND = 1e-4  # relative to the largest logit
DEPTHS = (18, 34, 50, 101, 152)
SMALL_DEPTHS = (20, 32, 44, 56, 110)
# Name, data set, image size and conventions. Odd sizes, for which TensorFlow's padding has two variants.
SOME = [
    ("resnet18", "imagenet", 65),
    ("resnet50", "imagenet", 64, "padding=same", "stride=3x3", "epsilon=0.01"),
    ("resnet50_v1.5", "imagenet", 63, "padding=same_pool"),
    ("resnet50_v2", "imagenet", 65),
    ("official_resnet18_v2", "imagenet", 65),
    ("resnet20", "cifar10", 31),
    ("resnet20_v2", "cifar10", 31),
    ("inception3", "imagenet", 107),
    ("googlenet", "imagenet", 65),
    ("alexnet", "imagenet", 83),
    ("alexnet", "cifar10", 27),
    ("densenet40_k12", "cifar10", 16),
    ("mobilenet", "imagenet", 65),
    ("nasnet", "imagenet", 65),
    ("nasnet", "cifar10", 15),
    ("lenet", "mnist", 28),
]
OTHERS = [
    *((f"resnet{depth}{form}", "imagenet", 65) for depth in DEPTHS for form in ("", "_v1.5")),
    *((f"resnet{depth}_v2", "imagenet", 65) for depth in (50, 101, 152)),
    *((f"official_resnet{depth}{form}", "imagenet", 65) for depth in (*DEPTHS, 200) for form in ("", "_v2")),
    *((f"resnet{depth}{form}", "cifar10", 33) for depth in SMALL_DEPTHS for form in ("", "_v2")),
    ("inception3", "imagenet", 299),
    ("inception4", "imagenet", 139),
    ("overfeat", "imagenet", 79),
    ("densenet100_k12", "cifar10", 16),
    ("densenet100_k24", "cifar10", 16),
    *((name, "imagenet", 65) for name in ("vgg11", "vgg16", "vgg19")),
    ("mobilenet", "imagenet", 224),
    ("nasnet", "cifar10", 32),
    ("nasnetlarge", "imagenet", 97),
    ("small_cnn", "mnist", 28),
    ("lenet", "imagenet", 29),
    ("lenet", "fashion_mnist", 28),
    ("small_cnn", "fashion_mnist", 28),
    ("trivial", "imagenet", 24),
    ("trivial", "cifar10", 32),
]


def run_case(program, folder, case):
    name, dataset, size, *conventions = case
    text = " ".join([f"{name} for {dataset}, {size} pixels", *conventions])
    given = [f"name={name}", f"dataset={dataset}", f"size={size}", f"classes={CLASSES}", *conventions]
    subprocess.run([program, folder, *given], check=True)
    path = os.path.join(folder, "model.onnx")
    ours = load_safetensors(os.path.join(folder, "results.safetensors"))
    images, expected = ours["images"].reshape(-1, 3, size, size), ours["logits"]
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = session.run(["logits"], {"images": images})[0]
    alone = session.run(["logits"], {"images": images[1:]})[0]
    largest = np.abs(expected).max()
    difference = np.abs(expected[0] - expected[1]).max() / largest
    error = max(np.abs(found - expected).max(), np.abs(alone - expected[1:]).max()) / largest
    good = error <= BOUND and np.isfinite(largest) and difference > 10 * BOUND
    verdict = "ok  " if good else "FAIL"
    print(f"{verdict} {text}: error {error:.1e}, bound {BOUND:.0e}; two images differ by {difference:.1e}")
    return good


def main():
    program, *names = sys.argv[1:]
    cases = SOME + OTHERS if names else SOME
    if names and names != ["--all"]:
        cases = [case for case in cases if case[0] in names]
    with tempfile.TemporaryDirectory(prefix="dtrain_parity_") as folder:
        failed = sum(not run_case(program, folder, case) for case in cases)
    print(f"{failed} comparisons failed" if failed else "all comparisons hold")
    sys.exit(1 if failed else 0)


main()
