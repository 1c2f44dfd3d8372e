#!/usr/bin/env python3
"""Writes the fixtures of a version: files that its programs wrote, what they computed from them, and all names that
they know.

    make_fixtures.py BIN_DIR OUT

At a release: `make_fixtures.py build-ci/bin tests/upgrade/0.2`. BIN_DIR belongs to a build tree, whose sources are read
as well. The plan file of 0.1, gpu.plans, was written by the sample of tests/cuda/plan_file_test.cpp: real ones depend on
the GPU.
"""

import argparse
import json
import pathlib
import shutil
import struct
import tempfile

import files_of_version as files
from files_of_version import fixed_runs


def write_weights(path):
    """A few tensors of a detector, by torchvision's names."""
    tensors = {"rpn.head.cls_logits.bias": 3, "roi_heads.box_predictor.cls_score.bias": 91}
    header, data = {}, b""
    for name, count in tensors.items():
        values = struct.pack(f"<{count}f", *(i / 7 for i in range(count)))
        header[name] = {"dtype": "F32", "shape": [count], "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_files(programs, folder):
    """Runs the programs in an empty folder; the detector's files are too large to be kept."""
    files.run(programs, folder, "dtrain-data", "synthesize", "--output=data", "--classes=4", "--image_size=8",
              "--train=24", "--validation=8", "--shards=2", "--seed=1")
    files.run(programs, folder, "dtrain-data", "index", "data")
    log, _ = files.run(programs, folder, "dtrain-cnn-benchmarks", *files.TRAINING, files.METRICS,
                       f"--num_batches={files.STEPS}")
    (folder / "train" / "run.log").write_text(log)
    record = (folder / "data" / "validation-00000-of-00001").read_bytes()
    begin = record.index(b"\xff\xd8")
    (folder / "image.jpg").write_bytes(record[begin:record.index(b"\xff\xd9", begin) + 2])
    files.run(programs, folder, "dtrain-classify", "calibrate", *files.LENET, "--data_dir=data", "--num_images=8",
              "--calibration=calibration.json")
    write_weights(folder / "weights.safetensors")
    files.run(programs, folder, "dtrain-mask-rcnn", "convert", "--from=weights.safetensors", "--to=weights.npz")
    (folder / "detector.config").write_text("# A small detector.\n" + "\n".join(files.DETECTOR_KEYS) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", metavar="BIN_DIR", type=pathlib.Path)
    parser.add_argument("out", metavar="OUT", type=pathlib.Path)
    asked = parser.parse_args()
    programs = asked.programs.resolve()
    build = fixed_runs.Build(programs)
    source = pathlib.Path(build.option("CMAKE_HOME_DIRECTORY"))
    asked.out.mkdir(parents=True)  # fixtures of a version are never replaced
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_files(programs, folder)
        kept = asked.out / "files"
        shutil.copytree(folder, kept, symlinks=True, ignore=shutil.ignore_patterns("cache"))
        expected = {"signature": build.signature(), "training": files.continue_training(programs, folder),
                    "logits": files.classify(programs, folder), "detector": files.train_detector(programs, folder)}
    shutil.copy(source / "k8s/benchmark/plan.example", kept / "benchmark.plan")
    (asked.out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    names = files.names_of_sources(source)
    names["flags"] = [name for name, is_former in files.names_of_flags(programs).items() if not is_former]
    for kind, found in names.items():
        (asked.out / f"{kind}.txt").write_text("".join(f"{name}\n" for name in sorted(found)))


if __name__ == "__main__":
    main()
