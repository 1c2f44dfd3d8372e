"""Class folders, compared with torchvision's ImageFolder: classes, order, labels and bytes of all samples.

Usage: image_folder.py PARITY_IMAGE_SOURCE; that is the program that lists the engine's samples.
"""

import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS))
import python_packages  # noqa: E402

with python_packages.required():
    import PIL.Image
    import torchvision.datasets

# Formats that both read. ImageFolder takes files by extension and has no GIF; the engine takes them by content.
FORMATS = {"jpg": "JPEG", "JPEG": "JPEG", "png": "PNG", "bmp": "BMP", "tif": "TIFF", "TIFF": "TIFF", "webp": "WEBP"}
CLASSES = ["n02", "n01", "Zebra", "zebra", "a b", "a", "a-b", "10", "9", "é", "ж", "images", "train"]
FOLDERS = ["", "sub", "sub 2", "sub/deep", "sub-1", "Sub"]


def image(rng, kind):
    file = io.BytesIO()
    size = (rng.randint(2, 9), rng.randint(2, 9))
    PIL.Image.frombytes("RGB", size, rng.randbytes(3 * size[0] * size[1])).save(file, kind)
    return file.getvalue()


def make(root, rng):
    for name in CLASSES:
        for _ in range(rng.randint(1, 12)):
            extension = rng.choice(list(FORMATS))
            stem = rng.choice(["img", "IMG", "1", "10", "2", "é", "x y"]) + str(rng.randint(0, 30))
            path = root / name / rng.choice(FOLDERS) / f"{stem}.{extension}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(image(rng, FORMATS[extension]))
    (root / CLASSES[0] / "labels.csv").write_text("a,b\n")
    (root / "README.txt").write_text("not a class\n")
    (root / CLASSES[1] / "linked.png").symlink_to(next((root / "a").rglob("*.*")))
    (root / "linked").symlink_to(root / "n01", target_is_directory=True)


def samples(program, root, output):
    subprocess.run([program, str(output), "folder", str(root.parent), root.name], check=True)
    lines = [json.loads(line) for line in output.with_suffix(".json").read_text().splitlines()]
    assert not any("fault" in line for line in lines), lines
    content = output.with_suffix(".bin").read_bytes()
    found = []
    for line in lines:
        found.append((line["file"], line["label"], content[:line["bytes"]]))
        content = content[line["bytes"]:]
    return found


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(5):
            root = pathlib.Path(folder) / str(seed) / "train"
            make(root, random.Random(seed))
            peer = torchvision.datasets.ImageFolder(str(root))
            expected = [(path, label, pathlib.Path(path).read_bytes()) for path, label in peer.samples]
            found = samples(program, root, pathlib.Path(folder) / "list")
            assert found == expected, [pair for pair in zip(found, expected) if pair[0] != pair[1]][:3]
            counts = [sum(label == i for _, label, _ in found) for i in range(len(peer.classes))]
            assert min(counts) > 0 and sum(counts) == len(peer.samples)
            print(f"seed {seed}: {len(found)} samples in {len(counts)} classes")
    print("equal to ImageFolder")


if __name__ == "__main__":
    main(sys.argv[1])
