#!/usr/bin/env python3
"""Checks that mpirun and dtrain's programs accept the commands of the rendered overlays, without training.

    commands_test.py --source DIR --bin DIR

Each program gets its flags with an additional flag that prints the resulting settings, or with a missing data set,
which is an error after the flags have been parsed. Overlays that replace an older document have its flags, in the order
of the translation table.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import lint

TRANSLATED = ("resnet50-synthetic", "resnet50-fsx", "resnet50-efs", "vgg16-imagenet-2x4", "vgg16-imagenet-4x8",
              "tf-cnn-benchmarks", "tf-cnn-benchmarks-nfs", "tf-cnn-forward", "tf-cnn-ps", "resnet50-cpu-multi-nfs",
              "resnet50-cpu-multi-pvc", "resnet50-cpu-single-nfs", "resnet50-cpu-single-pvc")
NO_DATA = 2


def commands(documents):
    """For each pod with a program of dtrain: the arguments before the program, the program, and its flags."""
    for document in documents:
        job = lint.Job(document, documents)
        for pod in job.pods:
            words = [pod.expanded(word).replace("{ranks}", "1").replace("{micro_steps}", "1") for word in pod.args]
            program, _ = pod.program
            if program is None:
                continue
            at = words.index(program)
            # A script that passes a command to the program; its own arguments become flags.
            inner = re.search(program + r" ([a-z]+) \"\$@\"", words[2]) if words[0] == "bash" and at == 3 else None
            yield words[:at], program, ([inner[1]] if inner else []) + words[at + 1:]


def without_ranks(flags):
    """There is no launcher here, so one rank runs."""
    return ["--expect_ranks=1" if flag.startswith("--expect_ranks=") else flag for flag in flags]


def probe(program, flags, scratch):
    """Arguments that make a program check its flags, and the exit code for valid flags."""
    flags = without_ranks(flags)
    # Supported precisions depend on the GPU.
    if program == "dtrain-train-imagenet":
        return ["--nofp16" if flag == "--fp16" else flag for flag in flags] + ["--print_config"], 0
    if program == "dtrain-launch-benchmark":
        return ["--dry-run", *flags], 0
    if program == "dtrain-mask-rcnn":
        flags = [flag for flag in flags if flag != "--use_fp16"]
        return [flags[0], "--device=cpu", *flags[1:]], NO_DATA
    if program == "dtrain-data":
        return [*flags, "--output", str(scratch / "no-output")], NO_DATA
    if program == "dtrain-info":
        return ["--help"], 0
    return [*flags, "--print_config"], 0


def check_program(folder, program, flags, scratch):
    arguments, wanted = probe(program, flags, scratch)
    done = subprocess.run([folder / program, *arguments], capture_output=True, text=True, check=False,
                          env=dict(os.environ, OMP_NUM_THREADS="1"))
    said = (done.stdout + done.stderr).strip()
    if done.returncode != wanted:
        yield f"{program} {' '.join(flags)}: exit code {done.returncode}, expected {wanted}: {said[-500:]}"
    if program == "dtrain-info":
        for flag in flags:
            if not re.search(rf"^  {flag.partition('=')[0]} ", done.stdout, re.MULTILINE):
                yield f"dtrain-info has no flag {flag}"


def check_mpirun(options, folder):
    """mpirun accepts the options: it starts `true`."""
    options = [str(folder / "logs") if before == "-output-filename" else "1" if before == "-np" else word
               for before, word in zip(["", *options], options)]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(["mpirun", *options, "true"], capture_output=True, text=True, check=False,
                          env=dict(os.environ, **root))
    if done.returncode != 0:
        yield f"mpirun {' '.join(options)}: exit code {done.returncode}: {done.stderr[-500:]}"


def rows(path):
    """Arguments of our program in each row of the translation table."""
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = line.split(" | ")
        if line.startswith("| `") and len(cells) > 1:
            yield from (found[1].split() for found in re.finditer(r"`(?:[^`]* )?(dtrain-[^`]*)`", cells[1]))


def holds(words, row):
    """True if the words of a row occur in a command in this order; variables match any value. The folder of the data
    set is a parameter of overlays, which set_test.py tests."""
    left = iter(words)
    row = ["--data_dir=$DATASET_DIR" if word.startswith("--data_dir=") else word for word in row]
    patterns = [re.sub(r"\\\$(\\\(\w+\\\)|\w+)", ".*", re.escape(word)) for word in row]
    return all(any(re.fullmatch(pattern, word) for word in left) for pattern in patterns)


def check_translation(name, found, table):
    for _, program, flags in found:
        if any(row[0] == program and holds(flags, row[1:]) for row in table):
            return
    yield f"{name}: no row of the translation table has its flags"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--source", "--bin"):
        parser.add_argument(name, required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    table = list(rows(arguments.source / "docs/translation.md"))
    faults = []
    seen = set()
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for path in sorted((arguments.source / "k8s/rendered").glob("*.yaml")):
            found = list(commands(lint.read(path)))
            if path.stem in TRANSLATED:
                faults += check_translation(path.stem, found, table)
            for before, program, flags in found:
                faults += [f"{path.stem}: {fault}" for fault in check_program(arguments.bin, program, flags, scratch)]
                options = tuple(before[before.index("dtrain-mpirun") + 1:]) if "dtrain-mpirun" in before else ()
                key = tuple(word for word in options if not word.startswith("/"))
                if options and key not in seen:
                    seen.add(key)
                    faults += [f"{path.stem}: {fault}" for fault in check_mpirun(list(options), scratch)]
    for fault in faults:
        print(fault)
    print(f"{len(seen)} forms of mpirun, {len(table)} rows of translations")
    return 1 if faults or not table else 0


if __name__ == "__main__":
    sys.exit(main())
