"""Statistics of dtrain-data stats, compared with those of Pillow, NumPy and Python's hashes.

Usage: image_stats.py DTRAIN_DATA
"""

import collections
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import python_packages  # noqa: E402

with python_packages.required():
    import numpy as np
    import PIL.Image
    import PIL.ImageOps

FORMATS = {"jpg": "JPEG", "png": "PNG", "bmp": "BMP"}


def make(root, rng):
    """Class folders of two splits; some images are copies, also of other classes, and some have EXIF orientation 6."""
    made = []
    for i in range(60):
        path = root / rng.choice(["train", "val"]) / rng.choice(["cat", "dog"]) / f"{i}.{rng.choice(list(FORMATS))}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if made and rng.random() < 0.2:
            copied = rng.choice(made)
            path = path.with_suffix(copied.suffix)
            path.write_bytes(copied.read_bytes())
        else:
            size = (rng.randint(1, 40), rng.randint(1, 40))
            image = PIL.Image.frombytes("RGB", size, rng.randbytes(3 * size[0] * size[1]))
            exif = PIL.Image.Exif()
            exif[0x0112] = rng.choice([1, 6])
            image.save(path, FORMATS[path.suffix[1:]], **({"exif": exif} if path.suffix == ".jpg" else {}))
        made.append(path)


def expected_of(folder):
    pixels, sizes = [], []
    for path in sorted(folder.rglob("*.*")):
        image = PIL.ImageOps.exif_transpose(PIL.Image.open(path)).convert("RGB")
        sizes.append(image.size)
        levels = np.asarray(image, np.float64) / 255
        pixels.append((levels.mean((0, 1)), (levels ** 2).mean((0, 1))))
    mean, square = np.mean(pixels, axis=0)
    sides = [sorted(size[axis] for size in sizes) for axis in (0, 1)]
    return {"images": len(sizes), "mean": mean, "std": np.sqrt(square - mean ** 2),
            "sides": [(one[0], one[len(one) // 2], one[-1]) for one in sides],
            "classes": {name.name: len(list(name.iterdir())) for name in folder.iterdir()}}


def equal_files(root):
    groups = collections.defaultdict(list)
    for path in root.rglob("*.*"):
        if not path.name.startswith("."):
            groups[hashlib.sha256(path.read_bytes()).digest()].append(str(path))
    return {tuple(sorted(group)) for group in groups.values() if len(group) > 1}


def check(program, root):
    done = subprocess.run([program, "stats", root, "--json"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    for split, folder in zip(found["splits"], ("train", "val"), strict=True):
        expected = expected_of(root / folder)
        assert split["images"] == expected["images"], split
        assert [tuple(split[side].values()) for side in ("width", "height")] == expected["sides"], split
        assert {one["name"]: one["images"] for one in split["classes"]} == expected["classes"], split
        for name in ("mean", "std"):
            assert np.allclose(split[name], expected[name], rtol=0, atol=1e-12), (name, split[name], expected[name])
    groups = {tuple(sorted(group["files"])): group for group in found["duplicates"]}
    assert groups.keys() == equal_files(root), groups
    for files, group in groups.items():
        for key, part in (("in_several_splits", -3), ("in_several_classes", -2)):
            assert group[key] == (len({pathlib.Path(name).parts[part] for name in files}) > 1), group
    return len(groups)


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(4):
            root = pathlib.Path(folder) / str(seed)
            make(root, random.Random(seed))
            print(f"seed {seed}: {check(program, root)} groups of equal images, and all other figures agree")


if __name__ == "__main__":
    main(sys.argv[1])
