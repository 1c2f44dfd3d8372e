"""dtrain-data coco --from=voc|yolo|labelme on data sets that other programs write: globox (VOC, YOLO, labelme), PyYAML
(data.yaml) and Pillow (SegmentationObject). The annotations are compared with those that globox, torchvision and
pycocotools read: boxes to a thousandth of a pixel, masks exactly.

Usage: annotation_formats.py DTRAIN_DATA
"""

import base64
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
    import globox
    import numpy as np
    import pycocotools.mask
    import torchvision
    import yaml
    from PIL import Image

CLASSES = ["person", "traffic light", "déjà vu", "cat"]
TOLERANCE = 1e-3


class Sets:
    def __init__(self, program, folder):
        self.program, self.folder = pathlib.Path(program).resolve(), pathlib.Path(folder)
        self.rng = random.Random(1)
        self.made = 0

    def make(self, name):
        self.made += 1
        path = self.folder / f"{self.made}-{name}"
        path.mkdir()
        return path

    def images(self, folder, count, suffix=".png"):
        """Names and sizes of new images."""
        folder.mkdir(parents=True, exist_ok=True)
        sizes = {}
        for i in range(count):
            size = self.rng.randint(20, 300), self.rng.randint(20, 200)
            Image.new("RGB", size, (i, 2 * i, 3)).save(folder / f"im{i}{suffix}")
            sizes[f"im{i}{suffix}"] = size
        return sizes

    def boxes(self, size, count):
        made = []
        for _ in range(count):
            x1, x2 = sorted(self.rng.uniform(0, size[0]) for _ in range(2))
            y1, y2 = sorted(self.rng.uniform(0, size[1]) for _ in range(2))
            if x2 - x1 > 0.5 and y2 - y1 > 0.5:
                made.append(globox.BoundingBox(label=self.rng.choice(CLASSES), xmin=x1, ymin=y1, xmax=x2, ymax=y2))
        return made

    def annotations(self, sizes):
        return globox.AnnotationSet(globox.Annotation(name, image_size=size, boxes=self.boxes(size, self.rng.randint(0, 9)))
                                    for name, size in sizes.items())

    def convert(self, source, kind, *flags):
        """COCO annotations of the training split."""
        out = self.make("out")
        ran = subprocess.run([self.program, "coco", f"--from={kind}", source, "--output", out, "--to=json", *flags],
                             capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran
        return out / "annotations" / "instances_train.json"


def listed(annotations):
    """By image, sorted: label and edges of each box."""
    return {pathlib.Path(one.image_id).name: sorted((box.label, *box.ltrb) for box in one.boxes) for one in annotations}


def require_equal(found, expected):
    assert found.keys() == expected.keys(), (found.keys(), expected.keys())
    for name, boxes in expected.items():
        assert [box[0] for box in found[name]] == [box[0] for box in boxes], name
        for ours, theirs in zip(found[name], boxes):
            assert np.allclose(ours[1:], theirs[1:], rtol=0, atol=TOLERANCE), (name, ours, theirs)


def globox_voc(sets):
    root = sets.make("voc")
    annotations = sets.annotations(sets.images(root / "JPEGImages", 20))
    annotations.save_pascal_voc(root / "Annotations")
    found = globox.AnnotationSet.from_coco(sets.convert(root, "voc", "--voc_boxes=zero_based"))
    require_equal(listed(found), listed(annotations))


def torchvision_voc(sets):
    """The layout of the devkit, whose boxes are inclusive and begin at 1, and SegmentationObject."""
    root = sets.make("devkit")
    kit = root / "VOCdevkit" / "VOC2012"
    for folder in ("Annotations", "ImageSets/Main", "SegmentationObject"):
        (kit / folder).mkdir(parents=True)
    sizes = sets.images(kit / "JPEGImages", 12, ".jpg")
    masks = {}
    for name, (width, height) in sizes.items():
        stem = pathlib.Path(name).stem
        indices = np.zeros((height, width), np.uint8)
        objects = ""
        for i in range(sets.rng.randint(1, 6)):
            x, y = sets.rng.randrange(width - 8), sets.rng.randrange(height - 8)
            w, h = sets.rng.randint(4, width - x), sets.rng.randint(4, height - y)
            indices[y:y + h, x:x + w] = 255
            indices[y + 1:y + h - 1, x + 1:x + w - 1] = i + 1
            objects += (f"<object><name>{CLASSES[i % 4]}</name><truncated>0</truncated><difficult>{i % 2}</difficult><bndbox>"
                        f"<xmin>{x + 1}</xmin><ymin>{y + 1}</ymin><xmax>{x + w}</xmax><ymax>{y + h}</ymax></bndbox></object>")
        (kit / "Annotations" / f"{stem}.xml").write_text(
            f"<annotation><filename>{name}</filename><size><width>{width}</width><height>{height}</height><depth>3</depth>"
            f"</size><segmented>1</segmented>{objects}</annotation>")
        image = Image.fromarray(indices, "P")
        image.putpalette([(i * 37) % 256 for i in range(768)])
        image.save(kit / "SegmentationObject" / f"{stem}.png")
        masks[name] = indices
    (kit / "ImageSets" / "Main" / "train.txt").write_text("".join(f"{pathlib.Path(name).stem}\n" for name in sizes))

    expected = {}
    for _, target in torchvision.datasets.VOCDetection(str(root), year="2012", image_set="train"):
        boxes = [(one["name"], *(float(one["bndbox"][edge]) for edge in ("xmin", "ymin", "xmax", "ymax")), one["difficult"])
                 for one in target["annotation"]["object"]]
        expected[target["annotation"]["filename"]] = [(name, x1 - 1, y1 - 1, x2 - x1 + 1, y2 - y1 + 1, int(difficult))
                                                      for name, x1, y1, x2, y2, difficult in boxes]
    coco = json.loads(sets.convert(kit, "voc").read_text())
    names = {one["id"]: one["name"] for one in coco["categories"]}
    masked = 0
    for image in coco["images"]:
        found = [one for one in coco["annotations"] if one["image_id"] == image["id"]]
        ours = [(names[one["category_id"]], *one["bbox"], one["iscrowd"]) for one in found]
        assert ours == expected[image["file_name"]], (ours, expected[image["file_name"]])
        for i, one in enumerate(found):
            if "segmentation" not in one:
                continue
            mask = pycocotools.mask.decode(one["segmentation"])
            assert np.array_equal(mask, masks[image["file_name"]] == i + 1)
            assert one["area"] == mask.sum()
            masked += 1
    assert masked > 5, masked


def globox_yolo(sets):
    for style in (None, True, False):
        root = sets.make("yolo")
        annotations = sets.annotations(sets.images(root / "images" / "train", 20, ".jpg"))
        (root / "labels").mkdir()
        annotations.save_yolo_v5(root / "labels" / "train", label_to_id={name: i for i, name in enumerate(CLASSES)})
        names = CLASSES if style is None else dict(enumerate(CLASSES))
        text = yaml.safe_dump({"path": "../datasets/x", "train": "images/train", "names": names, "nc": 4, "test": None},
                              default_flow_style=style, allow_unicode=style is None, width=10**6)
        (root / "data.yaml").write_text(text, encoding="utf-8")
        path = sets.convert(root, "yolo")
        require_equal(listed(globox.AnnotationSet.from_coco(path)), listed(annotations))
        assert [one["name"] for one in json.loads(path.read_text())["categories"]] == CLASSES


def globox_segments(sets):
    root = sets.make("segments")
    sizes = sets.images(root / "images", 10)
    (root / "labels").mkdir()
    (root / "data.yaml").write_text(yaml.safe_dump({"train": "images", "names": list("0123")}))
    for name in sizes:
        lines = [" ".join([str(sets.rng.randrange(4)), *(f"{sets.rng.random():.6f}" for _ in range(2 * sets.rng.randint(3, 9)))])
                 for _ in range(sets.rng.randint(1, 5))]
        (root / "labels" / name).with_suffix(".txt").write_text("\n".join(lines))
    expected = globox.AnnotationSet.from_yolo_seg(root / "labels", image_folder=root / "images", relative=True)
    require_equal(listed(globox.AnnotationSet.from_coco(sets.convert(root, "yolo"))), listed(expected))


def globox_labelme(sets):
    root = sets.make("labelme")
    annotations = sets.annotations(sets.images(root, 20, ".jpg"))
    annotations.save_labelme(root)
    require_equal(listed(globox.AnnotationSet.from_coco(sets.convert(root, "labelme"))), listed(annotations))


def labelme_masks(sets):
    """Polygons, in groups too, and masks, against pycocotools and NumPy."""
    root = sets.make("masks")
    expected = {}
    for name, (width, height) in sets.images(root, 10).items():
        polygons = [[[round(sets.rng.uniform(0, side), 3) for side in (width, height)] for _ in range(sets.rng.randint(3, 8))]
                    for _ in range(3)]
        w, h = sets.rng.randint(1, 15), sets.rng.randint(1, 15)
        x, y = sets.rng.randint(0, width - w), sets.rng.randint(0, height - h)
        bits = np.random.default_rng(width).random((h, w)) < 0.5
        bits[0, 0] = True
        file = io.BytesIO()
        Image.fromarray(bits).save(file, "PNG")
        shapes = [{"label": "cat", "points": points, "group_id": group, "shape_type": "polygon", "flags": {}}
                  for points, group in zip(polygons, (5, None, 5))]
        shapes.append({"label": "dog", "points": [[x, y], [x + w - 1, y + h - 1]], "group_id": None, "shape_type": "mask",
                       "flags": {}, "mask": base64.b64encode(file.getvalue()).decode()})
        (root / name).with_suffix(".json").write_text(json.dumps({
            "version": "5.4.1", "flags": {}, "shapes": shapes, "imagePath": name,
            "imageData": base64.b64encode((root / name).read_bytes()).decode(), "imageHeight": height, "imageWidth": width}))
        mask = np.zeros((height, width), np.uint8)
        mask[y:y + h, x:x + w] = bits
        flat = [[number for point in points for number in point] for points in polygons]
        rles = [pycocotools.mask.merge(pycocotools.mask.frPyObjects(parts, height, width))
                for parts in ([flat[0], flat[2]], [flat[1]])]
        expected[name] = [*map(pycocotools.mask.decode, rles), mask]
    coco = json.loads(sets.convert(root, "labelme").read_text())
    for image in coco["images"]:
        found = [one for one in coco["annotations"] if one["image_id"] == image["id"]]
        assert len(found) == 3, found
        for one, mask in zip(found, expected[image["file_name"]]):
            parts = one["segmentation"]
            if isinstance(parts, list):
                parts = pycocotools.mask.merge(pycocotools.mask.frPyObjects(parts, image["height"], image["width"]))
            assert np.array_equal(pycocotools.mask.decode(parts), mask)
            assert one["area"] == mask.sum(), (one, mask.sum())


def main(program):
    checks = [globox_voc, torchvision_voc, globox_yolo, globox_segments, globox_labelme, labelme_masks]
    with tempfile.TemporaryDirectory() as folder:
        sets = Sets(program, folder)
        for check in checks:
            check(sets)
            print(f"{check.__name__}: equal")


if __name__ == "__main__":
    main(*sys.argv[1:])
