"""Every ImageNet preprocessing preset against its definition in NumPy, from the same decoded pixels and random numbers:
crop, resize, flip, colour distortion, cast and normalisation.

Usage: preprocessing.py PARITY_PREPROCESSING; that is the program that runs the engine's side. The NumPy arithmetic
follows the definitions of TensorFlow's kernels, PIL and the predecessor programs. Bytes must be equal; floats agree
within BOUND levels of 255 (the engine uses FMA contraction), and within NORMALIZED after normalisation.
"""

import argparse
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print(f"SKIPPED: {sys.executable} has no numpy; on Debian: apt install python3-numpy")
    sys.exit(0)

from arrays import load_safetensors, write_png

BOUND, NORMALIZED = 1e-4, 1e-6  # relative to 255, 4e-7
# The last digit of a float decides how a distorted colour is truncated.
DISTORTED_BYTES = 0.002  # fraction that may differ by one level
F = np.float32
SEED, EPOCH, SIZE, SAMPLES = 7, 3, 56, 12
BOXES = [(0.1, 0.2, 0.5, 0.6), (0.55, 0.5, 0.9, 0.95)]
SIZES = [(97, 131), (140, 61), (57, 60), (256, 300)]  # height, width
MEAN = F([123.68, 116.78, 103.94])


def philox(seed, stream, counter):
    """The four Philox words of include/dtrain/core/rng.h."""
    c = [counter & 0xFFFFFFFF, counter >> 32, stream & 0xFFFFFFFF, stream >> 32]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


class Random:
    """The draws of one sample."""

    def __init__(self, sample):
        start = philox(SEED, EPOCH, 0)
        self.stream = ((start[0] << 32 | start[1]) + sample) & 0xFFFFFFFFFFFFFFFF
        self.counter, self.words = 0, []

    def next(self):
        if not self.words:
            self.words = philox(SEED, self.stream, self.counter)
            self.counter += 1
        return self.words.pop(0)

    def uniform(self, low=0, high=1):
        return F(low) + F(F(high) - F(low)) * F((self.next() >> 8) / 2**24)

    def below(self, bound):
        product = self.next() * bound
        while product & 0xFFFFFFFF < (-bound & 0xFFFFFFFF) % bound:
            product = self.next() * bound
        return product >> 32


def sample_distorted_bounding_box(height, width, boxes, random, area=(0.05, 1), aspect=(0.75, 1.33)):
    """x, y, width, height by TensorFlow's op, with 100 attempts to cover a tenth of a box."""
    low_area, high_area = (F(share) * F(width) * F(height) for share in area)
    for _ in range(100):
        ratio = random.uniform(*aspect)
        wide = lambda h: int(np.rint(F(h) * ratio))
        area_of = lambda h: F(wide(h)) * F(h)
        low, high = (int(np.rint(np.sqrt(limit / ratio))) for limit in (low_area, high_area))
        if wide(high) > width:
            high = int((width + 0.5 - 1e-7) / float(ratio))
            high -= wide(high) > width
        high = min(high, height)
        h = min(low, high)
        if h < high:
            h += random.below(high - h + 1)
        h += bool(area_of(h) < low_area)
        h -= bool(area_of(h) > high_area)
        w = wide(h)
        if not low_area <= area_of(h) <= high_area or not 0 < w <= width or not 0 < h <= height:
            continue
        y = random.below(height - h) if h < height else 0
        x = random.below(width - w) if w < width else 0
        for ymin, xmin, ymax, xmax in boxes or [(0, 0, 1, 1)]:
            top, bottom = int(F(ymin) * F(height)), int(F(ymax) * F(height))
            left, right = int(F(xmin) * F(width)), int(F(xmax) * F(width))
            rows, columns = min(bottom, y + h) - max(top, y), min(right, x + w) - max(left, x)
            if rows >= 0 and columns >= 0 and F(rows * columns) / F((bottom - top) * (right - left)) >= F(0.1):
                return x, y, w, h
    return 0, 0, width, height


def random_resized_crop(height, width, random):
    """x, y, width, height by torchvision's RandomResizedCrop."""
    for _ in range(10):
        target = height * width * (0.08 + 0.92 * float(random.uniform()))
        low, high = math.log(3 / 4), math.log(4 / 3)
        aspect = math.exp(low + (high - low) * float(random.uniform()))
        w, h = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            y = random.below(height - h + 1)
            return random.below(width - w + 1), y, w, h
    w, h = min(width, round(height * (4 / 3))), min(height, round(width / (3 / 4)))
    return (width - w) // 2, (height - h) // 2, w, h


def resize_legacy(image, height, width):
    """tf.image.resize_images(BILINEAR, align_corners=False) of TensorFlow 1."""
    places = []
    for size, out in zip(image.shape, (height, width)):
        at = np.arange(out, dtype=F) * (F(size) / F(out))
        low = np.floor(at).astype(int)
        places.append((low, np.minimum(low + 1, size - 1), at - low.astype(F)))
    return interpolate(image.astype(F), *places)


def interpolate(image, rows, columns):
    """Along x, then along y; each of the two is (lower, upper, fraction)."""
    left, right, along = columns
    upper, lower, down = rows
    along, down = along[None, :, None], down[:, None, None]
    top = image[upper][:, left] + (image[upper][:, right] - image[upper][:, left]) * along
    bottom = image[lower][:, left] + (image[lower][:, right] - image[lower][:, left]) * along
    return top + (bottom - top) * down


def crop_and_resize(image, box, height, width):
    """tf.image.crop_and_resize of one box (ymin, xmin, ymax, xmax); clamps samples rounded beyond the edge."""
    places = []
    for size, out, low, high in ((image.shape[0], height, *box[::2]), (image.shape[1], width, *box[1::2])):
        step = (F(high) - F(low)) * F(size - 1) / F(out - 1)
        at = np.minimum(F(low) * F(size - 1) + np.arange(out, dtype=F) * step, F(size - 1))
        places.append((np.floor(at).astype(int), np.ceil(at).astype(int), at - np.floor(at)))
    return interpolate(image.astype(F), *places)


def resize_pil(image, height, width):
    """PIL's resize(BILINEAR): triangle filter scaled to the reduction, 22-bit fixed point, bytes after each pass."""
    for axis, out in ((1, width), (0, height)):
        size = image.shape[axis]
        scale = size / out
        support = max(scale, 1.0)
        lines = []
        for i in range(out):
            centre = (i + 0.5) * scale
            low, high = max(0, int(centre - support + 0.5)), min(size, int(centre + support + 0.5))
            weights = [max(0.0, 1 - abs((v - centre + 0.5) * (1 / support))) for v in range(low, high)]
            fixed = [int(0.5 + weight * (1 / sum(weights)) * 2**22) for weight in weights]
            source = np.take(image, range(low, high), axis).astype(np.int64)
            lines.append((np.tensordot(source, fixed, (axis, 0)) + 2**21) >> 22)
        image = np.stack(lines, axis).astype(np.uint8)
    return image


def turn_in_yiq(image, angle, saturation):
    """tf.contrib.image.adjust_hsv_in_yiq with a value scale of 1."""
    to_yiq = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
    to_rgb = np.array([[1, 0.95617069, 0.62143257], [1, -0.2726886, -0.64681324], [1, -1.103744, 1.70062309]])
    cosine, sine = saturation * math.cos(angle), saturation * math.sin(angle)
    return image @ (to_rgb @ [[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]] @ to_yiq).T


def scale_contrast(image, factor):
    mean = image.mean((0, 1))
    return (image - mean) * factor + mean


def distort_tf_cnn(image, sample, random):
    image = image.astype(float) / 255 + float(random.uniform(-32 / 255, 32 / 255))

    def turn(image):
        angle = float(random.uniform(-0.2, 0.2)) * math.pi
        return turn_in_yiq(image, angle, float(random.uniform(0.5, 1.5)))

    def contrast(image):
        return scale_contrast(image, float(random.uniform(0.5, 1.5)))

    image = contrast(turn(image)) if sample % 2 == 0 else turn(contrast(image))
    return np.clip(image, 0, 1) * 255


def distort_aws(image, random):
    image = image.astype(float) + float(random.uniform(-0.3, 0.3))
    angle = float(random.uniform(-0.13, 0.13)) * math.pi
    image = turn_in_yiq(image, angle, float(random.uniform(0.6, 1.4)))
    return scale_contrast(image, float(random.uniform(0.6, 1.4)))


def centre(image, odd=lambda rest: rest // 2):
    """The central SIZE x SIZE pixels."""
    y, x = (odd(side - SIZE) for side in image.shape[:2])
    return image[y : y + SIZE, x : x + SIZE]


def cropped(image, crop, random):
    """A crop, flipped with probability 1/2."""
    x, y, w, h = crop
    window = image[y : y + h, x : x + w]
    return window[:, ::-1] if random.uniform() < 0.5 else window


def tf_cnn(image, training, sample, distortions=False, boxes=BOXES):
    height, width, _ = image.shape
    if not training:
        ratio = max(F(SIZE) / F(height), F(SIZE) / F(width))
        return centre(resize_legacy(image, *(int(F(side) * ratio * F(1.145)) for side in (height, width))))
    random = Random(sample)
    crop = sample_distorted_bounding_box(height, width, boxes, random)
    image = resize_legacy(cropped(image, crop, random), SIZE, SIZE)
    return distort_tf_cnn(image, sample, random) if distortions else image


def official(image, training, sample, boxes=BOXES):
    if training:
        return tf_cnn(image, training, sample, boxes=boxes)
    ratio = F(SIZE * 256 // 224) / F(min(image.shape[:2]))
    return centre(resize_legacy(image, *(int(F(side) * ratio) for side in image.shape[:2])))


def mlperf(image, training, sample):
    return official(image, training, sample, boxes=None)


def torchvision(image, training, sample):
    height, width, _ = image.shape
    if not training:
        short = SIZE * 256 // 224
        sides = (short * side // min(height, width) if side > min(height, width) else short for side in (height, width))
        return centre(resize_pil(image, *sides), lambda rest: round(rest / 2))
    random = Random(sample)
    x, y, w, h = random_resized_crop(height, width, random)
    image = resize_pil(image[y : y + h, x : x + w], SIZE, SIZE)
    return image[:, ::-1] if random.uniform() < 0.5 else image


def aws(image, training, sample, distortions=False):
    random, nominal = Random(sample), round(SIZE / 0.8)
    if training:
        x, y, w, h = sample_distorted_bounding_box(nominal, nominal, None, random, (0.08, 1), (3 / 4, 4 / 3))
        box = [F(side) / F(nominal) for side in (y, x, y + h, x + w)]
    else:
        box = [0.5 * (1 - 0.8), 0.5 * (1 - 0.8), 0.5 * (1 + 0.8), 0.5 * (1 + 0.8)]
    image = crop_and_resize(image, box, SIZE, SIZE)
    if training and random.uniform() < 0.5:
        image = image[:, ::-1]
    if distortions:
        image = distort_aws(image, random)
    return np.clip(image, 0, 255).astype(np.uint8)


def plus_minus_one(pixels):
    return pixels * F(1 / 127.5) - F(1)


def less_mean(pixels):
    return pixels - MEAN


def standard(pixels):
    return (pixels / F(255) - F([0.485, 0.456, 0.406])) / F([0.229, 0.224, 0.225])


def standard_aws(pixels):
    return (pixels - F([121, 115, 100])) * (1 / F([70, 68, 71]))


# Pixels and normalisation of each preset.
PREPROCESSINGS = {
    "tf_cnn": (tf_cnn, plus_minus_one),
    "tf_cnn+distortions": (lambda *sample: tf_cnn(*sample, distortions=True), plus_minus_one),
    "tf_cnn+ml_perf": (lambda *sample: tf_cnn(*sample, boxes=None), less_mean),
    "official_models_imagenet": (official, less_mean),
    "mlperf": (mlperf, less_mean),
    "torchvision": (torchvision, standard),
    "aws": (aws, standard_aws),
    "aws+distortions": (lambda *sample: aws(*sample, distortions=True), standard_aws),
}


def make_image(generator, height, width):
    """Smooth shapes and noise, with extreme values and a constant region."""
    coarse = generator.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3))
    image = resize_legacy(coarse, height, width) + generator.normal(0, 12, (height, width, 3))
    image[: height // 4, : width // 4] = 255
    return np.clip(image, 0, 255).astype(np.uint8)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    generator = np.random.default_rng(5)
    images = [make_image(generator, height, width) for height, width in SIZES]
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder, f"{i}.png") for i in range(len(images))]
        for path, image in zip(paths, images):
            write_png(path, image)
        results = pathlib.Path(folder, "results.safetensors")
        subprocess.run([parser.parse_args().program, results, str(SIZE), str(SAMPLES), *paths], check=True)
        engine = load_safetensors(results)

    failed = 0
    worst = {}
    for key in sorted(engine):
        if key.endswith(".normalized"):
            continue
        name, split, image, sample = key.split(".")
        preprocess, normalize = PREPROCESSINGS[name]
        expected = preprocess(images[int(image)], split == "train", int(sample))
        actual = engine[key][0]
        difference = np.abs(actual - expected)
        if expected.dtype != np.uint8:
            good = difference.max() <= BOUND
        elif name.endswith("distortions"):
            good = difference.max() <= 1 and (difference > 0).mean() <= DISTORTED_BYTES
        else:
            good = difference.max() == 0
        shift = np.abs(engine[key + ".normalized"][0] - normalize(actual)).max() / np.abs(normalize(actual)).max()
        good = good and shift <= NORMALIZED
        if not good:
            print(f"FAIL {key}: {difference.max():.3g} levels off, {(difference > 0).mean():.2%} of the values differ; "
                  f"normalisation {shift:.1e}")
        failed += not good
        group = worst.setdefault(f"{name} {split}", [0, 0.0, 0.0, 0.0])
        worst[f"{name} {split}"] = [group[0] + 1, max(group[1], float(difference.max())),
                                    max(group[2], float((difference > 0).mean())), max(group[3], float(shift))]
    for group, (count, levels, share, shift) in worst.items():
        print(f"{group:30} {count:3} samples: at most {levels:.2g} levels off, in {share:.2%} of the values; "
              f"normalisation {shift:.1e}")
    missing = {f"{name} {split}" for name in PREPROCESSINGS for split in ("train", "eval")
               if split == "train" or "+" not in name} - set(worst)
    print(f"{failed} samples differ" if failed else "all samples agree", *(f"; nothing of {name}" for name in missing))
    sys.exit(1 if failed or missing else 0)


main()
