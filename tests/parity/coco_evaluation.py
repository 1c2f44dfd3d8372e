"""The twelve COCO metrics of dtrain-mask-rcnn eval against pycocotools: for the sample of coco_eval, perturbations of
its detections, random ground truth with crowds, empty images and tied scores, and invalid ground truth and detections
that pycocotools accepts.

Usage: coco_evaluation.py DTRAIN_MASK_RCNN
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS / "data" / "coco")]
import python_packages  # noqa: E402

with python_packages.required():
    import numpy as np
    from make_evaluations import evaluate, random_set
    from pycocotools import mask

DATA = pathlib.Path(os.environ.get("DTRAIN_TEST_DATA") or TESTS.parents[1] / "shared" / "data") / "coco_eval"
BOUND = 1e-12
SETS = 25
SAMPLES = {"bbox": "boxes", "segm": "masks"}


def statistics(program, folder, truth, results, iou_type):
    """The engine's twelve metrics."""
    paths = [os.path.join(folder, name) for name in ("truth.json", "results.json")]
    for path, content in zip(paths, (truth, results)):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file)
    files = [f"--annotations={paths[0]}", f"--results={paths[1]}"]
    command = [program, "eval", "--json", *files, f"--iou_type={iou_type}"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["stats"]


def moved(rng, result):
    """The detection with its box changed, or its mask shifted, by some pixels."""
    if "bbox" in result:
        x, y, w, h = result["bbox"]
        return {**result, "bbox": [x + rng.uniform(-9, 9), y + rng.uniform(-9, 9), w * rng.uniform(0.8, 1.2), h]}
    pixels = np.roll(mask.decode(result["segmentation"]), (rng.randint(-9, 9), rng.randint(-9, 9)), (0, 1))
    runs = mask.encode(np.asfortranarray(pixels))
    return {**result, "segmentation": {"size": runs["size"], "counts": runs["counts"].decode()}}


def perturbed(rng, results):
    """The detections shuffled: some missing, some duplicated, some moved or with another class, many with equal
    scores."""
    categories = sorted({one["category_id"] for one in results})
    made = []
    for result in results:
        one = moved(rng, result) if rng.random() < 0.4 else dict(result)
        if rng.random() < 0.1:
            one["category_id"] = rng.choice(categories)
        one["score"] = round(one["score"], 1)
        made += [one] * rng.choice([0, 1, 1, 1, 1, 2])
    rng.shuffle(made)
    return made


def odd_truth(rng, made):
    """The set with irregularities that pycocotools accepts: ids that are strings, 0 or duplicates; annotations of
    unlisted images and categories; images with only an id; categories without names; boxes of negative size."""
    truth = json.loads(json.dumps(made["truth"]))
    annotations = truth["annotations"]
    for image in truth["images"]:
        del image["file_name"]
    for category in truth["categories"]:
        del category["name"]
    for annotation in annotations:
        odd = rng.randrange(12)
        if odd == 0:
            annotation["id"] = 0
        elif odd == 1:
            annotation["id"] = rng.choice(annotations)["id"]
        elif odd == 2:
            annotation["image_id"] = 5000
        elif odd == 3:
            annotation["category_id"] = 5000
        elif odd == 4:
            annotation["bbox"][2] *= -1
        elif odd == 5:
            annotation["ignore"] = 1
    return truth


def odd_results(rng, results):
    """The detections with boxes of negative or missing extent."""
    odd = json.loads(json.dumps(results))
    for result in odd:
        if "bbox" in result and rng.random() < 0.1:
            result["bbox"][2] = rng.choice([-1e-5, -3, 0])
    return odd


def with_string_ids(truth, results):
    """The same with strings as ids of images, in another order than the numbers."""
    truth, results = json.loads(json.dumps([truth, results]))
    for image in truth["images"]:
        image["id"] = str(image["id"])
    for one in truth["annotations"] + results:
        one["image_id"] = f"{one['image_id']}"
    return truth, results


def odd_cases():
    """Sets of the form of cases(), in which each kind of detections has separate ground truth."""
    for seed in range(0, SETS, 3):
        rng, made = random.Random(seed), random_set(seed)
        if not made["boxes"]:
            continue
        truth, boxes = odd_truth(rng, made), odd_results(rng, made["boxes"])
        yield f"odd set {seed}", {"truth": truth, "boxes": boxes, "masks": made["masks"]}
        truth, boxes = with_string_ids(truth, boxes)
        both = [{**mask_of, "bbox": box["bbox"], "image_id": str(box["image_id"])}
                for mask_of, box in zip(made["masks"], made["boxes"])]
        yield f"odd set {seed} with strings as ids, boxes and masks", {"truth": truth, "boxes": boxes, "masks": both}
        yield f"set {seed}, masks of boxes", {"truth": made["truth"], "boxes": made["boxes"], "masks": made["boxes"]}


def cases():
    """Pairs of a name and a set as random_set makes them."""
    for seed in range(SETS):
        made = random_set(seed)
        if made["boxes"]:  # pycocotools rejects an empty list
            yield f"random set {seed}", made
    yield from odd_cases()
    if not DATA.is_dir():
        print(f"SKIPPED: {DATA}")
        sys.exit(0)
    truth = json.loads((DATA / "instances_val2014_100.json").read_text(encoding="utf-8"))
    found = {kind: json.loads((DATA / f"instances_val2014_fake{iou_type}100_results.json").read_text(encoding="utf-8"))
             for iou_type, kind in SAMPLES.items()}
    yield "the sample", {"truth": truth, **found}
    for seed in range(3):
        yield f"perturbed sample {seed}", {
            "truth": truth, **{kind: perturbed(random.Random(seed), results) for kind, results in found.items()}}


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="dtrain_parity_") as folder:
        for name, made in cases():
            for iou_type, kind in SAMPLES.items():
                ours = statistics(sys.argv[1], folder, made["truth"], made[kind], iou_type)
                expected = evaluate(made, kind)[:12]
                error = np.abs(np.subtract(ours, expected)).max()
                good = len(ours) == 12 and error <= BOUND
                failed += not good
                print(f"{'ok  ' if good else 'FAIL'} {name}, {kind}: AP {expected[0]:.3f}, error {error:.1e}, "
                      f"bound {BOUND:.0e}")
    print(f"{failed} comparisons failed" if failed else "all comparisons hold")
    sys.exit(1 if failed else 0)


main()
