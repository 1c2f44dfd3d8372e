"""Fixture for attacks: a dtrain-serve with a Mask R-CNN, and checks after each attack."""
import base64
import json
import math
import sys
import time
from pathlib import Path

from serving import BIN, Server, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tiny_detector

IMAGE, PREDICT = "/predictions/default", "/v1/models/default:predict"
NAMES = ["</script><script>alert(1)</script>", "\u202eelgnairt\0", "__proto__", "x" * 10_000, "\u2028\\\"'`&lt;"]
FLAGS = ("--device=cpu", "--max_image_megapixels=1", "--max_body_mb=4", "--request_seconds=20",
         "--exif_orientation=apply")


def check(condition, what):
    if not condition:
        raise AssertionError(what)


class Target:
    """Server, a valid image and its expected response."""

    def __init__(self, folder):
        self.folder, data, self.trained = folder, folder / "data", folder / "trained"
        tiny_detector.make(BIN, data, self.trained, 20, NAMES)
        self.weights = self.trained / "checkpoints/step-20/model.safetensors"
        self.annotations = next(data.glob("annotations/*val*"))
        self.server = Server(f"--train_dir={self.trained}", *FLAGS)
        self.good = sorted(data.glob("val*/*"))[0].read_bytes()
        self.answer = self.server.ask("PUT", IMAGE, self.good)
        check(self.answer[0] == 200 and json.loads(self.answer[1])["detections"], f"no objects: {self.answer}")

    def still_serves(self):
        def answer():
            found = self.server.ask("PUT", IMAGE, self.good)
            return found[0] not in (503, 504) and found
        found = wait_for("answer", answer)
        check(found == self.answer, f"another client's answer is {found[0]} {found[1][:200]}")

    def ask(self, data, query="", path=IMAGE):
        begin = time.monotonic()
        status, body = self.server.ask("PUT" if path == IMAGE else "POST", path + query, data)
        check(time.monotonic() - begin < 30, f"{time.monotonic() - begin:.1f} s")
        return status, json.loads(body), body

    def answered(self, data, size, query=""):
        status, answer, body = self.ask(data, query)
        check(status == 200, f"{status}: {body[:200]}")
        check((answer["width"], answer["height"]) == size, f"{answer['width']} x {answer['height']}, expected {size}")
        for one in answer["detections"]:
            x, y, width, height = one["bbox"]
            check(all(map(math.isfinite, (x, y, width, height, one["score"]))) and 0 <= one["score"] <= 1, one)
            check(x >= -0.01 and y >= -0.01 and x + width <= size[0] + 0.01 and y + height <= size[1] + 0.01, one)
            check(one["segmentation"]["size"] == [size[1], size[0]], one["segmentation"]["size"])
        return answer

    def refused(self, data, words="", query="", path=IMAGE):
        status, answer, body = self.ask(data, query, path)
        check(status == 400 and words in answer["error"], f"{status}: {body[:200]}, expected 400 with {words!r}")
        check(len(body) < 1000, f"{len(body)} bytes of a refusal")

    def grows_by(self, most, work, server=None):
        """The peak memory of the server grows by at most `most` MiB."""
        def memory():
            text = Path(f"/proc/{(server or self.server).process.pid}/status").read_text()
            return int(text.split("VmHWM:")[1].split()[0]) / 1024
        before = memory()
        work()
        check(memory() - before < most, f"{memory() - before:.0f} MiB more, expected less than {most}")

    def batch(self, *data):
        return json.dumps({"instances": [{"b64": base64.b64encode(one).decode()} for one in data]})
