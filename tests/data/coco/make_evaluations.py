#!/usr/bin/env python3
"""Makes evaluations.json beside this file: random ground truth and detections with pycocotools' metrics.

make_evaluations.py needs pycocotools (2.0.11 made the file), and is run by hand when the sets change.
tests/parity/coco_evaluation.py compares with pycocotools on more sets.
"""
import contextlib
import io
import json
import pathlib
import random

import numpy
from pycocotools import mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

OPTIONS = {"boxes": "bbox", "masks": "segm"}


def text_mask(box, height, width):
    x, y, w, h = box
    rle = mask.frPyObjects([[x, y, x + w, y, x + w, y + h, x, y + h]], height, width)[0]
    return {"size": [height, width], "counts": rle["counts"].decode()}


def jittered(rng, box, amount):
    x, y, w, h = box
    return [round(x + rng.uniform(-amount, amount) * w, 1), round(y + rng.uniform(-amount, amount) * h, 1),
            round(w * rng.uniform(1 - amount, 1 + amount), 1), round(h * rng.uniform(1 - amount, 1 + amount), 1)]


def random_box(rng, height, width):
    w, h = rng.uniform(2, width * 0.7), rng.uniform(2, height * 0.7)
    return [round(rng.uniform(-2, width - w), 1), round(rng.uniform(-2, height - h), 1), round(w, 1), round(h, 1)]


def random_set(seed):
    """Ground truth with crowds, empty images and categories, and detections with ties, duplicates and noise."""
    rng = random.Random(seed)
    side = rng.choice([40, 120, 300])
    images = [{"id": i, "file_name": f"{i}.jpg", "height": side, "width": side + 10}
              for i in rng.sample(range(1, 1000), rng.randint(1, 6))]
    categories = [{"id": i, "name": f"c{i}"} for i in rng.sample(range(1, 90), rng.randint(1, 4))]
    decimals = rng.choice([1, 2, 6])
    annotations, results = [], []
    for image in images:
        if rng.random() < 0.15:
            continue
        height, width = image["height"], image["width"]
        boxes = [random_box(rng, height, width) for _ in range(rng.randint(0, 6))]
        for box in boxes:
            crowd = int(rng.random() < 0.15)
            segmentation = text_mask(box, height, width)
            annotation = {"id": len(annotations) + 1, "image_id": image["id"], "category_id": rng.choice(categories)["id"],
                          "iscrowd": crowd, "bbox": box, "segmentation": segmentation,
                          "area": int(mask.area(segmentation)) if rng.random() < 0.7 else round(rng.uniform(0, 12000), 1)}
            annotations.append(annotation)
            for _ in range(rng.choice([0, 1, 1, 1, 2, 4])):
                found = jittered(rng, box, rng.choice([0, 0.05, 0.1, 0.3]))
                category = annotation["category_id"] if rng.random() < 0.9 else rng.choice(categories)["id"]
                results.append({"image_id": image["id"], "category_id": category, "bbox": found,
                                "score": round(rng.random(), decimals)})
        for _ in range(rng.choice([0, 0, 3, 15, 40, 130] if seed % 5 == 0 else [0, 0, 3, 15])):
            results.append({"image_id": image["id"], "category_id": rng.choice(categories + [{"id": 99}])["id"],
                            "bbox": random_box(rng, height, width), "score": round(rng.random(), decimals)})
    rng.shuffle(results)
    sizes = {image["id"]: (image["height"], image["width"]) for image in images}
    masks = [dict({key: result[key] for key in ("image_id", "category_id", "score")},
                  segmentation=text_mask(result["bbox"], *sizes[result["image_id"]])) for result in results]
    return {"truth": {"images": images, "categories": categories, "annotations": annotations}, "boxes": results, "masks": masks}


def evaluate(made, kind):
    """The twelve COCO metrics, then the average precision of each category, by ascending id."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = json.loads(json.dumps(made["truth"]))
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(json.loads(json.dumps(made[kind]))), OPTIONS[kind])
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    precision = evaluation.eval["precision"][:, :, :, 0, -1]
    return evaluation.stats.tolist() + [
        float(numpy.mean(values[values > -1])) if (values > -1).any() else -1.0 for values in numpy.moveaxis(precision, 2, 0)
    ]


def main():
    rows = []
    for seed in (4, 8, 32):
        made = random_set(seed)
        rows.append(dict(made, expected={kind: evaluate(made, kind) for kind in OPTIONS}))
    (pathlib.Path(__file__).parent / "evaluations.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


if __name__ == "__main__":
    main()
