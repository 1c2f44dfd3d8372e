"""Shared parts of the parity tests: safetensors files, layouts, and comparison with a stated bound."""

import argparse
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import torchvision
except ImportError as error:
    print(f"SKIPPED: {sys.executable} has no {error.name}; on Debian: apt install python3-torch python3-torchvision")
    sys.exit(0)

from arrays import load_safetensors, save_safetensors  # noqa: F401, E402: the scripts import them from here

torch.set_num_threads(2)


def arguments(names=None):
    """Parses the options of every script and, optionally, a list of names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16"), action="append", dest="precisions",
                        help="may be repeated; default: fp32")
    if names:
        parser.add_argument(names, nargs="*")
    options = parser.parse_args()
    options.precisions = options.precisions or ["fp32"]
    return options


def nhwc(tensor):
    """NCHW (or KCRS) to NHWC (KRSC); other ranks as they are."""
    tensor = tensor.detach()
    return (tensor.permute(0, 2, 3, 1) if tensor.dim() == 4 else tensor).numpy()


def run(program, *arguments):
    subprocess.run([program, *map(str, arguments)], check=True)


class Report:
    """Collects comparisons; a failed one is reported at once, and makes the test fail."""

    def __init__(self):
        self.failed = 0

    def error(self, actual, expected, norm):
        actual, expected = np.float64(actual), np.float64(expected)
        difference = np.abs(actual - expected)
        if norm == "max":  # the worst element, against the largest of the tensor
            return difference.max() / max(np.abs(expected).max(), 1e-300)
        return np.sqrt((difference**2).sum() / max((expected**2).sum(), 1e-300))  # "l2"

    def check(self, name, actual, expected, bound, norm="max", beside=""):
        if actual.shape != expected.shape:
            self.fail(f"{name}: shape {actual.shape}, expected {expected.shape}")
            return
        self.judge(name, self.error(actual, expected, norm), bound, beside)

    def judge(self, name, error, bound, beside=""):
        print(f"{'ok  ' if error <= bound else 'FAIL'} {name}: relative error {error:.2e}, bound {bound:.0e}{beside}")
        self.failed += not error <= bound

    def fail(self, message):
        print("FAIL", message)
        self.failed += 1

    def exit(self):
        print(f"{self.failed} comparisons failed" if self.failed else "all comparisons hold")
        sys.exit(1 if self.failed else 0)


def scratch():
    return tempfile.TemporaryDirectory(prefix="dtrain_parity_")
