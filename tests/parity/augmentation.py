"""Augmentation against torchvision on PIL images: every image op with the same images and magnitudes, the magnitudes
and policies of AutoAugment, RandAugment and TrivialAugment, and Mixup and CutMix with their loss against their
formulas.

Usage: augmentation.py PARITY_AUGMENTATION; that is the program that runs the engine's side. Bytes must be equal.
"""

import pathlib
import subprocess
import sys

from parity import Report, arguments, load_safetensors, scratch

try:
    import numpy as np
    import torch
    from PIL import Image
    from torchvision.transforms import autoaugment, functional
except ImportError as error:
    print(f"SKIPPED: {sys.executable} has no {error.name}")
    sys.exit(0)

BINS = range(0, 31, 3)
FACTORS = (0, 0.1, 0.35, 0.6, 0.999, 1, 1.0001, 1.37, 1.9, 2.7)
HUES = (-0.5, -0.31, -0.1, -0.004, 0, 0.0039, 0.05, 0.2, 0.499, 0.5)


def images():
    """Noise, colours of all hues, few levels, and one level."""
    random = np.random.default_rng(1)
    yield random.integers(0, 256, (61, 47, 3), np.uint8)
    y, x = np.mgrid[0:96, 0:128]
    yield np.stack([x * 2, 255 - y * 2, (x * y // 48) % 256], 2).astype(np.uint8)
    yield (80 + 40 * random.random((32, 32, 3))).astype(np.uint8)
    yield (random.integers(0, 3, (33, 40, 3)) * 70 + 20).astype(np.uint8)
    yield np.full((5, 9, 3), 77, np.uint8)
    yield random.integers(0, 256, (2, 2, 3), np.uint8)


def changes(width, height):
    """Pairs of an op or an adjustment and its amount."""
    usual = autoaugment.RandAugment()._augmentation_space(31, (height, width))
    wide = autoaugment.TrivialAugmentWide()._augmentation_space(31)
    for space in (usual, wide):
        for op, (levels, signed) in space.items():
            for bin in BINS if levels.ndim > 0 else [0]:
                level = float(levels[bin].item()) if levels.ndim > 0 else 0.0
                yield op, level
                if signed:
                    yield op, -level
    yield "Invert", 0.0
    for name in ("brightness", "contrast", "saturation", "sharpness"):
        for factor in FACTORS:
            yield f"adjust_{name}", factor
    for hue in HUES:
        yield "adjust_hue", hue


def by_torchvision(image, name, amount):
    if name.startswith("adjust"):
        return getattr(functional, name)(image, amount)
    return autoaugment._apply_op(image, name, amount, functional.InterpolationMode.NEAREST, None)


def compare_changes(program, folder, report):
    for number, pixels in enumerate(images()):
        height, width, _ = pixels.shape
        wanted = list(changes(width, height))
        source, results = folder / "image", folder / "results"
        source.write_bytes(pixels.tobytes())
        texts = [f"{name}:{amount!r}" for name, amount in wanted]
        subprocess.run([program, "apply", source, str(width), str(height), results, *texts], check=True)
        ours = np.frombuffer(results.read_bytes(), np.uint8).reshape(len(wanted), height, width, 3)
        wrong = {}
        for (name, amount), actual in zip(wanted, ours):
            expected = np.asarray(by_torchvision(Image.fromarray(pixels), name, amount))
            if (actual != expected).any():
                wrong.setdefault(name, []).append((amount, int((actual != expected).sum())))
        for name in sorted({name for name, _ in wanted}):
            if name in wrong:
                report.fail(f"image {number}, {name}: bytes that differ by amount: {wrong[name]}")
            else:
                print(f"ok   image {number}, {name}: all bytes are equal")


def lines_of(program, *arguments):
    output = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    return [line.split() for line in output.splitlines()]


def compare_magnitudes(program, report):
    for bins, kind in ((31, "usual"), (31, "wide"), (10, "usual")):
        ours = {words[0]: words[1:] for words in lines_of(program, "magnitudes", bins, kind, 200, 331)}
        if kind == "wide":
            space = autoaugment.TrivialAugmentWide()._augmentation_space(bins)
        elif bins == 31:
            space = autoaugment.RandAugment()._augmentation_space(bins, (331, 200))
        else:
            space = autoaugment.AutoAugment()._augmentation_space(bins, (331, 200))
        for op, (levels, signed) in space.items():
            theirs = levels.double().numpy() if levels.ndim > 0 else np.zeros(bins)
            mine = np.array(ours[op][1:], float)
            report.check(f"{bins} {kind} magnitudes of {op}", mine, theirs, 1e-6)
            # The last digit of torch.linspace, which varies between versions, can decide about a whole pixel.
            clear = np.abs(theirs - theirs.round()) > 1e-4
            if op.startswith("Translate") and (mine.astype(int) != theirs.astype(int))[clear].any():
                report.fail(f"{op} moves by other pixels")
            if bool(int(ours[op][0])) != signed:
                report.fail(f"the sign of {op}")


def compare_policies(program, report):
    for policy in autoaugment.AutoAugmentPolicy:
        ours = [(op, float(share), int(bin)) for op, share, bin in lines_of(program, "policy", policy.value)]
        theirs = [change for pair in autoaugment.AutoAugment(policy).policies for change in pair]
        theirs = [(op, share, -1 if bin is None else bin) for op, share, bin in theirs]
        if ours == theirs:
            print(f"ok   policy {policy.value}")
        else:
            report.fail(f"policy {policy.value}")


def compare_mixing(program, folder, report):
    results = folder / "mixed"
    subprocess.run([program, "mix", results], check=True)
    tensors = load_safetensors(results)
    ways = set()
    for number in range(24):
        get = lambda name: torch.from_numpy(tensors[f"{number}.{name}"].copy())
        images, labels, share = get("images").permute(0, 3, 1, 2), get("labels").long(), float(get("shares")[0])
        left, top, right, bottom = map(int, get("boxes")[0])
        whole = float(get("weights")[0]) != 0
        ways.add(whole)
        one_hot = torch.nn.functional.one_hot(labels, 6).float()
        others = images.roll(1, 0)
        if whole:
            expected = share * images + (1 - share) * others
        else:
            expected = images.clone()
            expected[..., top:bottom, left:right] = others[..., top:bottom, left:right]
            area = (right - left) * (bottom - top) / 35
            report.check(f"batch {number}: share", np.float64([share]), np.float64([1 - area]), 1e-6)
        expected = expected.permute(0, 2, 3, 1).numpy()
        report.check(f"batch {number}: {'mixup' if whole else 'CutMix'}", get("mixed").numpy(), expected, 1e-6)
        target = share * one_hot + (1 - share) * one_hot.roll(1, 0)
        loss = torch.nn.functional.cross_entropy(get("logits"), target, label_smoothing=0.1)
        report.check(f"batch {number}: loss", get("loss").numpy(), loss.reshape(1).numpy(), 1e-6)
    if len(ways) != 2:
        report.fail("both ways of mixing are drawn")


def main():
    program = pathlib.Path(arguments().program)
    report = Report()
    with scratch() as path:
        folder = pathlib.Path(path)
        compare_changes(program, folder, report)
        compare_magnitudes(program, report)
        compare_policies(program, report)
        compare_mixing(program, folder, report)
    report.exit()


main()
