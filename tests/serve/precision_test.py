#!/usr/bin/env python3
"""dtrain-serve in bf16 and int8: its predictions equal dtrain-classify's; reloads keep the precision."""
import base64
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from serving import BIN, Server, jpeg, train, wait_for

PREDICT, IMAGE = "/v1/models/default:predict", "/predictions/default?top=10"


def by_class(ranking):
    return {one["class"]: one["probability"] for one in ranking}


class Precision(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        cls.trained, cls.calibration = cls.folder / "trained", cls.folder / "c.json"
        cls.other = cls.folder / "other"
        train(cls.trained, 1)
        train(cls.other, 1, "--tf_random_seed=5")
        cls.run_program("dtrain-data", "synthesize", f"--output={cls.folder / 'data'}", "--train=8", "--validation=2",
                        "--classes=10", "--first_label=0", "--shards=1", "--validation_shards=1", "--image_size=40")
        cls.run_program("dtrain-classify", "calibrate", f"--weights={cls.weights(cls.trained)}", "--num_images=8",
                        f"--data_dir={cls.folder / 'data'}", f"--calibration={cls.calibration}", "--num_intra_threads=1")
        cls.int8 = ("--precision=int8", f"--calibration={cls.calibration}")
        cls.pictures = []
        for i in range(3):
            cls.pictures.append(cls.folder / f"{i}.jpg")
            cls.pictures[-1].write_bytes(jpeg(i))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @staticmethod
    def weights(folder, step=1):
        return folder / f"checkpoints/step-{step}/model.safetensors"

    @staticmethod
    def run_program(name, *arguments):
        return subprocess.run([BIN / name, *arguments], check=True, capture_output=True, text=True).stdout

    def classified(self, weights, *flags):
        out = self.run_program("dtrain-classify", "--json", "--top=10", "--device=cpu", "--num_intra_threads=1",
                               f"--weights={weights}", *flags, *self.pictures)
        return [by_class(json.loads(line)["top"]) for line in out.splitlines()]

    @staticmethod
    def server(*flags):
        return Server("--device=cpu", *flags)

    def served(self, server, path=IMAGE):
        answers = [server.ask("PUT", path, picture.read_bytes()) for picture in self.pictures]
        self.assertEqual([status for status, _ in answers], [200] * len(answers))
        return [by_class(json.loads(body)) for _, body in answers]

    def expect_near(self, found, expected, bound):
        for one, other in zip(found, expected, strict=True):
            self.assertEqual(one.keys(), other.keys())
            for label, probability in other.items():
                self.assertAlmostEqual(one[label], probability, delta=bound)

    def expect_refusal(self, code, words, *flags):
        result = subprocess.run([BIN / "dtrain-serve", "--port=0", "--device=cpu", *flags], capture_output=True,
                                text=True, timeout=200)
        said = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
        self.assertEqual((result.returncode, len(said)), (code, 1), result.stderr)
        self.assertIn(words, said[0])

    def precisions(self, server):
        return [one["precision"] for one in json.loads(server.ask("GET", "/models")[1])["models"]]

    def test_answers_as_classify_does(self):
        floats = self.classified(self.weights(self.trained))
        for name, flags in (("fp32", ()), ("bf16", ("--precision=bf16",)), ("int8", self.int8)):
            expected = self.classified(self.weights(self.trained), *flags)
            with self.server(f"--train_dir={self.trained}", *flags) as server:
                self.assertEqual(self.served(server), expected, name)
                self.assertEqual(self.precisions(server), [name])
                instances = [{"b64": base64.b64encode(picture.read_bytes()).decode()} for picture in self.pictures]
                status, body = server.ask("POST", f"{PREDICT}?top=10", json.dumps({"instances": instances}))
                self.assertEqual(status, 200, body)
                # A batch may use another algorithm than a single image.
                self.expect_near([by_class(one) for one in json.loads(body)["predictions"]], expected,
                                 0.01 if name == "bf16" else 1e-5)
            if name != "fp32":
                self.assertNotEqual(expected, floats)
                self.expect_near(expected, floats, 0.05)

    def test_keeps_the_precision_at_new_checkpoints(self):
        folder = self.folder / "growing"
        shutil.copytree(self.trained, folder)
        with self.server(f"--train_dir={folder}", *self.int8) as server:
            first = self.served(server)
            train(folder, 2)
            wait_for("new version", lambda: b'"version":"2"' in server.ask("GET", "/v1/models/default")[1])
            second, floats = self.served(server), self.classified(self.weights(folder, 2))
            self.assertEqual(self.precisions(server), ["int8"])
            self.assertNotEqual(second, first)
            self.assertNotEqual(second, floats)
            self.expect_near(second, floats, 0.05)
            self.assertEqual(server.stop(), 0)
            said = server.errors.splitlines()
            self.assertEqual(sum("calibrated on other weights than" in line for line in said), 1, said)

    def test_refuses_a_calibration_of_another_model(self):
        folder = self.folder / "another"
        folder.mkdir()
        words = "c.json: a calibration for model resnet20, expected resnet32"
        with self.server(f"--train_dir={folder}", *self.int8) as server:
            train(folder, 1, "--model=resnet32")
            wait_for("refusal", lambda: b"failed_checkpoints_total 1" in server.ask("GET", "/metrics")[1])
            self.assertEqual(server.ask("GET", "/readyz")[0], 503)
            self.assertEqual(server.stop(), 0)
            self.assertEqual(len(server.errors.splitlines()), 1)
            self.assertIn(words, server.errors)
        self.expect_refusal(1, words, f"--train_dir={folder}", *self.int8)
        self.expect_refusal(1, words, f"--weights={self.weights(folder)}", *self.int8)

    def test_compares_two_models_in_one_precision(self):
        with self.server(f"--train_dir={self.trained}", f"--compare={self.other}", *self.int8) as server:
            self.assertEqual(self.precisions(server), ["int8", "int8"])
            second = self.served(server, "/predictions/compare?top=10")
            floats = self.classified(self.weights(self.other))
            self.assertNotEqual(second, floats)
            self.expect_near(second, floats, 0.1)

    def test_refuses_what_does_not_go_together(self):
        trained = f"--train_dir={self.trained}"
        cut = self.folder / "cut.json"
        cut.write_text(self.calibration.read_text()[:200])
        self.expect_refusal(1, "--precision=int8 and --calibration", trained, "--precision=int8")
        self.expect_refusal(1, "--precision=int8 and --calibration", trained, f"--calibration={self.calibration}")
        self.expect_refusal(1, "expected one of fp32|bf16|int8", trained, "--precision=int4")
        self.expect_refusal(2, "nowhere", trained, "--precision=int8", f"--calibration={self.folder}/nowhere")
        self.expect_refusal(2, "cut.json", trained, "--precision=int8", f"--calibration={cut}")
        self.expect_refusal(1, "a calibration of other weights", f"--weights={self.weights(self.other)}", *self.int8)
        self.expect_refusal(1, "a calibration of other weights", trained, f"--compare={self.weights(self.other)}",
                            *self.int8)


if __name__ == "__main__":
    unittest.main()
