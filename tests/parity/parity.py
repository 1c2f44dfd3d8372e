"""What the parity tests share: safetensors files, layouts, and comparison with a stated bound."""

import argparse
import json
import os
import struct
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

torch.set_num_threads(2)

DTYPES = {"F32": np.float32, "F16": np.float16, "I32": np.int32, "I64": np.int64}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16"), default="fp32")
    return parser.parse_args()


def save_safetensors(path, tensors, metadata=None):
    header, offset = {"__metadata__": metadata or {}}, 0
    arrays = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    for name, array in arrays.items():
        dtype = next(key for key, value in DTYPES.items() if value == array.dtype)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(array.tobytes())


def load_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    result = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":  # the upper half of a float32
            values = (np.frombuffer(data[begin:end], np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]])
        result[name] = values.reshape(entry["shape"])
    return result


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
        error = self.error(actual, expected, norm)
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
