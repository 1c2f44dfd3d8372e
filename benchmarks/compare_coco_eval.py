#!/usr/bin/env python3
"""Compares COCO evaluation by coco_eval_bench and by pycocotools on synthetic detections.

    cmake --preset release && cmake --build --preset release --target coco_eval_bench
    benchmarks/compare_coco_eval.py --python VENV/bin/python --save NAME

The images are a sample of COCO in $DTRAIN_TEST_DATA (default ../shared/data), repeated under new ids. Each has --detections
detections: its objects with jittered boxes and masks. --python needs pycocotools and numpy. Times are processor seconds of
one core, medians over the rounds. Both programs must compute the same metrics.
"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

from compare_cpu import Row, data, last_json, machine, name_of_results, output_of, root, table

# Converts detections from polygons to RLE; runs in the Python that has pycocotools.
ENCODE = """
import json, sys
from pycocotools import mask
results = json.load(open(sys.argv[1]))
for result in results:
    size = result.pop("size")
    rle = mask.merge(mask.frPyObjects(result["segmentation"], *size))
    result["segmentation"] = {"size": size, "counts": rle["counts"].decode()}
json.dump(results, open(sys.argv[1], "w"))
"""


def moved(rng, annotation):
    """A jittered box and polygons that still overlap the object."""
    x, y, width, height = annotation["bbox"]
    dx, dy = rng.gauss(0, 0.15) * width, rng.gauss(0, 0.15) * height
    box = [round(number, 2) for number in (x + dx, y + dy, width * rng.uniform(0.8, 1.25), height * rng.uniform(0.8, 1.25))]
    if isinstance(annotation["segmentation"], list):
        parts = annotation["segmentation"]
    else:
        parts = [[x, y, x + width, y, x + width, y + height, x, y + height]]
    return box, [[number + (dy if i % 2 else dx) for i, number in enumerate(part)] for part in parts]


def make_files(options, folder):
    rng = random.Random(1)
    sample = json.loads((data / "coco_eval/instances_val2014_100.json").read_text())
    objects = {image["id"]: [one for one in sample["annotations"] if one["image_id"] == image["id"]]
               for image in sample["images"]}
    categories = [category["id"] for category in sample["categories"]]
    truth = {"images": [], "annotations": [], "categories": sample["categories"]}
    boxes, masks = [], []
    for number in range(options.images):
        image = sample["images"][number % len(sample["images"])]
        truth["images"].append(dict(image, id=number + 1))
        for one in objects[image["id"]]:
            truth["annotations"].append(dict(one, id=len(truth["annotations"]) + 1, image_id=number + 1))
        for _ in range(options.detections):
            one = rng.choice(objects[image["id"]] or sample["annotations"])
            box, parts = moved(rng, one)
            category = one["category_id"] if rng.random() < 0.7 else rng.choice(categories)
            found = {"image_id": number + 1, "category_id": category, "score": round(rng.random(), 3)}
            boxes.append(dict(found, bbox=box))
            masks.append(dict(found, segmentation=parts, size=[image["height"], image["width"]]))
    for name, content in {"truth": truth, "boxes": boxes, "masks": masks}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    subprocess.run([options.python, "-c", ENCODE, folder / "masks.json"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--detections", type=int, default=100, help="per image")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--save", metavar="NAME", type=name_of_results,
                        help="write benchmarks/results/<date>-coco-eval-NAME.json")
    options = parser.parse_args()
    about, runs, rows = machine(), {}, []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        make_files(options, folder)
        for _ in range(options.rounds):
            for compare in ("boxes", "masks"):
                truth, results = folder / "truth.json", folder / f"{compare}.json"
                commands = {"ours": [root / options.build / "benchmarks/coco_eval_bench", "--truth", truth, "--results", results,
                                     "--compare", compare],
                            "peer": [options.python, root / "benchmarks/peers/coco_eval_peer.py", truth, results, compare]}
                for side, command in commands.items():
                    runs.setdefault((compare, side), []).append(last_json(output_of(command)))
                    print(f"  {compare}, {side}: {runs[compare, side][-1]}", flush=True)
    for compare in ("boxes", "masks"):
        pairs = zip(runs[compare, "ours"][0]["statistics"], runs[compare, "peer"][0]["statistics"])
        if max(abs(a - b) for a, b in pairs) > 1e-9:
            sys.exit(f"{compare}: the metrics of dtrain and pycocotools differ")
        for key in ("read_truth_seconds", "read_results_seconds", "score_seconds"):
            ours, peer = (statistics.median(run[key] for run in runs[compare, side]) / options.images
                          for side in ("ours", "peer"))
            target = ">= 10" if key == "score_seconds" else ""
            rows.append(Row(f"{compare}, {key.replace('_seconds', '').replace('_', ' ')}", f"{1e6 * ours:.1f} us/image",
                            f"{1e6 * peer:.1f} (pycocotools)", f"{peer / ours:.1f}", target,
                            ("yes" if peer >= 10 * ours else "NO") if target else ""))
    print("\n" + "\n".join(f"{key}: {value}" for key, value in about.items()) + "\n\n" + table(rows))
    if options.save:
        path = root / "benchmarks/results" / f"{about['date'][:10]}-coco-eval-{options.save}.json"
        path.write_text(json.dumps({"machine": about, "images": options.images, "detections": options.detections,
                                    "rows": [row._asdict() for row in rows],
                                    "runs": {" ".join(key): run for key, run in runs.items()}}, indent=1) + "\n")
        print(f"saved as {path.relative_to(root)}")


if __name__ == "__main__":
    main()
