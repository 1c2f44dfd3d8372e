#!/usr/bin/env python3
"""Makes polygons.json beside this file: polygons of many kinds with pycocotools' masks.

make_polygons.py needs pycocotools (2.0.11 made the file), and is run by hand when the kinds change.
"""
import json
import math
import pathlib
import random

from pycocotools import mask

rng = random.Random(7)
SIZES = [(1, 1), (9, 1), (1, 7), (20, 30), (37, 53), (120, 160)]


def corners(kind, height, width):
    count = rng.choice([3, 4, 5, 8, 12])
    if kind == "inside":
        return [(round(rng.uniform(0, width), 2), round(rng.uniform(0, height), 2)) for _ in range(count)]
    if kind == "beyond":
        return [(round(rng.uniform(-width, 2 * width), 3), round(rng.uniform(-height, 2 * height), 3)) for _ in range(count)]
    if kind == "half pixels":
        return [(rng.randint(-4, 2 * width + 4) / 2, rng.randint(-4, 2 * height + 4) / 2) for _ in range(count)]
    if kind == "thin":
        x, y, dx, dy = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(-width, width), rng.uniform(-height, height)
        gap = rng.choice([0, 0.01, 0.1, 0.3])
        return [(x, y), (x + dx, y + dy), (x + dx + gap, y + dy + gap), (x + gap, y + gap)]
    if kind == "on a line":
        x, y = rng.uniform(-1, width), rng.uniform(-1, height)
        across, down = rng.choice([(0, 0), (1, 0), (0, 1)])
        return [(x + across * rng.uniform(0, 9), y + down * rng.uniform(0, 9)) for _ in range(count)]
    if kind == "negative":
        return [(rng.uniform(-5, 2), rng.uniform(-5, height)) for _ in range(count)]
    if kind == "huge":
        return [(rng.uniform(-9e5, 9e5), rng.uniform(-9e5, 9e5)) for _ in range(count)]
    turn = 2 * math.pi / count
    return [(width / 2 + width / 2.2 * math.cos(turn * i), height / 2 + height / 2.2 * math.sin(turn * i)) for i in range(count)]


def main():
    polygons, pairs, masks = [], [], []
    for kind in ["inside", "beyond", "half pixels", "thin", "on a line", "negative", "huge", "round"]:
        for height, width in SIZES:
            for _ in range(2 if height * width > 100 else 1):
                xy = [number for corner in corners(kind, height, width) for number in corner]
                rle = mask.frPyObjects([xy], height, width)[0]
                masks.append(rle)
                polygons.append({"kind": kind, "size": [height, width], "xy": xy, "counts": rle["counts"].decode(),
                                 "area": int(mask.area(rle)), "bbox": mask.toBbox(rle).tolist()})
    for i, a in enumerate(polygons):
        later = [j for j in range(i + 1, len(polygons)) if polygons[j]["size"] == a["size"] and polygons[j]["area"] > 0]
        if not later or a["area"] == 0:
            continue
        j = rng.choice(later)
        boxes = [polygons[i]["bbox"]], [polygons[j]["bbox"]]
        pairs.append({"a": i, "b": j, "union": mask.merge([masks[i], masks[j]])["counts"].decode(),
                      "intersection": mask.merge([masks[i], masks[j]], intersect=True)["counts"].decode(),
                      "iou": mask.iou([masks[i]], [masks[j]], [0]).item(), "crowd_iou": mask.iou([masks[i]], [masks[j]], [1]).item(),
                      "box_iou": mask.iou(*boxes, [0]).item(), "crowd_box_iou": mask.iou(*boxes, [1]).item()})
    out = pathlib.Path(__file__).parent / "polygons.json"
    lists = {"polygons": polygons, "pairs": pairs}
    rows = [f'"{name}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]" for name, rows in lists.items()]
    out.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
