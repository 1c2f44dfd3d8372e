#!/usr/bin/env python3
"""Writes annotations with the writers of other tools: make_labels.py SHAPES FOLDER TOOL...

SHAPES is made by `dtrain-data shapes --output=SHAPES --images=8 --size=96x72 --validation=3 --quality=70`; its images and
objects are the contents of all files. FOLDER gets a data set per writer, and FOLDER/expected.json what was put in.
The committed files were written by labelme 6.3.1, labelImg 1.8.6, ultralytics 8.4.190, datumaro 1.13.12 and
supervision 0.31.2, with Python 3.11. labelme and ultralytics need other versions of NumPy than datumaro: give the tools of
each virtual environment in a call of its own. labelme imports onnxruntime, which its writer does not use.
"""

import itertools
import json
import math
import pathlib
import shutil
import sys
import tempfile

import numpy as np
from PIL import Image, ImageDraw

WIDTH, HEIGHT = 96, 72
CLASSES = ["circle", "traffic light", "déjà vu", "star", "ring"]
# Names with a space, letters beyond ASCII and an extension in upper case; the third is rotated by EXIF.
IMAGES = {4: "photo 1.jpg", 5: "Süß.JPG", 1: "rotated.jpg", 7: "empty.jpg"}
ROTATED = bytes.fromhex("ffe10022" "457869660000" "49492a0008000000" "0100" "120103000100000006000000" "00000000")  # EXIF


class Scene:
    """An image and its objects: class, and polygons in pixels."""

    def __init__(self, name, content):
        self.name, self.content, self.objects = name, content, []
        self.width, self.height = WIDTH, HEIGHT

    def rotate(self):
        self.content = self.content[:2] + ROTATED + self.content[2:]
        self.width, self.height = HEIGHT, WIDTH
        self.objects = [(label, [[number for x, y in zip(part[::2], part[1::2]) for number in (HEIGHT - y, x)]
                                 for part in parts]) for label, parts in self.objects]

    def save(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self.name).write_bytes(self.content)
        return folder / self.name


def box_of(parts):
    xs, ys = [x for part in parts for x in part[::2]], [y for part in parts for y in part[1::2]]
    return [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]


def whole_box(parts):  # as corners on whole pixels
    x, y, w, h = box_of(parts)
    return [math.floor(x), math.floor(y), math.ceil(x + w), math.ceil(y + h)]


def scenes_of(shapes):
    scenes = []
    for number, name in IMAGES.items():
        split = "train" if number < 6 else "val"
        coco = json.loads((shapes / "annotations" / f"instances_{split}.json").read_text())
        scene = Scene(name, (shapes / split / f"{number:012}.jpg").read_bytes())
        for one in coco["annotations"] if name != "empty.jpg" else []:
            if one["image_id"] == number and isinstance(one["segmentation"], list):
                scene.objects.append((CLASSES[one["category_id"] - 1], one["segmentation"]))
        scenes.append(scene)
    # An object of two parts.
    scenes[1].objects.append(("ring", [[3.5, 4.25, 12.5, 4.25, 12.5, 10.75], [70.5, 5.5, 80.25, 5.5, 75.5, 13.25]]))
    scenes[2].rotate()
    return scenes


class Sets:
    def __init__(self, shapes, folder):
        self.scenes, self.folder = scenes_of(shapes), folder
        self.path = folder / "expected.json"
        self.expected = json.loads(self.path.read_text()) if self.path.exists() else {}

    def new(self, name):
        shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / name).mkdir(parents=True)
        return self.folder / name

    def expect(self, name, flags, images):
        """images: by file name, the objects with class, box and optionally polygons or a mask."""
        self.expected[name] = {"flags": flags, "images": images}

    def finish(self):
        text = json.dumps(self.expected, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        self.path.write_text(text.replace('"],"', '"],\n"').replace('},"', '},\n"') + "\n", encoding="utf-8")


def objects_of(scene, polygons=False):
    return [{"class": label, "box": box_of(parts), **({"polygons": parts} if polygons else {})}
            for label, parts in scene.objects]


def coco_of(scenes):
    coco = {"images": [], "annotations": [], "categories": [{"id": i + 1, "name": name} for i, name in enumerate(CLASSES)]}
    for scene in scenes:
        image = len(coco["images"]) + 1
        coco["images"].append({"id": image, "file_name": scene.name, "width": scene.width, "height": scene.height})
        for label, parts in scene.objects:
            coco["annotations"].append({
                "id": len(coco["annotations"]) + 1, "image_id": image, "category_id": CLASSES.index(label) + 1, "iscrowd": 0,
                "bbox": box_of(parts), "area": 1, "segmentation": parts})
    return coco


def labelme(sets):
    """All shapes; the image embedded, beside, and named by a path of Windows."""
    import types
    sys.modules["onnxruntime"] = types.ModuleType("onnxruntime")
    from labelme import LabelFile, utils

    root, shapes, expected = sets.new("labelme"), [], {}
    plain, parts, rotated, empty = sets.scenes
    shape = lambda label, kind, points, **more: {  # noqa: E731
        "label": label, "points": points, "group_id": None, "description": "", "shape_type": kind, "flags": {}, "mask": None,
        **more}
    pairs = lambda part: [list(point) for point in zip(part[::2], part[1::2])]  # noqa: E731
    save = lambda name, scene, shapes, path, data=None: LabelFile().save(  # noqa: E731
        str(root / name), shapes, path, scene.height, scene.width, image_data=data, flags={"checked": True})

    # Rectangles between opposite corners in any order, and polygons; the image only in the file.
    for i, (label, polygons) in enumerate(plain.objects):
        x, y, w, h = box_of(polygons)
        corners = [[x, y], [x + w, y + h]] if i else [[x + w, y], [x, y + h]]
        shapes.append(shape(label, "rectangle", corners) if i < 2 else shape(label, "polygon", pairs(polygons[0])))
    shapes.append(shape("star", "line", [[1, 2], [30, 40]]))
    plain.save(root)
    save("photo 1.json", plain, shapes, "photo 1.jpg", LabelFile.load_image_file(str(root / "photo 1.jpg")))
    (root / "photo 1.jpg").unlink()
    expected["photo 1.jpg"] = objects_of(plain)

    # Groups, an oriented rectangle, a circle and a mask; the image file beside.
    parts.save(root / "images")
    shapes, expected["Süß.JPG"] = [], []
    for label, polygons in parts.objects:
        group = 7 if len(polygons) > 1 else None
        shapes += [shape(label, "polygon", pairs(part), group_id=group) for part in polygons]
        expected["Süß.JPG"].append({"class": label, "box": box_of(polygons), "polygons": polygons})
    corners = [40.5, 10.5, 60.5, 20.5, 55.5, 30.5, 35.5, 20.5]
    shapes.append(shape("traffic light", "oriented_rectangle", pairs(corners)))
    expected["Süß.JPG"].append({"class": "traffic light", "box": box_of([corners]), "polygons": [corners]})
    shapes.append(shape("circle", "circle", [[48.0, 36.0], [48.0, 56.0]]))
    expected["Süß.JPG"].append({"class": "circle", "box": [28, 16, 40, 40], "tolerance": 1.0})
    image = Image.new("L", (WIDTH, HEIGHT))
    ImageDraw.Draw(image).polygon([5, 50, 20, 45, 30, 60, 8, 66], fill=1)
    mask = np.array(image, bool)
    ys, xs = np.where(mask)
    x1, y1, x2, y2 = (int(value) for value in (xs.min(), ys.min(), xs.max(), ys.max()))
    data = utils.img_arr_to_b64(mask[y1:y2 + 1, x1:x2 + 1].astype(np.uint8))
    shapes.append(shape("déjà vu", "mask", [[x1, y1], [x2, y2]], mask=data))
    expected["Süß.JPG"].append({"class": "déjà vu", "box": [x1, y1, x2 - x1 + 1, y2 - y1 + 1], "area": int(mask.sum())})
    save("Süß.json", parts, shapes, "images\\Süß.JPG")

    # labelme shows and embeds the image after rotation.
    rotated.save(root)
    shapes = [shape(label, "polygon", pairs(polygons[0])) for label, polygons in rotated.objects]
    save("rotated.json", rotated, shapes, "rotated.jpg")
    expected["rotated.jpg"] = objects_of(rotated, polygons=True)
    empty.save(root)
    save("empty.json", empty, [], "empty.jpg", LabelFile.load_image_file(str(root / "empty.jpg")))
    expected["empty.jpg"] = []
    sets.expect("labelme", ["--from=labelme"], {"train": expected})


def labelimg(sets):
    """Its VOC and YOLO files, beside the images; it does not rotate images."""
    from libs.pascal_voc_io import PascalVocWriter
    from libs.yolo_io import YOLOWriter

    scenes = [scene for scene in sets.scenes if scene.name != "rotated.jpg"]
    voc, yolo = sets.new("labelimg_voc"), sets.new("labelimg_yolo")
    expected, names = {}, list(CLASSES)
    for scene in scenes:
        writers = []
        for root, writer in ((voc, PascalVocWriter), (yolo, YOLOWriter)):
            scene.save(root)
            writers.append(writer("pictures", scene.name, (scene.height, scene.width, 3),
                                  local_img_path="C:\\Users\\me\\pictures\\" + scene.name))
            for label, parts in scene.objects:
                writers[-1].add_bnd_box(*whole_box(parts), label, 0)
        target = str(pathlib.Path(scene.name).with_suffix(""))
        writers[0].save(target_file=str(voc / (target + ".xml")))
        writers[1].save(target_file=str(yolo / (target + ".txt")), class_list=names)
        boxes = [(label, whole_box(parts)) for label, parts in scene.objects]
        expected[scene.name] = [{"class": label, "box": [x1, y1, x2 - x1, y2 - y1]} for label, (x1, y1, x2, y2) in boxes]
    sets.expect("labelimg_voc", ["--from=voc", "--voc_boxes=zero_based"], {"train": expected})
    sets.expect("labelimg_yolo", ["--from=yolo"], {"train": expected})


def ultralytics(sets):
    """convert_coco, for boxes and for polygons, and its writer of data.yaml."""
    from ultralytics.data.converter import convert_coco, merge_multi_segment
    from ultralytics.utils import YAML

    for kind, splits in {"boxes": {"train": sets.scenes[:2], "val": sets.scenes[2:]},
                         "segments": {"train": sets.scenes}}.items():
        name = f"ultralytics_{kind}"
        root = sets.new(name)
        root.rmdir()
        expected = {}
        with tempfile.TemporaryDirectory() as folder:
            for split, scenes in splits.items():
                (pathlib.Path(folder) / f"instances_{split}.json").write_text(json.dumps(coco_of(scenes)))
            convert_coco(folder, str(root), use_segments=kind == "segments", cls91to80=False)
        for split, scenes in splits.items():
            for scene in scenes:
                scene.save(root / "images" / split)
            expected[split] = {scene.name: objects_of(scene) for scene in scenes}
            if kind == "segments":
                # It joins the parts of an object by lines.
                for scene in scenes:
                    for one, (_, parts) in zip(expected[split][scene.name], scene.objects):
                        joined = np.concatenate(merge_multi_segment(parts)).ravel().tolist() if len(parts) > 1 else parts[0]
                        one["polygons"] = [joined]
        folders = {split: f"images/{split}" for split in splits}
        YAML.save(root / "data.yaml", {"path": f"/datasets/{name}", **folders, "names": dict(enumerate(CLASSES))})
        sets.expect(name, ["--from=yolo"], expected)


def datumaro(sets):
    """The library of CVAT's exports: COCO, VOC, darknet's and Ultralytics' YOLO."""
    import datumaro as dm

    for name, kind, only_boxes, options in (
            ("datumaro_coco", "coco_instances", False, {"save_media": True}),
            ("datumaro_voc", "voc", True, {"save_media": True}),
            ("datumaro_voc_one_based", "voc", True, {"save_media": True, "coordinate_mode": "voc-one-based"}),
            ("datumaro_yolo", "yolo", True, {"save_media": True}),
            ("datumaro_yolo_ultralytics", "yolo_ultralytics", True, {"save_media": True})):
        root = sets.new(name)
        items, expected, ids = [], {"train": {}, "val": {}}, itertools.count(1)
        with tempfile.TemporaryDirectory() as folder:
            for i, scene in enumerate(sets.scenes):
                path = scene.save(pathlib.Path(folder))
                split = "train" if i < 2 else "val"
                annotations = []
                for label, parts in scene.objects:
                    common = {"label": CLASSES.index(label), "id": next(ids)}
                    common["group"] = common["id"]
                    shapes = (dm.Polygon(part, **common) for part in parts)
                    annotations += [dm.Bbox(*box_of(parts), **common)] if only_boxes else shapes
                items.append(dm.DatasetItem(scene.name.rpartition(".")[0], subset=split, annotations=annotations,
                                            media=dm.Image.from_file(path=str(path), size=(scene.height, scene.width))))
                expected[split][scene.name] = objects_of(scene, polygons=not only_boxes)
                if name == "datumaro_voc_one_based":
                    for one, (_, parts) in zip(expected[split][scene.name], scene.objects):
                        x1, y1, x2, y2 = whole_box(parts)
                        one["box"] = [x1, y1, x2 - x1, y2 - y1]
            dm.Dataset.from_iterable(items, categories=CLASSES).export(str(root), kind, **options)
        flags = {"datumaro_coco": [], "datumaro_voc": ["--from=voc", "--voc_boxes=zero_based"],
                 "datumaro_voc_one_based": ["--from=voc"]}.get(name, ["--from=yolo"])
        sets.expect(name, flags, expected)


def supervision(sets):
    """The library of Roboflow: COCO in Roboflow's layout, YOLO, VOC and labelme."""
    import supervision as sv

    with tempfile.TemporaryDirectory() as folder:
        annotations, paths = {}, []
        for scene in sets.scenes:
            paths.append(str(scene.save(pathlib.Path(folder))))
            boxes = [box_of(parts) for _, parts in scene.objects]
            annotations[paths[-1]] = sv.Detections(
                xyxy=np.array([[x, y, x + w, y + h] for x, y, w, h in boxes]),
                class_id=np.array([CLASSES.index(label) for label, _ in scene.objects])) if boxes else sv.Detections.empty()
        data = sv.DetectionDataset(classes=CLASSES, images=paths, annotations=annotations)
        coco, yolo, voc, label = (sets.new(f"supervision_{kind}") for kind in ("coco", "yolo", "voc", "labelme"))
        train = coco / "train"
        data.as_coco(str(train), str(train / "_annotations.coco.json"))
        data.as_yolo(str(yolo / "train" / "images"), str(yolo / "train" / "labels"), str(yolo / "data.yaml"))
        data.as_pascal_voc(str(voc / "train"), str(voc / "train"))
        data.as_labelme(str(label), str(label))
    expected = {scene.name: objects_of(scene) for scene in sets.scenes}
    for kind, flags in (("coco", []), ("yolo", ["--from=yolo"]), ("labelme", ["--from=labelme"])):
        sets.expect(f"supervision_{kind}", flags, {"train": expected})
    rounded = {}
    for scene in sets.scenes:
        rounded[scene.name] = []
        for one_label, parts in scene.objects:
            x, y, w, h = box_of(parts)
            x1, y1 = round(x + 1) - 1, round(y + 1) - 1
            rounded[scene.name].append({"class": one_label, "box": [x1, y1, round(x + w) - x1, round(y + h) - y1]})
    sets.expect("supervision_voc", ["--from=voc"], {"train": rounded})


def main(shapes, folder, *tools):
    sets = Sets(pathlib.Path(shapes), pathlib.Path(folder))
    for tool in tools:
        globals()[tool](sets)
    sets.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
