#!/usr/bin/env python3
"""Attacks on a dtrain-serve with a Mask R-CNN: images, parameters, clients, weights. After each attack another client
must get the same response as before. `hostile_detect_test.py WORD` runs attacks with the word in their names. With
DTRAIN_SANITIZED slow attacks are skipped.
"""
import base64
import concurrent.futures
import http.client
import json
import math
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import hostile_images as images
from detect_target import IMAGE, NAMES, PREDICT, Target, check
from serving import BIN, Image, Server, wait_for

ATTACKS = []


def attack(name, takes_long=False):
    def add(function):
        if not takes_long or "DTRAIN_SANITIZED" not in os.environ:
            ATTACKS.append((name, function))
        return function
    return add


# Images.
@attack("an image of one pixel")
def _(t):
    t.answered(images.encoded(images.scene(1, 1), "PNG"), (1, 1))


@attack("very narrow images")
def _(t):
    for size in ((1, 60_000), (60_000, 1), (3, 5000)):
        t.answered(images.encoded(images.scene(*size), "PNG"), size)


for form in ("PNG", "JPEG", "GIF", "WebP", "BMP", "TIFF"):
    @attack(f"a {form} with gigapixels in its header")
    def _(t, form=form):
        t.grows_by(64, lambda: t.refused(images.gigapixels(form)))


@attack("more pixels than the limit")
def _(t):
    t.refused(images.encoded(images.scene(1001, 1000), "PNG"), "1001")


@attack("a TIFF whose directories are a loop")
def _(t):
    t.answered(images.tiff(following=8), (8, 8))


@attack("a TIFF of four billion strips")
def _(t):
    t.refused(images.tiff({273: (4, (1 << 32) - 1, 200), 279: (4, (1 << 32) - 1, 200)}))


@attack("a TIFF with pixels outside of the file")
def _(t):
    status, _, body = t.ask(images.tiff({273: (4, 1, (1 << 32) - 64)}))
    check(status == 400 or b"warning" in body, f"{status}: {body[:200]}")


@attack("unusual colours")
def _(t):
    for form, mode in (("JPEG", "CMYK"), ("JPEG", "L"), ("PNG", "I;16"), ("PNG", "1"), ("PNG", "LA"), ("PNG", "P"),
                       ("WEBP", "RGBA"), ("TIFF", "CMYK"), ("TIFF", "F")):
        image = images.scene(mode="L").convert("I").convert("I;16") if mode == "I;16" else images.scene(mode=mode)
        status, _, body = t.ask(images.encoded(image, form))
        check(status == 200 or (status, mode) == (400, "F"), f"{form} {mode}: {status} {body[:200]}")


@attack("animations")
def _(t):
    still = t.answered(images.encoded(images.scene(), "PNG"), (96, 64))
    for form in ("GIF", "WEBP"):
        found = t.answered(images.animated(form), (96, 64))
        check(len(found["detections"]) == len(still["detections"]), f"{form}: the objects differ from its first frame")


@attack("a frame that is larger than its animation")
def _(t):
    t.grows_by(64, lambda: t.answered(images.apng(), (96, 64)))


@attack("invalid orientations")
def _(t):
    upright = t.answered(images.encoded(images.scene(), "JPEG"), (96, 64))
    for data in (images.oriented(0), images.oriented(9), images.oriented(65535), images.exif((0x0112, 2, 1, 6 << 24)),
                 images.exif((0x0112, 3, 1 << 30, 6)), images.exif(*[(0x0112, 3, 0, 0)] * 3000)):
        check(t.answered(data, (96, 64)) == upright, "an invalid orientation rotates the image")
    t.answered(images.oriented(6), (64, 96))


@attack("EXIF directories in a loop")
def _(t):
    t.answered(images.exif((0x8769, 4, 1, 8), (0x8825, 4, 1, 8), following=8), (96, 64))


@attack("a JPEG of a thousand scans")
def _(t):
    t.refused(images.many_scans(1000), "scans")


@attack("a PNG with a decompression bomb as text")
def _(t):
    packed = images.bomb(256)
    t.grows_by(128, lambda: t.ask(images.png_with((b"zTXt", b"a\0\0" + packed))))


@attack("a PNG with a decompression bomb as colour profile")
def _(t):
    packed = images.bomb(256)
    t.grows_by(128, lambda: t.ask(images.png_with((b"iCCP", b"a\0\0" + packed))))


@attack("a PNG with more pixels than its header states")
def _(t):
    data = bytearray(images.encoded(images.scene(), "PNG"))
    at = data.index(b"IDAT") - 4
    flood = bytes(data[:at]) + images.chunk(b"IDAT", images.bomb(256)) + images.chunk(b"IEND", b"")
    t.grows_by(64, lambda: t.ask(flood))


@attack("a polyglot of image and HTML page")
def _(t):
    data = images.encoded(images.scene(), "JPEG", comment=b"<b>harm</b>") + b"<html><b>harm</b>"
    head, _, body = t.server.raw(f"PUT {IMAGE} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
                                 f"{len(data)}\r\n\r\n".encode() + data).partition(b"\r\n\r\n")
    check(b"Content-Type: application/json" in head and b"nosniff" in head and b"harm" not in body, head)


@attack("files in unsupported formats")
def _(t):
    for data in (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", b"%PDF-1.4\n", b"\0\0\1\0\1\0\x10\x10",
                 b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", b"%!PS-Adobe-3.0 EPSF-3.0\n", b"II+\0\x08\0\0\0", b"8BPS\0\1",
                 b"push graphic-context\nfill 'url(https://127.0.0.1/|ls)'\n"):
        t.refused(data)


# Request parameters.
@attack("invalid thresholds")
def _(t):
    for least in ("nan", "-nan", "inf", "1e999", "1e-400x", "0x1p-1", "0.5,0.9", "%00", "0.5%00", "%D9%A0", "-0.1",
                  "1.1", "%20"):
        t.refused(t.good, "score_threshold", f"?score_threshold={least}")


@attack("invalid numbers of classes")
def _(t):
    for top in ("-1", "0", "1e300", "nan", "9" * 400, "1;drop"):
        t.refused(t.good, "top", f"?top={top}")


@attack("thresholds in the JSON")
def _(t):
    text = base64.b64encode(t.good).decode()
    for body in (f'{{"instances": [{{"b64": "{text}"}}], "score_threshold": NaN}}',
                 f'{{"instances": [{{"b64": "{text}", "score_threshold": -1}}]}}',
                 f'{{"instances": [{{"b64": "{text}", "b64": 5}}]}}',
                 f'{{"instances": [{{"image": {{"b64": "{text}", "max_detections": 1e9}}}}]}}'):
        t.refused(body, path=PREDICT)


@attack("damaged base64")
def _(t):
    text = base64.b64encode(t.good).decode()
    for wrong in (text[:-1], text[:400] + "\\n" + text[400:], "====" + text, text[:400] + "=" * 4 + text[404:],
                  text.replace("A", "-"), text[:401] + "\u00e9" + text[402:], "data:image/png;base64," + text, "=", ""):
        t.refused(f'{{"instances": [{{"b64": "{wrong}"}}]}}'.encode(), "instances[0]", path=PREDICT)


@attack("a bad image among good ones")
def _(t):
    for bad in (b"", b"no image", images.gigapixels("PNG"), t.good[:40]):
        t.refused(t.batch(t.good, bad, t.good), "instances[1]", path=PREDICT)


@attack("arrays in place of images")
def _(t):
    t.refused(json.dumps({"instances": [[[[0, 0, 0]] * 96] * 64]}), "a detector reads encoded images", path=PREDICT)


@attack("more images than the queue holds")
def _(t):
    t.refused(t.batch(*[t.good] * 257), "expected 1 to 256 instances", path=PREDICT)


@attack("many large images in one request", takes_long=True)
def _(t):
    large = images.encoded(Image.new("RGB", (1000, 1000)), "PNG")
    t.refused(t.batch(*[large] * 16), "pixels together", path=PREDICT)


# Clients.
@attack("large images in many requests at once", takes_long=True)
def _(t):
    large = t.batch(*[images.encoded(Image.new("RGB", (2000, 2000)), "PNG")] * 4)
    with Server(f"--weights={t.weights}", "--device=cpu", "--max_image_megapixels=4", "--request_seconds=5") as server:
        def one(_):
            try:
                return server.ask("POST", PREDICT + "?score_threshold=1", large)[0]
            except (ConnectionError, http.client.HTTPException):
                return "not done in time"

        def flood():
            with concurrent.futures.ThreadPoolExecutor(30) as pool:
                statuses = set(pool.map(one, range(30)))
            check(statuses <= {200, 503, 504, "not done in time"}, statuses)
        t.grows_by(300, flood, server)  # 30 requests of 48 MB of pixels would be 1440
        check(server.stop() == 0, server.errors)


@attack("good and bad images at once", takes_long=True)
def _(t):
    def one(i):
        if i % 2:
            return t.ask(t.good[:40 + 7 * i])[0] == 400
        return t.server.ask("PUT", IMAGE, t.good) == t.answer
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(one, range(24)))
    check(all(outcomes), outcomes)


def sent(t, image):
    """A client that sends a request and does not read the response."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.settimeout(60)
    client.connect(("127.0.0.1", t.server.port))
    client.sendall(f"PUT {IMAGE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(image)}\r\n\r\n".encode() + image)
    return client


@attack("cancelled requests")
def _(t):
    for pause in (0, 0, 0, 0.01, 0.02, 0.04):
        client = sent(t, t.good)
        time.sleep(pause)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    wait_for("empty queue", lambda: b"dtrain_serve_waiting_images 0" in t.server.ask("GET", "/metrics")[1])


@attack("clients that do not read large answers", takes_long=True)
def _(t):
    large = images.encoded(images.scene(1000, 1000), "PNG")
    status, _, body = t.ask(large)
    check(status == 200 and len(body) < 4_000_000, f"{status}, {len(body)} bytes of objects in a million pixels")
    clients = [sent(t, large) for _ in range(6)]
    begin = time.monotonic()
    t.still_serves()
    check(time.monotonic() - begin < 15, f"other clients wait for {time.monotonic() - begin:.1f} s")
    for client in clients:
        client.close()


@attack("malicious class names")
def _(t):
    categories = json.loads(t.server.ask("GET", "/models")[1])["models"][0]["categories"]
    names = [one["name"] for one in categories]
    check(names == NAMES, names)
    for one in json.loads(t.answer[1])["detections"]:
        check(one["category"] in names, one["category"][:100])


# Weights and files.
def poisoned(t, part, value):
    """Weights with `value` in all tensors whose names contain `part`."""
    data = t.weights.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    values = bytearray(data)
    for name, tensor in json.loads(data[8:begin]).items():
        if part in name and name != "__metadata__" and tensor["dtype"] == "F32":
            first, last = (begin + at for at in tensor["data_offsets"])
            values[first:last] = struct.pack("<f", value) * ((last - first) // 4)
    path = t.folder / "poisoned.safetensors"
    path.write_bytes(values)
    return path


def refuses_to_start(*flags):
    done = subprocess.run([BIN / "dtrain-serve", "--port=0", "--device=cpu", *flags], capture_output=True, text=True,
                          timeout=100)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    check(len(errors) == 1, done.stderr[-1000:])
    return done.returncode, errors[0]


@attack("non-finite weights", takes_long=True)
def _(t):
    code, error = refuses_to_start(f"--weights={poisoned(t, 'mask_fcn_logits', math.nan)}")
    check(code == 3 and "mask_fcn_logits" in error and "not finite" in error, (code, error))


@attack("weights that overflow", takes_long=True)
def _(t):
    for part in ("rpn.head.bbox", "box_predictor", "backbone"):
        with Server(f"--weights={poisoned(t, part, 1e38)}", "--device=cpu") as server:
            status, body = server.ask("PUT", IMAGE, t.good)
            check(status in (200, 500) and b"NaN" not in body and b"null" not in body, f"{part}: {status} {body[:200]}")
            check(server.ask("GET", "/healthz")[0] == 200 and server.stop() == 0, f"{part}: the server ended")


@attack("annotations of other classes than the weights")
def _(t):
    recorded = json.loads(t.annotations.read_text())
    recorded["categories"] = [{"id": i, "name": f"n{i}"} for i in range(1, 5000)]
    other = t.folder / "other.json"
    other.write_text(json.dumps(recorded))
    code, error = refuses_to_start(f"--weights={t.weights}", f"--annotations={other}")
    check(code in (1, 2), (code, error))


@attack("browsed images outside of their folder", takes_long=True)
def _(t):
    recorded = json.loads(t.annotations.read_text())
    for name in ("../../../../etc/passwd", "a/../../b", "", "x\0.jpg"):
        recorded["images"][0]["file_name"] = name
        other = t.folder / "other.json"
        other.write_text(json.dumps(recorded))
        code, error = refuses_to_start(f"--train_dir={t.trained}", f"--images={t.folder}", f"--annotations={other}")
        check(code == 2, (name, code, error))


@attack("a checkpoint with another number of classes", takes_long=True)
def _(t):
    """Requests during a reload get complete responses of either model."""
    served = t.folder / "served"
    (served / "checkpoints").mkdir(parents=True)
    subprocess.run(["cp", "-r", t.trained / "checkpoints/step-20", served / "checkpoints"], check=True)
    other = t.folder / "classifier"
    subprocess.run([BIN / "dtrain-cnn-benchmarks", "--model=trivial", "--data_name=cifar10", "--batch_size=2",
                    "--num_batches=30", "--num_warmup_batches=0", f"--train_dir={other}", "--device=cpu"], check=True,
                   capture_output=True)
    with Server(f"--train_dir={served}", "--device=cpu") as server:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(server.ask, "PUT", IMAGE, t.good) for _ in range(30)]
            (other / "checkpoints/step-30").rename(served / "checkpoints/step-30")
            for status, body in (one.result() for one in asked):
                answer = json.loads(body)
                check(status == 200 and (isinstance(answer, list) or "detections" in answer), f"{status} {body[:200]}")
        wait_for("other checkpoint", lambda: b"dtrain_serve_model_version 30" in server.ask("GET", "/metrics")[1])
        check(isinstance(json.loads(server.ask("PUT", IMAGE, t.good)[1]), list), "the classifier does not answer")
        check(server.stop() == 0, server.errors)


@attack("shutdown during detection", takes_long=True)
def _(t):
    with Server(f"--weights={t.weights}", "--device=cpu", "--drain_seconds=20") as server:
        large = images.encoded(images.scene(2000, 1500), "PNG")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(server.ask, "PUT", IMAGE, large) for _ in range(4)]
            wait_for("images that wait", lambda: b"waiting_images 0" not in server.ask("GET", "/metrics")[1])
            begin = time.monotonic()
            check(server.stop() == 0, server.errors)
            check(time.monotonic() - begin < 60, f"{time.monotonic() - begin:.1f} s until the end")
            check({one.result()[0] for one in asked} <= {200, 503, 504}, [one.result()[0] for one in asked])


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen, failed = [one for one in ATTACKS if word in one[0]], 0
    # Sanitizers quarantine freed memory, which counts as resident.
    os.environ["ASAN_OPTIONS"] = "quarantine_size_mb=1:" + os.environ.get("ASAN_OPTIONS", "")
    with tempfile.TemporaryDirectory() as folder:
        target = Target(Path(folder))
        with target.server:
            for name, function in chosen:
                try:
                    function(target)
                    target.still_serves()
                except Exception as problem:
                    failed += 1
                    print(f"FAILED {name}: {problem}")
                    if not isinstance(problem, AssertionError):
                        traceback.print_exc()
            code = target.server.stop()
    print(f"{len(chosen) - failed} of {len(chosen)} attacks were handled")
    sys.exit(1 if failed or code or not chosen else 0)


if __name__ == "__main__":
    main()
