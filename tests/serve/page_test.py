#!/usr/bin/env python3
"""The page of dtrain-serve in headless Chromium: file selection and drag-and-drop, top-5, token, comparison, browsing,
boxes and masks, accessible names, light and dark mode, and a phone's width.

Usage: page_test.py [FOLDER]   keeps screenshots in FOLDER
Exit codes: 0 passed, 1 failed, 77 a tool is missing.
"""
import base64
import json
import math
import sys
import tempfile
import time
from pathlib import Path

from serving import BIN, Server, jpeg, train

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import browser
import tiny_detector

TOKEN = "a-token-of-this-test-alone"


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def wait(page, expression, what):
    deadline = time.monotonic() + 120
    while not page.value(f"Boolean({expression})"):
        if time.monotonic() > deadline:
            sys.exit(f"FAILED: no {what}; the page contains {page.value('document.body.innerText')}")
        time.sleep(0.02)


def change(page, selector, value, event):
    page.value(f"(() => {{ const node = document.querySelector({json.dumps(selector)}); node.value = {json.dumps(value)};"
               f" node.dispatchEvent(new Event('{event}')); }})()")


def text(page, selector):
    return page.value(f"document.querySelector({json.dumps(selector)}).textContent")


def count(page, selector):
    return page.value(f"document.querySelectorAll({json.dumps(selector)}).length")


def give_token(page, token):
    page.value(f"document.querySelector('#token').value = '{token}'")
    page.value("document.querySelector('#access button').click()")


def check_names(page):
    for node in page.call("Accessibility.getFullAXTree")["nodes"]:
        focusable = any(one["name"] == "focusable" and one["value"]["value"] for one in node.get("properties", []))
        role = node.get("role", {}).get("value")
        if not node.get("ignored") and focusable and role != "RootWebArea":
            check(node.get("name", {}).get("value", "").strip(), f"a {role} has no name")


def keep_pictures(page, keep, name):
    for scheme, width in (("light", 1400), ("dark", 1400), ("light", 390), ("dark", 390)):
        page.scheme(scheme)
        page.size(width, 900)
        check(page.value("document.documentElement.scrollWidth") <= width, f"{name}: wider than {width} px")
        if keep:
            page.picture(f"{keep}/{name}-{scheme}-{width}.png")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.value(ground)
    page.scheme("light")
    check(page.value(ground) != dark, f"{name}: light and dark are the same")
    page.size(1400, 900)


def check_answers(page, server, header, path):
    """The top 5 classes of both models for this file are shown."""
    for name, article in (("default", 1), ("compare", 2)):
        answer = json.loads(server.ask("PUT", f"/predictions/{name}", path.read_bytes(), header)[1])
        shown = page.value(f"[...document.querySelectorAll('article:nth-child({article}) li')].map(one => one.textContent)")
        check(shown == [f"class {one['class']}: {100 * one['probability']:.2f} %" for one in answer], f"{name}: {shown}")


def try_drop(page, server, header, path):
    """Drags a file over the page and drops it, like a user."""
    drag = """(name, text) => {
        const bytes = Uint8Array.from(atob(text), one => one.charCodeAt(0)), data = new DataTransfer();
        data.items.add(new File([bytes], 'dropped.jpg', {type: 'image/jpeg'}));
        const event = new DragEvent(name, {dataTransfer: data, bubbles: true, cancelable: true});
        return !document.querySelector('#drop label').dispatchEvent(event); }"""
    content = base64.b64encode(path.read_bytes()).decode()
    for name, marked in (("dragover", True), ("dragleave", False), ("dragover", True), ("drop", False)):
        check(page.value(f"({drag})({json.dumps(name)}, {json.dumps(content)})"), f"the browser handles {name} itself")
        check(page.value("document.querySelector('#drop').classList.contains('over')") is marked, f"the mark after {name}")
    wait(page, "document.querySelectorAll('article img[alt=\"dropped.jpg\"]').length === 2", "predictions of the dropped file")
    check_answers(page, server, header, path)


# Delays the first eight requested images until four are pending; records order and concurrency.
WATCH_REQUESTS = """(() => {
    const ask = window.fetch, waiting = [];
    const seen = window.seen = {order: [], most: 0, open: new Set()};
    window.fetch = async (path, options) => {
        const image = seen.order.length < 8 && /^images\\/(\\d+)$/.exec(path);
        if (image) {
            seen.order.push(Number(image[1]));
            seen.open.add(seen.order.length);
            seen.most = Math.max(seen.most, seen.open.size);
            await new Promise(go => { if (waiting.push(go) === 4) for (const one of waiting.splice(0)) one(); });
        }
        const response = await ask(path, options);
        const last = image ? !response.ok : path.startsWith('predictions/compare');
        if (last) seen.open.delete([...seen.open][0]);
        return response;
    };
    window.stopWatching = () => { window.fetch = ask; };
})()"""


def random_image(page):
    page.value("Math.real = Math.random; Math.random = () => 0.999")  # the last one
    page.value("document.querySelector('#random').click()")
    wait(page, "document.querySelector('article img').alt === '6/one.jpg'", "a random image")
    page.value("Math.random = Math.real")


def walk_by_error(page, server, header):
    """Eight files, one of them not an image, sorted by the error of each model and by disagreement."""
    page.value(WATCH_REQUESTS)
    page.value("document.querySelector('#sort').click()")
    wait(page, "document.querySelectorAll('#images button').length === 7 && document.querySelector('[aria-current=true]')",
         "images by error")
    page.value("stopWatching()")
    check(page.value("seen.order") == list(range(8)), "images are not requested in order")
    check(page.value("seen.most") == 4, "expected at most four concurrent requests")
    failed = page.value("[...document.querySelectorAll('#images .failed')].map(one => one.textContent)")
    check(len(failed) == 1 and failed[0].startswith("3/bad.jpg: 400"), f"the file that is not an image: {failed}")
    wait(page, "document.querySelector('#message').textContent.startsWith('1 of 8 images failed: 3/bad.jpg: 400')", "the failure")
    figures = {}
    for seed in range(7):
        answers = [json.loads(server.ask("PUT", f"/predictions/{name}?top=1000", jpeg(seed), header)[1])
                   for name in ("default", "compare")]
        shares = [{one["class"]: one["probability"] for one in answer} for answer in answers]
        figures[f"{seed}/one.jpg"] = [-math.log(max(one[seed], 1e-30)) for one in shares] + [
            sum(abs(shares[0][one] - shares[1][one]) for one in shares[0]) / 2]
    orders = []
    for by in range(3):
        change(page, "#order", str(by), "change")
        wait(page, "document.querySelector('#images [aria-current=true]') === document.querySelector('#images button')",
             "the first image")
        shown = page.value("[...document.querySelectorAll('#images button')].map(one => one.textContent)")
        orders.append([one.split(": ")[0] for one in shown])
        check(orders[-1] == sorted(figures, key=lambda one: -figures[one][by]), f"the order of {shown} by figure {by}")
        for one in shown:
            name, text = one.split(": ")
            default, compare, both = (float(part.split(" ")[1]) for part in text.split(", "))
            check(all(abs(a - b) < 2e-3 for a, b in zip((default, compare, both), figures[name])), f"{one}: {figures[name]}")
    check(orders[0] != orders[1] and orders[2] not in orders[:2], f"two orders are the same: {orders}")
    check(page.value("document.querySelector('#order').labels[0].textContent") == "by the", "the label of the order")


def try_classifier(page, folder, keep):
    trained, second, images = folder / "classifier", folder / "second", folder / "images"
    train(trained, 1)
    train(second, 2, "--tf_random_seed=7")
    for seed in range(7):
        (images / str(seed)).mkdir(parents=True)
        (images / str(seed) / "one.jpg").write_bytes(jpeg(seed))
    (images / "3/bad.jpg").write_bytes(b"no image")
    with Server(f"--train_dir={trained}", f"--compare={second}", f"--images={images}", DTRAIN_SERVE_TOKEN=TOKEN) as server:
        origin = f"http://127.0.0.1:{server.port}/"
        page.open(origin)
        wait(page, "!document.querySelector('#access').hidden", "form for the token")
        give_token(page, "wrong" * 5)
        wait(page, "document.querySelector('#message').textContent.includes('rejected this token')", "rejection of the token")
        give_token(page, TOKEN)
        wait(page, "document.querySelector('#access').hidden", "acceptance of the token")
        page.choose("#file", images / "2/one.jpg")
        wait(page, "document.querySelectorAll('article').length === 2", "answers")
        header = {"Authorization": f"Bearer {TOKEN}"}
        check_answers(page, server, header, images / "2/one.jpg")
        check("ms in the server" in text(page, ".timing"), "the server's times are missing")
        check([text(page, f"article:nth-child({i}) h3") for i in (1, 2)] == ["default, step 1", "compare, step 2"], "the steps")
        try_drop(page, server, header, images / "5/one.jpg")
        random_image(page)
        walk_by_error(page, server, header)
        page.value("document.querySelector('#next').click()")
        first = page.value("document.querySelectorAll('#images button')[1].textContent")
        wait(page, f"document.querySelector('article img').alt === {json.dumps(first.split(':')[0])}", "the next image")
        check_names(page)
        keep_pictures(page, keep, "classifier")
        bad = folder / "bad.jpg"
        bad.write_bytes(b"no image")
        page.choose("#file", bad)
        wait(page, "document.querySelector('#message').textContent.startsWith('400')", "rejection of a file that is not an image")
        check(all(url.startswith((origin, "blob:")) for url in page.requests), f"requests elsewhere: {page.requests}")


def try_detector(page, folder, keep):
    data, trained = folder / "data", folder / "detector"
    tiny_detector.make(BIN, data, trained, 20)
    annotations, images = next(data.glob("annotations/*val*")), next(data.glob("val*"))
    image = sorted(images.iterdir())[0]
    with Server(f"--train_dir={trained}", "--device=cpu", f"--annotations={annotations}", f"--images={images}") as server:
        page.open(f"http://127.0.0.1:{server.port}/")
        wait(page, "!document.querySelector('#controls').hidden", "controls")
        page.choose("#file", image)
        wait(page, "document.querySelector('article')", "answer")
        objects = json.loads(server.ask("PUT", "/predictions/default", image.read_bytes())[1])["detections"]
        check(objects, "the detector finds nothing")
        scores = sorted(one["score"] for one in objects)
        for least in (0, round(scores[len(scores) // 2], 2), 1):
            change(page, "#score", str(least), "input")
            kept = [one for one in objects if one["score"] >= least]
            check(count(page, "article svg rect") == len(kept) == count(page, "article tbody tr"), f"objects from {least} on")
        change(page, "#score", "0", "input")
        # Pixels in several masks are painted once.
        painted = page.value("""(() => { const canvas = document.querySelector('article canvas');
            const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, found = [];
            for (let i = 0; i < all.length / 4; ++i)
              if (all[4 * i + 3]) found.push(i % canvas.width * canvas.height + Math.floor(i / canvas.width));
            return found; })()""")
        from detect_test import pixels
        check(set(painted) == set().union(*(pixels(one["segmentation"]) for one in objects)), "the painted masks")
        name = objects[0]["category"]
        change(page, "#category", name, "change")
        check(count(page, "article tbody tr") == sum(one["category"] == name for one in objects), f"objects of {name}")
        change(page, "#category", "", "change")
        change(page, "#score", str(round(scores[len(scores) // 2], 2)), "input")
        page.value("document.querySelector('#sort').click()")
        wait(page, "document.querySelectorAll('#images button').length === 4 && document.querySelector('[stroke-dasharray]')",
             "annotated images by error")
        check_names(page)
        keep_pictures(page, keep, "detector")


def main():
    if browser.find() is None:
        print("SKIPPED: there is no Chromium")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder, browser.Browser(1400, 900) as page:
        keep = sys.argv[1] if len(sys.argv) > 1 else None
        try_classifier(page, Path(folder), keep)
        try_detector(page, Path(folder), keep)
        check(not page.errors, f"errors of the script: {page.errors}")


main()
