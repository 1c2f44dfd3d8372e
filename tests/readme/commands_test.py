#!/usr/bin/env python3
"""Runs commands that README.md and docs/ show, on tiny data.

    commands_test.py --source DIR --bin DIR

A command keeps its flags; flags that are appended make it small (the last value of a flag holds). Left out are shell
scripts, cmake, servers, and commands whose data is not here; documents_test.py checks their flags. Exit status 1 where
a command fails, where too few are run, or where the output of a page lacks what is expected.
"""

import argparse
import dataclasses
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

from documents_test import prose_and_code


@dataclasses.dataclass
class Page:
    """Commands of a page by their first words: those that are run, in this order, with the flags to append."""

    path: str
    commands: dict[str, list[str]]
    count: int  # of the commands that have to be found
    expected: str  # in the output
    links: dict[str, str] = dataclasses.field(default_factory=dict)  # made once the glob of the target exists


SMALL = ["--device=cpu", "--model=resnet18_v1.5", "--image_size=32", "--batch_size=4", "--num_warmup_batches=0"]
RECORDS = ["--train", "48", "--validation", "16", "--shards", "1", "--image_size", "32", "--max_image_size", "40"]
CPU = ["--device=cpu"]
PAGES = [
    Page("README.md", {
        "dtrain-cnn-benchmarks": [*SMALL, "--num_epochs=1"],
    }, 2, "Accuracy @ 1 = "),
    Page("docs/image-folders.md", {
        "dtrain-cnn-benchmarks --model=resnet50_v1.5 --data_dir=IMAGES": [*SMALL, "--num_epochs=1"],
    }, 2, "Accuracy @ 1 = "),
    Page("docs/quickstart.md", {
        "dtrain-data synthesize": RECORDS[:-2],
        "dtrain-cnn-benchmarks": [*SMALL, "--num_epochs=1", "--save_model_steps=6"],
        "dtrain-report": [],
    }, 4, "Accuracy @ 1 = "),
    Page("docs/imagenet.md", {
        "dtrain-data synthesize": RECORDS,
        "dtrain-data verify": [],
        "dtrain-data resize": [],
        "dtrain-data check": [],
    }, 5, "train", {"imagenet": "drawn"}),
    Page("docs/detection.md", {
        "dtrain-data shapes": ["--images", "24", "--validation", "8"],
        "dtrain-mask-rcnn train --data_dir=shapes": [*CPU, "--num_batches=2", "--display_every=1"],
        "dtrain-mask-rcnn eval --load=RUN": CPU,
        "dtrain-mask-rcnn predict": CPU,
        "dtrain-mask-rcnn visualize": [*CPU, "--split=val", "--images=1"],
        "dtrain-mask-rcnn export": [],
        "dtrain-mask-rcnn convert": [],  # the last one replaces the weights
    }, 8, "mAP(bbox)/IoU=0.5:0.95: ", {
        "coco": "shapes", "street.jpg": "shapes/val/*.jpg", "model.safetensors": "RUN/checkpoints/*/model.safetensors",
        "W.safetensors": "RUN/checkpoints/*/model.safetensors"}),
    Page("docs/scaling.md", {"dtrain-scale --images_per_sec=7950": [], "dtrain-scale --validate": []}, 2, "512"),
]


def commands_of(page):
    """Commands of our programs in a page's code blocks, as words, without the path of the program."""
    for line in prose_and_code(page.read_text(encoding="utf-8"))[1]:
        if line.startswith("build/bin/dtrain-"):
            yield shlex.split(line.removeprefix("build/bin/"), comments=True)


def run(folder, words):
    done = subprocess.run([folder / words[0], *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, env=dict(os.environ, OMP_WAIT_POLICY="passive"))
    if done.returncode:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def draw_images(folder):
    """IMAGES/train/<class>/ and IMAGES/val/<class>/ with drawn JPEGs."""
    run(folder, ["dtrain-data", "shapes", "--output", "images", "--images", "24", "--validation", "8", "--seed", "1"])
    for split in ("train", "val"):
        for at, path in enumerate(sorted(pathlib.Path("images", split).glob("*.jpg"))):
            target = pathlib.Path("IMAGES", split, "ab"[at % 2])
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def make_links(links):
    for name, target in links.items():
        found = sorted(pathlib.Path().glob(target))
        if found and not pathlib.Path(name).exists():
            pathlib.Path(name).symlink_to(found[0])


def check_page(source, folder, page):
    lines, output, ran = list(commands_of(source / page.path)), "", 0
    for start, flags in page.commands.items():
        for words in lines:
            if words[:len(start.split())] == start.split():
                make_links(page.links)
                output += run(folder, words + flags)
                ran += 1
    print(f"{page.path}: {ran} commands")
    if ran < page.count or page.expected not in output:
        sys.exit(f"expected {page.count} commands and '{page.expected}' in their output:\n{output[-3000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--source", "--bin"):
        parser.add_argument(name, required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    source, folder = arguments.source.resolve(), arguments.bin.resolve()
    for page in PAGES:
        with tempfile.TemporaryDirectory() as place:
            os.chdir(place)
            pathlib.Path("scripts").symlink_to(source / "scripts")
            draw_images(folder)
            check_page(source, folder, page)
            os.chdir("/")


if __name__ == "__main__":
    main()
