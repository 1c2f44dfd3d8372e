"""Reports of real trainings in headless Chromium: a classifier that was killed and resumed, a detector with evaluation,
and a run of 100,000 steps. Checks: no request leaves the page, the script reports no error, the keyboard reaches every
curve, all focusable elements and images have accessible names, light and dark mode differ, and a phone's width
suffices.

Usage: page_test.py [FOLDER]   keeps the reports and screenshots in FOLDER
Exit codes: 0 passed, 1 failed, 77 a tool is missing.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import browser
import tiny_detector

BIN = pathlib.Path(os.environ.get("DTRAIN_BIN_DIR", pathlib.Path(__file__).resolve().parents[2] / "build" / "bin"))
HOSTILE = "</script><script>window.forged = 1</script><img src=x onerror='window.forged = 2'>"


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def run(program, *arguments):
    done = subprocess.run([BIN / program, *arguments], capture_output=True, text=True)
    check(done.returncode == 0, f"{program} {arguments}: {done.returncode}, {done.stderr}")
    return done.stdout


def newest(train_dir):
    steps = (train_dir / "checkpoints").glob("step-*")
    return max(steps, key=lambda path: int(path.name.split("-")[1])) / "model.safetensors"


def train_classifier(folder):
    """A run that is killed, resumed and stopped."""
    data, train_dir = folder / "data", folder / "classifier"
    run("dtrain-data", "synthesize", "--output", data, "--classes=3", "--image_size=24", "--train=40", "--validation=10",
        "--shards=2", "--seed=1")
    train_dir.mkdir()
    metrics = train_dir / "metrics.jsonl"
    command = [BIN / "dtrain-cnn-benchmarks", "--model=resnet20", "--data_name=imagenet", "--image_size=16",
               "--num_classes=4", "--batch_size=4", f"--data_dir={data}", "--num_batches=1000000",
               "--num_warmup_batches=2", "--display_every=1", "--init_learning_rate=.1", "--save_model_steps=4",
               f"--train_dir={train_dir}", f"--metrics_file={metrics}", "--eval_during_training_every_n_steps=20"]
    with open(train_dir / "train.log", "w") as log:
        for lines, number in ((30, signal.SIGKILL), (90, signal.SIGTERM)):
            with subprocess.Popen([*command, f"--timeline={train_dir}/timeline-{lines}.json"], stdout=log, stderr=log) as program:
                while not metrics.exists() or metrics.read_text().count("\n") <= lines:
                    check(program.poll() is None, f"the classifier ended: {(train_dir / 'train.log').read_text()}")
                    time.sleep(0.1)
                program.send_signal(number)
    return train_dir


def train_detector(folder):
    data, train_dir = folder / "shapes", folder / "detector"
    run("dtrain-data", "shapes", "--output", data, "--images=16", "--validation=8", "--size=96x64")
    run("dtrain-mask-rcnn", "train", f"--data_dir={data}", f"--train_dir={train_dir}", "--device=cpu", "--batch_size=2",
        "--display_every=1", "--save_model_steps=10", "--num_batches=20", f"--metrics_file={train_dir}/metrics.csv",
        "--config", *tiny_detector.KEYS)
    run("dtrain-mask-rcnn", "eval", f"--load={newest(train_dir)}", f"--data_dir={data}", "--device=cpu",
        f"--gallery={train_dir}/gallery", "--config", *tiny_detector.KEYS)
    return train_dir


def classify(train_dir, images):
    lines = ""
    for label, image in enumerate(images):
        lines += run("dtrain-classify", f"--weights={newest(train_dir)}", "--json", f"--label={label % 3}",
                     "--device=cpu", "--top=3", image)
    (train_dir / "predictions.jsonl").write_text(lines)


def write_long_run(folder):
    """A run with 100,000 steps and three ranks with hostile names."""
    with open(folder / "long.jsonl", "w") as file:
        for step in range(1, 100_001):
            row = {"step": step, "loss": 7 / (1 + step / 1e4) + step % 7 / 10, "learning_rate": 0.1, "images_per_sec": 300,
                   "forward_ms": step % 13, "backward_ms": 20 + step % 17, HOSTILE: step % 5,
                   "rank_0_ms": 30, "rank_1_ms": 30 + step % 20_000 / 1000, "rank_2_ms": 25}
            file.write(json.dumps(row) + "\n")
        file.write('{"step":100001,"lo')
    return folder / "long.jsonl"


def check_names(page):
    """All focusable elements and all images have accessible names."""
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    seen = set()
    for node in nodes:
        if node.get("ignored"):
            continue
        role = node["role"]["value"]
        focusable = any(one["name"] == "focusable" and one["value"]["value"] for one in node.get("properties", []))
        if role in ("image", "img", "slider", "button", "link", "region") or (focusable and role != "RootWebArea"):
            check(node.get("name", {}).get("value", "").strip() or role == "figure", f"a {role} has no name: {node}")
            seen.add(role)
    return seen


def check_keyboard(page):
    page.value("document.querySelector('.plot').focus()")
    values = "document.activeElement.parentElement.querySelector('.values').textContent"
    texts = []
    for key in ("End", "ArrowLeft", "Home", "ArrowRight"):
        page.key(key)
        texts.append(page.value(values))
        check(page.value("document.activeElement.getAttribute('aria-valuetext')") == texts[-1], f"the value after {key}")
    check(len(set(texts)) == 4 and all(text.startswith("Step ") for text in texts), f"values at steps: {texts}")
    switches = page.value("document.querySelectorAll('.legend button').length")
    check(switches > 0, "no legend")
    page.value("document.querySelector('.legend button').focus()")
    for hidden in (1, 0):
        page.key("Enter")
        check(page.value("document.querySelectorAll('.curve.off').length") == hidden, f"curves that are hidden, not {hidden}")


def check_looks(page, path, pictures):
    grounds = set()
    for scheme in ("light", "dark"):
        for width in (1400, 390):
            page.scheme(scheme)
            page.size(width, 900)
            page.open(path)
            grounds.add(page.value("getComputedStyle(document.body).backgroundColor"))
            check(page.value("document.documentElement.scrollWidth") <= width, f"{path.name} is wider than {width}")
            if pictures:
                page.size(width, min(9000, page.value("document.documentElement.scrollHeight")))
                page.picture(pictures / f"{path.stem}-{scheme}-{width}.png", False)
    check(len(grounds) == 2, f"light and dark: {grounds}")


def check_page(page, path, pictures, sections):
    check_looks(page, path, pictures)
    found = page.value("[...document.querySelectorAll('section')].map(one => one.id)")
    check(set(sections) <= set(found), f"{path.name} has {found}, expected {sections}")
    broken = "[...document.images].filter(one => { one.loading = 'eager'; return one.complete && one.naturalWidth === 0; }).length"
    page.value("Promise.all([...document.images].map(one => { one.loading = 'eager'; return one.decode(); })).then(() => 1)")
    check(page.value(broken) == 0, "images that do not decode")
    check(page.value("typeof window.forged") == "undefined", "text of a run was executed as a script")
    check(not page.requests and not page.errors, f"requests {page.requests}, errors {page.errors}")
    return check_names(page)


def main():
    if browser.find() is None:
        print("SKIPPED: there is no chromium-headless-shell or chromium")
        sys.exit(77)
    kept = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        classifier, detector = train_classifier(folder), train_detector(folder)
        classify(classifier, sorted((folder / "shapes" / "val").iterdir())[:6])
        long_run = write_long_run(folder)
        both, long = ((kept or folder) / f"{name}.html" for name in ("both", "long"))
        run("dtrain-report", classifier, detector, f"--output={both}", f"--title={HOSTILE}")
        run("dtrain-report", long_run, f"--output={long}")
        check(long.stat().st_size < 500_000, f"100,000 steps take {long.stat().st_size} bytes")
        with browser.Browser() as page:
            everything = ("summary", "curves", "step-parts", "timeline", "events", "checkpoints", "configuration", "images")
            roles = check_page(page, both, kept, everything)
            check({"slider", "button", "link", "image"} <= roles or {"slider", "button", "link", "img"} <= roles,
                  f"roles with names: {roles}")
            check_keyboard(page)
            text = page.value("document.body.innerText")
            for part in ("the previous process ended without a message", "Restored step", "stopped on request", "Mask AP",
                         "of 6 with a label are right"):
                check(part in text, f"the report does not contain: {part}")
            check_page(page, long, kept, ("summary", "notices", "curves", "step-parts", "other", "timeline"))
            check("rank 2: steps" in page.value("document.querySelector('#timeline svg').textContent"), "the ranks' timeline")
            nodes = page.value("document.querySelectorAll('*').length")
            check(nodes < 1500, f"100,000 steps take {nodes} elements")
            page.value("document.querySelector('.plot').focus()")
            page.key("End")
            check("Step 100000" in page.value("document.querySelector('.values').textContent"), "the last step")
            loaded = page.value("performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"reports passed; 100,000 steps load in {loaded:.0f} ms")


main()
