#!/usr/bin/env python3
"""dtrain-serve with a Mask R-CNN: its predictions equal dtrain-mask-rcnn's."""
import base64
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from serving import BIN, Image, Server

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tiny_detector

IMAGE = "/predictions/mask_rcnn"


def pixels(mask):
    """Pixel set of COCO's compressed RLE, as column-major indices."""
    runs, text, at = [], mask["counts"], 0
    while at < len(text):
        value, shift = 0, 0
        while True:
            part = ord(text[at]) - 48
            at += 1
            value |= (part & 31) << shift
            shift += 5
            if not part & 32:
                value -= (part & 16 != 0) << shift
                break
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
    found, begin = set(), 0
    for i, run in enumerate(runs):
        if i % 2:
            found.update(range(begin, begin + run))
        begin += run
    assert begin == mask["size"][0] * mask["size"][1]
    return found


class Detect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        data, cls.trained = folder / "data", folder / "trained"
        tiny_detector.make(BIN, data, cls.trained, 20)
        cls.images = sorted(data.glob("val*/*"))
        cls.annotations = next(data.glob("annotations/*val*"))
        cls.server = Server(f"--train_dir={cls.trained}", "--name=mask_rcnn", "--device=cpu",
                            f"--annotations={cls.annotations}", "--max_image_megapixels=1")
        out = subprocess.run([BIN / "dtrain-mask-rcnn", "predict", f"--load={cls.weights()}", "--device=cpu", "--json",
                              f"--annotations={cls.annotations}", *cls.images, "--config", *tiny_detector.KEYS],
                             check=True, capture_output=True, text=True).stdout
        cls.expected = [json.loads(line) for line in out.splitlines()]

    @classmethod
    def weights(cls):
        return cls.trained / "checkpoints/step-20/model.safetensors"

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0
        cls.folder.cleanup()

    def compare(self, answer, expected, least=0.0):
        wanted = [one for one in expected["detections"] if one["score"] >= least]
        self.assertEqual((answer["width"], answer["height"]), (expected["width"], expected["height"]))
        self.assertEqual(len(answer["detections"]), len(wanted))
        for one, other in zip(answer["detections"], wanted):
            self.assertEqual(one["category_id"], other["category_id"])
            self.assertAlmostEqual(one["score"], other["score"], places=5)
            for a, b in zip(one["bbox"], other["bbox"], strict=True):
                self.assertAlmostEqual(a, b, places=2)
            self.assertEqual(pixels(one["segmentation"]), pixels(other["segmentation"]))

    def test_answers_as_the_trainer_predicts(self):
        self.assertTrue(any(one["detections"] for one in self.expected), "the detector finds nothing")
        for image, expected in zip(self.images, self.expected, strict=True):
            status, body = self.server.ask("PUT", IMAGE, image.read_bytes())
            self.assertEqual(status, 200, body)
            self.compare(json.loads(body), expected)
        instances = [{"b64": base64.b64encode(image.read_bytes()).decode()} for image in self.images]
        status, body = self.server.ask("POST", "/v1/models/mask_rcnn:predict", json.dumps({"instances": instances}))
        self.assertEqual(status, 200, body)
        answer = json.loads(body)
        self.assertEqual(answer["version"], 20)
        for one, expected in zip(answer["predictions"], self.expected, strict=True):
            self.compare(one, expected)

    def test_leaves_out_what_scores_less(self):
        expected = self.expected[0]
        scores = sorted(one["score"] for one in expected["detections"])
        least = (scores[len(scores) // 2 - 1] + scores[len(scores) // 2]) / 2
        body = self.server.ask("PUT", f"{IMAGE}?score_threshold={least:.9f}", self.images[0].read_bytes())[1]
        answer = json.loads(body)
        self.assertTrue(0 < len(answer["detections"]) < len(scores))
        self.compare(answer, expected, least)
        for wrong in ("x", "2", "-1", "nan", ""):
            self.assertEqual(self.server.ask("PUT", f"{IMAGE}?score_threshold={wrong}", self.images[0].read_bytes())[0], 400)

    def test_names_categories(self):
        names = {one["id"]: one["name"] for one in json.loads(self.annotations.read_text())["categories"]}
        answer = json.loads(self.server.ask("PUT", IMAGE, self.images[0].read_bytes())[1])
        for one in answer["detections"]:
            self.assertEqual(one["category"], names[one["category_id"]])
        about = json.loads(self.server.ask("GET", "/models")[1])["models"][0]
        self.assertEqual({one["id"]: one["name"] for one in about["categories"]}, names)

    def test_refuses_bad_images_and_goes_on(self):
        whole = self.images[0].read_bytes()
        for body in (b"", b"no image", whole[:20]):
            self.assertEqual(self.server.ask("PUT", IMAGE, body)[0], 400)
        levels = json.dumps({"instances": [[[[0, 0, 0]]]]})
        status, body = self.server.ask("POST", "/v1/models/mask_rcnn:predict", levels)
        self.assertEqual(status, 400)
        self.assertIn(b"detector", body)
        self.assertEqual(self.server.ask("PUT", IMAGE, whole)[0], 200)

    def test_turns_images_where_asked(self):
        exif, tagged = Image.Exif(), io.BytesIO()
        exif[0x0112] = 6
        Image.new("RGB", (96, 64)).save(tagged, "JPEG", exif=exif)
        sizes = {}
        with Server(f"--train_dir={self.trained}", "--name=mask_rcnn", "--device=cpu",
                    "--exif_orientation=apply") as turning:
            for name, server in ("turning", turning), ("recorded", self.server):
                answer = json.loads(server.ask("PUT", IMAGE, tagged.getvalue())[1])
                sizes[name] = answer["width"], answer["height"]
        self.assertEqual(sizes, {"turning": (64, 96), "recorded": (96, 64)})

    def test_refuses_precisions_of_classifiers(self):
        for model in (f"--train_dir={self.trained}", f"--weights={self.weights()}"):
            program = subprocess.run([BIN / "dtrain-serve", "--port=0", "--device=cpu", "--precision=bf16", model],
                                     capture_output=True, text=True, timeout=200)
            self.assertEqual((program.returncode, len(program.stderr.splitlines())), (1, 1), program.stderr)
            self.assertIn("--precision=bf16: for image classifiers only", program.stderr)

    def test_refuses_images_with_too_many_pixels(self):
        large = Path(self.folder.name) / "large.png"
        Image.new("RGB", (1001, 1000)).save(large)
        status, body = self.server.ask("PUT", IMAGE, large.read_bytes())
        self.assertEqual(status, 400)
        self.assertIn(b"1001", body)


if __name__ == "__main__":
    unittest.main()
