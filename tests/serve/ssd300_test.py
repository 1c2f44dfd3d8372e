#!/usr/bin/env python3
"""dtrain-serve with an SSD300: its predictions equal an evaluation by dtrain-cnn-benchmarks."""
import json
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from serving import BIN, Image, Server

IMAGE = "/predictions/ssd300"
TRUE_OBJECTS = 80  # below COCO's limit of 100 per image and class


def make_doubtful(weights, target):
    """Writes weights of an untrained network to `target` with scaled scores, which are neither all equal nor all 1."""
    data = weights.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    values = bytearray(data)
    for name, tensor in json.loads(data[8:begin]).items():
        if re.fullmatch(r"conf\.\d\.weight", name):
            first, last = (begin + at for at in tensor["data_offsets"])
            numbers = struct.unpack(f"<{(last - first) // 4}f", values[first:last])
            values[first:last] = struct.pack(f"<{len(numbers)}f", *(0.3 * number for number in numbers))
    target.write_bytes(values)


class Ssd300(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        cls.data, cls.trained, cls.weights = cls.folder / "data", cls.folder / "trained", cls.folder / "doubtful.safetensors"
        cls.run_program("dtrain-data", "shapes", f"--output={cls.data}", "--images=4", "--validation=2", "--size=96x64")
        cls.train("--num_batches=1", f"--train_dir={cls.trained}")
        make_doubtful(cls.trained / "checkpoints/step-1/model.safetensors", cls.weights)
        cls.annotations = next(cls.data.glob("annotations/*val*"))
        cls.images = sorted(cls.data.glob("val*/*"))
        cls.server = Server("--model=ssd300", f"--weights={cls.weights}", "--device=cpu", f"--annotations={cls.annotations}")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0
        cls.temporary.cleanup()

    @staticmethod
    def run_program(name, *arguments):
        return subprocess.run([BIN / name, *arguments], check=True, capture_output=True, text=True).stdout

    @classmethod
    def train(cls, *arguments):
        return cls.run_program("dtrain-cnn-benchmarks", "--model=ssd300", "--data_name=coco", "--device=cpu", "--batch_size=1",
                               "--num_warmup_batches=0", f"--data_dir={cls.data}", *arguments)

    def answer_to(self, image):
        status, body = self.server.ask("PUT", IMAGE, image.read_bytes())
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def test_finds_what_an_evaluation_finds(self):
        # The best detections of the server become the ground truth, so that an evaluation has full recall.
        truth = json.loads(self.annotations.read_text())
        numbers, found = {one["file_name"]: one["id"] for one in truth["images"]}, []
        for image in self.images:
            answer = self.answer_to(image)
            with Image.open(image) as file:
                self.assertEqual((answer["width"], answer["height"]), file.size)
            scores = [one["score"] for one in answer["detections"]]
            self.assertEqual(scores, sorted(scores, reverse=True))
            found += [{**one, "image_id": numbers[image.name]} for one in answer["detections"]]
        self.assertGreater(len(found), TRUE_OBJECTS)
        self.assertNotIn("segmentation", found[0])
        found.sort(key=lambda one: -one["score"])
        self.assertGreater(len({one["image_id"] for one in found[:TRUE_OBJECTS]}), 1, "one image has all of the best objects")
        truth["annotations"] = [{"id": i + 1, "image_id": one["image_id"], "category_id": one["category_id"], "iscrowd": 0,
                                 "bbox": one["bbox"], "area": one["bbox"][2] * one["bbox"][3]}
                                for i, one in enumerate(found[:TRUE_OBJECTS])]
        ids = sorted({one["category_id"] for one in truth["annotations"]})
        truth["categories"] = [{"id": one, "name": f"name {one}"} for one in ids]
        other = self.folder / "other"
        (other / "annotations").mkdir(parents=True)
        for image in self.images[0].parent.iterdir():
            (other / image.parent.name).mkdir(exist_ok=True)
            (other / image.parent.name / image.name).symlink_to(image)
        (other / "annotations" / self.annotations.name).write_text(json.dumps(truth))
        log = self.train("--eval", f"--weights={self.weights}", f"--data_dir={other}")
        self.assertIn("Current AP: 1.00000", log)

    def test_names_categories_by_their_ids(self):
        names = {one["id"]: one["name"] for one in json.loads(self.annotations.read_text())["categories"]}
        about = json.loads(self.server.ask("GET", "/models")[1])["models"][0]
        self.assertTrue(about["detects"])
        known = {one["id"]: one["name"] for one in about["categories"]}
        self.assertEqual(len(known), 80)
        self.assertEqual({one: known[one] for one in names}, names)
        self.assertEqual(known[90], "category 90")
        for one in self.answer_to(self.images[0])["detections"]:
            self.assertEqual(one["category"], known[one["category_id"]])

    def test_leaves_out_what_scores_less_and_refuses_what_is_no_image(self):
        image = self.images[0].read_bytes()
        scores = [one["score"] for one in self.answer_to(self.images[0])["detections"]]
        least = (scores[2] + scores[3]) / 2
        answer = json.loads(self.server.ask("PUT", f"{IMAGE}?score_threshold={least:.9f}", image)[1])
        self.assertEqual(len(answer["detections"]), 3)
        self.assertEqual(self.server.ask("PUT", IMAGE, image[:20])[0], 400)
        self.assertEqual(self.server.ask("PUT", IMAGE, image)[0], 200)

    def test_serves_a_checkpoint_without_more_words(self):
        with Server(f"--train_dir={self.trained}", "--device=cpu") as server:
            status, body = server.ask("PUT", "/predictions/default", self.images[0].read_bytes())
            self.assertEqual(status, 200, body)
            self.assertIn("detections", json.loads(body))
            self.assertIn(b'"version":"1"', server.ask("GET", "/v1/models/default")[1])

    def test_refuses_what_does_not_go_together(self):
        categories = self.folder / "categories.json"
        categories.write_text(json.dumps({"images": [], "annotations": [], "categories": [{"id": 91, "name": "x"}]}))
        for code, line, arguments in ((1, "--image_size: for image classifiers only", ("--image_size=300",)),
                                      (1, "--precision=bf16: for image classifiers only", ("--precision=bf16",)),
                                      (1, "--exif_orientation: SSD300 sees images as they are stored",
                                       ("--exif_orientation=apply",)),
                                      (2, "category 91 (x), expected one of COCO's 80", (f"--annotations={categories}",)),
                                      (5, "does not fit", ("--model=mask_rcnn",))):
            program = subprocess.run([BIN / "dtrain-serve", "--port=0", "--device=cpu", "--model=ssd300",
                                      f"--weights={self.weights}", *arguments], capture_output=True, text=True, timeout=200)
            self.assertEqual(program.returncode, code, program.stderr)
            self.assertIn(line, program.stderr)


if __name__ == "__main__":
    unittest.main()
