"""Resizing of images to the detector's input: sizes, pixels and detections against the newest torchvision, recorded in
torchvision_newest.json (see record_torchvision.py), and, with the older size rule, against the installed version if it
is older than 0.16.

Usage: torchvision_resize.py PARITY_RESIZE [DTRAIN_MASK_RCNN]
"""

import json
import os
import pathlib
import subprocess

import resize_cases as cases
from arrays import write_png
from parity import Report, arguments, load_safetensors, np, run, save_safetensors, scratch, torchvision

options = arguments("detector")
report = Report()
newest = json.loads((pathlib.Path(__file__).parent / "torchvision_newest.json").read_text())


def ours(folder, scale):
    """Sizes and images by the engine with a scale of this type."""
    tensors = {f"image{i}": np.float32(cases.image(*size)) for i, size in enumerate(cases.IMAGES)}
    tensors["sizes"] = np.float32(cases.sizes())
    paths = [os.path.join(folder, name) for name in ("images.safetensors", "resized.safetensors")]
    save_safetensors(paths[0], tensors)
    run(options.program, *paths, scale)
    return load_safetensors(paths[1])


def compare_sizes(name, found, expected):
    wrong = [(size, list(a), list(b)) for size, a, b in zip(cases.sizes(), found, expected) if list(a) != list(b)]
    if wrong:
        report.fail(f"{name}: {len(wrong)} of {len(expected)} sizes differ, such as {wrong[0]}")
    else:
        print(f"ok   {name}: {len(expected)} sizes")


with scratch() as folder:
    found = ours(folder, "float64")
    compare_sizes(f"torchvision {newest['torchvision']}", np.int64(found["sizes"]), [row[2:] for row in newest["sizes"]])
    for i, image in enumerate(newest["images"]):
        name = f"{image['size'][0]}x{image['size'][1]}, resized to {found[f'image{i}'].shape[:2]}"
        if list(found[f"image{i}"].shape) != image["shape"]:
            report.fail(f"{name}, expected {image['shape']}")
            continue
        report.check(name, np.float64(cases.samples_of(found[f"image{i}"])), np.float64(image["samples"]), 3e-6)

    if tuple(map(int, torchvision.__version__.split(".")[:2])) < (0, 16):
        found = ours(folder, "float32")
        compare_sizes(f"torchvision {torchvision.__version__}", np.int64(found["sizes"]),
                      [cases.new_size(*size) for size in cases.sizes()])
        for i, size in enumerate(cases.IMAGES):
            # Source coordinates are rounded differently: by half a float's last digit, 3e-5 of a pixel, at edges.
            report.check(f"{size} by float32", found[f"image{i}"], cases.resized(cases.image(*size)), 1e-4)

    _, weights = cases.make_detector()
    save_safetensors(os.path.join(folder, "weights.safetensors"), weights)
    write_png(os.path.join(folder, "image.png"), cases.image(*cases.DETECTOR_IMAGE))
    keys = [f"PREPROC.TEST_SHORT_EDGE_SIZE={cases.DETECTOR_SHORT}", f"PREPROC.MAX_SIZE={cases.DETECTOR_LONG}",
            f"TEST.RESULTS_PER_IM={cases.FOUND}",
            f"RPN.TEST_PER_LEVEL_PRE_NMS_TOPK={cases.CANDIDATES}", f"RPN.TEST_IMAGE_POST_NMS_TOPK={cases.PROPOSALS}",
            "BACKBONE.BOTTLENECK=False",
            "BACKBONE.RESNET_NUM_BLOCKS=[2,2,2,2]", "TEST.RESULT_SCORE_THRESH=0.05"]
    line = subprocess.run(
        [options.detector[0], "predict", "--device=cpu", "--json", f"--load={folder}/weights.safetensors",
         f"{folder}/image.png", "--config", *keys], check=True, capture_output=True, text=True).stdout
    objects = json.loads(line)["detections"]
    expected = np.float64(newest["detections"])
    rows = np.float64([[one["category_id"], one["score"], one["bbox"][0], one["bbox"][1], one["bbox"][0] + one["bbox"][2],
                        one["bbox"][1] + one["bbox"][3]] for one in objects])
    if len(rows) != len(expected) or (rows[:, 0] != expected[:, 0]).any():
        report.fail(f"found {rows[:, 0].tolist()}, expected {expected[:, 0].tolist()}")
    else:
        report.check(f"scores of {len(rows)} objects", rows[:, 1], expected[:, 1], 1e-4)
        report.check(f"boxes of {len(rows)} objects", rows[:, 2:], expected[:, 2:], 1e-4)
report.exit()
