"""Weights of torchvision and timm, saved with their names and loaded by the engine: logits of all shared families, and
errors for families that share only the name.

Usage: foreign_weights.py PARITY_ONNX [--all | NAME...]; PARITY_ONNX is the program that runs the engine's side.
"""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import python_packages  # noqa: E402

with python_packages.required():
    import numpy as np
    import timm
    import torch
    import torchvision

from arrays import load_safetensors, save_safetensors  # noqa: E402

CLASSES = 9
BOUND = 1e-4  # relative to the largest logit
MEAN, SCALE = (120, 110, 100), (0.017, 0.018, 0.019)  # as in parity_onnx
# For images of 2^k + 1 pixels TensorFlow's padding is symmetric, as PyTorch's is.
ODD = 65


def of_torchvision(name, **options):
    return lambda: getattr(torchvision.models, name)(num_classes=CLASSES, **options)


def of_timm(name, **options):
    return lambda: timm.create_model(name, num_classes=CLASSES, **options)


# Our model, library, its module, image size, file extension, and the engine's error if rejected.
SOME = [
    ("resnet18", "torchvision", of_torchvision("resnet18"), ODD, "safetensors", None),
    ("resnet50_v1.5", "timm", of_timm("resnet50"), ODD, "npz", None),
    ("official_resnet50_v2", "timm", of_timm("resnetv2_50"), ODD, "safetensors", None),
    ("mobilenet", "torchvision", of_torchvision("mobilenet_v2"), ODD, "npz", None),
    ("mobilenet", "timm", of_timm("mobilenetv2_100"), ODD, "safetensors", None),
    ("alexnet", "torchvision", of_torchvision("alexnet"), 227, "safetensors", "of another type or shape"),
    ("googlenet", "torchvision", of_torchvision("googlenet", init_weights=False), ODD, "npz", "missing: conv1"),
]
OTHERS = [
    ("resnet50_v1.5", "torchvision", of_torchvision("resnet50"), 64, "safetensors", None),
    ("resnet34", "timm", of_timm("resnet34"), 64, "safetensors", None),
    ("official_resnet18_v2", "timm", of_timm("resnetv2_18"), ODD, "npz", "missing: layer1.0.downsample"),
    ("vgg11", "torchvision", of_torchvision("vgg11"), 224, "safetensors", None),
    ("vgg11", "timm", of_timm("vgg11"), 224, "npz", None),
    ("nasnetlarge", "timm", of_timm("nasnetalarge"), 97, "safetensors", None),
    ("inception4", "timm", of_timm("inception_v4"), 139, "safetensors", "of another type or shape"),
]


def pool_as_tensorflow(module):
    """timm's strided average pools include padding, unlike TensorFlow's, whose weights timm has."""

    def forward(pool, x):
        padded = timm.layers.pad_same(x, pool.kernel_size, pool.stride)
        inside = timm.layers.pad_same(torch.ones_like(x), pool.kernel_size, pool.stride)
        mean = torch.nn.functional.avg_pool2d
        return mean(padded, pool.kernel_size, pool.stride) / mean(inside, pool.kernel_size, pool.stride)

    for part in module.modules():
        if type(part).__name__ == "AvgPool2dSame":
            part.forward = functools.partial(forward, part)


def randomize(module, epsilon):
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.eps = epsilon or part.eps
            torch.nn.init.uniform_(part.weight, 0.5, 1.5)
            torch.nn.init.uniform_(part.bias, -0.3, 0.3)
            torch.nn.init.uniform_(part.running_mean, -0.3, 0.3)
            torch.nn.init.uniform_(part.running_var, 0.5, 2)
        elif isinstance(part, (torch.nn.Conv2d, torch.nn.Linear)):
            torch.nn.init.normal_(part.weight, 0, (2 / part.weight[0].numel()) ** 0.5)
            if part.bias is not None:
                torch.nn.init.uniform_(part.bias, -0.3, 0.3)


def save(path, module):
    tensors = {name: value.numpy() for name, value in module.state_dict().items()}
    if path.endswith(".npz"):
        np.savez(path, **tensors)
    else:
        save_safetensors(path, dict(sorted(tensors.items(), key=lambda item: item[1].itemsize, reverse=True)))


def run_case(program, folder, case):
    name, library, make, size, ending, refusal = case
    text = f"{name} of {library}, {size} pixels, .{ending}"
    torch.manual_seed(5)
    module = make().eval()
    if name == "nasnetlarge":
        pool_as_tensorflow(module)
    randomize(module, 1e-3 if name == "mobilenet" else None)  # TensorFlow's
    weights = os.path.join(folder, "given." + ending)
    save(weights, module)
    given = [f"name={name}", "dataset=imagenet", f"size={size}", f"classes={CLASSES}", f"weights={weights}"]
    done = subprocess.run([program, folder, *given], stderr=subprocess.PIPE, text=True)
    if refusal or done.returncode:
        good = bool(refusal) and done.returncode == 1 and refusal in done.stderr
        print(f"{'ok  ' if good else 'FAIL'} {text}: refused: {done.stderr.strip()[:240]}")
        return good
    ours = load_safetensors(os.path.join(folder, "results.safetensors"))
    images = torch.tensor(ours["images"].reshape(-1, 3, size, size).copy()) * 255
    images = (images - torch.tensor(MEAN).view(3, 1, 1)) * torch.tensor(SCALE).view(3, 1, 1)
    with torch.no_grad():
        expected = module(images).numpy()
    error = np.abs(ours["logits"] - expected).max() / np.abs(expected).max()
    difference = np.abs(expected[0] - expected[1]).max() / np.abs(expected).max()
    good = error <= BOUND and difference > 10 * BOUND
    verdict = "ok  " if good else "FAIL"
    print(f"{verdict} {text}: error {error:.1e}, bound {BOUND:.0e}; two images differ by {difference:.1e}")
    return good


def main():
    torch.set_num_threads(2)
    program, *names = sys.argv[1:]
    cases = SOME + OTHERS if names else SOME
    if names and names != ["--all"]:
        cases = [case for case in cases if case[0] in names]
    with tempfile.TemporaryDirectory(prefix="dtrain_parity_") as folder:
        failed = sum(not run_case(program, folder, case) for case in cases)
    print(f"{failed} comparisons failed" if failed else "all comparisons hold")
    sys.exit(1 if failed else 0)


main()
