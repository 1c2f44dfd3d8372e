#!/usr/bin/env python3
"""Runs the commands that README.md and the first tutorials show, in their order, on tiny data.

    commands_test.py --source DIR --bin DIR

A command keeps its flags; flags that are appended make it small (the last value of a flag holds). Commands of shell
scripts, cmake and servers are left out: scripts/quickstart*.sh run for minutes. Exit status 1 where a command fails or
its output lacks what is expected.
"""

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

from documents_test import prose_and_code

SMALL = ["--device=cpu", "--model=resnet18_v1.5", "--image_size=32", "--batch_size=4", "--num_warmup_batches=0"]
# Appended by page and by the words that a command begins with; the first match holds.
APPENDED = {
    "README.md": {
        "dtrain-data imagenet": ["--shards", "2"],
        "dtrain-cnn-benchmarks": [*SMALL, "--num_classes=3", "--num_epochs=1"],
    },
    "docs/quickstart.md": {
        "dtrain-data synthesize": ["--train", "48", "--validation", "16", "--shards", "1", "--image_size", "32"],
        "dtrain-cnn-benchmarks": [*SMALL, "--num_epochs=1", "--save_model_steps=6"],
        "dtrain-report": [],
    },
    "docs/detection.md": {
        "dtrain-data shapes": ["--images", "24", "--validation", "8"],
        "dtrain-mask-rcnn train": ["--device=cpu", "--num_batches=2", "--display_every=1"],
    },
}
EXPECTED = {"README.md": "Accuracy @ 1 = ", "docs/quickstart.md": "Accuracy @ 1 = ", "docs/detection.md": "step 2/2"}


def commands_of(page):
    """Commands of our programs in a page's code blocks, as words, without the path of the program."""
    for line in prose_and_code(page.read_text(encoding="utf-8"))[1]:
        if line.startswith("build/bin/dtrain-"):
            yield shlex.split(line.removeprefix("build/bin/"), comments=True)


def appended(rules, words):
    for start, flags in rules.items():
        if words[:len(start.split())] == start.split():
            return flags
    return None


def run(folder, words):
    done = subprocess.run([folder / words[0], *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, env=dict(os.environ, OMP_WAIT_POLICY="passive"))
    if done.returncode:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def draw_images(folder):
    """IMAGES/train/<class>/ and IMAGES/val/<class>/ with drawn JPEGs."""
    run(folder, ["dtrain-data", "shapes", "--output", "drawn", "--images", "24", "--validation", "8", "--seed", "1"])
    for split in ("train", "val"):
        for at, path in enumerate(sorted(pathlib.Path("drawn", split).glob("*.jpg"))):
            target = pathlib.Path("IMAGES", split, "ab"[at % 2])
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def check_page(source, folder, name):
    output, ran = "", 0
    for words in commands_of(source / name):
        flags = appended(APPENDED[name], words)
        if flags is None or "--load=resnet50_coco.safetensors" in words:  # needs data that is not here
            continue
        output += run(folder, words + flags)
        ran += 1
    if EXPECTED[name] not in output:
        sys.exit(f"{name}: the output has no '{EXPECTED[name]}':\n{output[-3000:]}")
    print(f"{name}: {ran} commands")
    return ran


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--source", "--bin"):
        parser.add_argument(name, required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    source, folder = arguments.source.resolve(), arguments.bin.resolve()
    ran = []
    for name in APPENDED:
        with tempfile.TemporaryDirectory() as place:
            os.chdir(place)
            pathlib.Path("scripts").symlink_to(source / "scripts")
            if name == "README.md":
                draw_images(folder)
            ran.append(check_page(source, folder, name))
            os.chdir("/")
    if any(count < least for count, least in zip(ran, (3, 4, 2))):
        sys.exit(f"{ran} commands were run, expected at least [3, 4, 2]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
