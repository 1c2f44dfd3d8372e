"""Files that other tools wrote (tests/parity/tool_files/make_labels.py and make_weights.py), read by dtrain-data and
dtrain-convert: boxes to a thousandth of a pixel, masks and weights exactly. Needs only Python's standard library.

Usage: tool_files.py DTRAIN_DATA DTRAIN_CONVERT
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

FILES = pathlib.Path(__file__).resolve().parent / "tool_files"
TOLERANCE = 1e-3


def require(good, *what):
    if not good:
        raise AssertionError(" ".join(map(str, what)))


def run(*command):
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    require(ran.returncode == 0, *command, f": exit code {ran.returncode}: {ran.stderr}{ran.stdout}")
    return ran


def require_object(found, expected, where):
    """Class, box and, where expected, polygons or the area of a mask."""
    tolerance = expected.get("tolerance", TOLERANCE)
    far = [abs(a - b) for a, b in zip(found["bbox"], expected["box"])]
    require(found["class"] == expected["class"] and max(far) <= tolerance, where, found, "expected", expected)
    if "polygons" in expected:
        require([len(part) for part in found["segmentation"]] == [len(part) for part in expected["polygons"]], where, found)
        pairs = [pair for parts in zip(found["segmentation"], expected["polygons"]) for pair in zip(*parts)]
        require(all(abs(a - b) <= TOLERANCE for a, b in pairs), where, found, "expected", expected)
    if "area" in expected:
        require(found["area"] == expected["area"], where, found, "expected", expected)


def require_split(path, expected, where):
    coco = json.loads(path.read_text(encoding="utf-8"))
    names = {one["id"]: one["name"] for one in coco["categories"]}
    images = {one["file_name"]: one["id"] for one in coco["images"]}
    require({pathlib.Path(name).name for name in images} == expected.keys(), where, sorted(images))
    for name, image in images.items():
        found = [{**one, "class": names[one["category_id"]]} for one in coco["annotations"] if one["image_id"] == image]
        objects = expected[pathlib.Path(name).name]
        require(len(found) == len(objects), where, name, f"has {len(found)} objects, expected {len(objects)}:", found)
        for one, other in zip(found, objects):
            require_object(one, other, f"{where}: {name}:")


def labels(program, name, expected, folder):
    source, out = FILES / "labels" / name, folder / name
    flags = expected["flags"]
    run(program, "coco", *flags, source, "--output", out, "--to=json")
    for split, images in expected["images"].items():
        require((out / "annotations" / f"instances_{split}.json").is_file(), f"no split {split}")
        require_split(out / "annotations" / f"instances_{split}.json", images, f"{name}: {split}")
    run(program, "check", out)
    stats = json.loads(run(program, "stats", *flags, source, "--json").stdout)
    counted = {one["name"]: (one["images"], one["objects"]) for one in stats["splits"]}
    wanted = {split: (len(images), sum(map(len, images.values())))
              for split, images in expected["images"].items()}
    require(counted == wanted, name, "stats:", counted, "expected", wanted)
    run(program, "show", *flags, source, "--output", folder / f"{name}.png")
    print(f"{name}: {sum(objects for _, objects in wanted.values())} objects")


def tensors_of(path):
    """Type, shape and bytes of each tensor of a safetensors file."""
    content = path.read_bytes()
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:begin])
    header.pop("__metadata__", None)
    return {name: [one["dtype"], one["shape"], content[begin + one["data_offsets"][0]:begin + one["data_offsets"][1]].hex()]
            for name, one in header.items()}


def weights(program, name, expected, folder):
    out = folder / "weights.safetensors"
    run(program, FILES / "weights" / name, out, "--force", "--summary")
    found = tensors_of(out)
    different = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
    require(not different, "tensors that differ:", different)
    print(f"{name}: {len(found)} tensors")


def web_dataset(program, folder):
    archives = folder / "web_dataset"  # a copy: an index is written beside the archives
    shutil.copytree(FILES / "weights" / "web_dataset", archives)
    run(program, "check", archives)
    split, = json.loads(run(program, "stats", archives, "--json").stdout)["splits"]
    counts = [one["images"] for one in split["classes"]]
    require(counts == [2, 1, 1] and split["unreadable_images"] == 0, split)
    print(f"web_dataset: {split['images']} samples")


def main(data, convert):
    failed = []

    def attempt(name, check, *given):
        try:
            check(*given)
        except AssertionError as error:
            failed.append(name)
            print(f"FAIL {name}: {error}")

    with tempfile.TemporaryDirectory(prefix="dtrain_parity_") as folder:
        folder = pathlib.Path(folder)
        for name, expected in json.loads((FILES / "labels" / "expected.json").read_text(encoding="utf-8")).items():
            attempt(name, labels, data, name, expected, folder)
        for name, expected in json.loads((FILES / "weights" / "expected.json").read_text()).items():
            attempt(name, weights, convert, name, expected, folder)
        attempt("web_dataset", web_dataset, data, folder)
    print(f"failed: {', '.join(failed)}" if failed else "all files are read as they were written")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
