#!/usr/bin/env python3
"""Upgrades: what older versions wrote is used with the programs of this tree, and what they were called still is.

    upgrade_test.py [TEST...]

Each folder N.M has the fixtures of a version, see make_fixtures.py. DTRAIN_BIN_DIR holds the programs under test.

A resumed training must have the bits that the old version had itself, in the machine and build of the record; elsewhere
its numbers must be near, as in fixed_runs. That holds for models whose kernels have not changed. The CHANGELOG names
changes of results, such as that of batch norm after 0.1, so no such model is here. All else is exact everywhere.
"""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import files_of_version as files
from files_of_version import fixed_runs

PROGRAMS = pathlib.Path(os.environ["DTRAIN_BIN_DIR"])
SOURCE = files.HERE.parent.parent
VERSIONS = sorted(path for path in files.HERE.iterdir() if re.fullmatch(r"\d+\.\d+", path.name))


def expected_of(version):
    return json.loads((version / "expected.json").read_text())


def names_of(version, kind):
    return (version / f"{kind}.txt").read_text().split("\n")[:-1]


def copy_of(version, folder):
    shutil.copytree(version / "files", folder, symlinks=True, dirs_exist_ok=True)
    return folder


def expect_near(expected, found, version, what):
    """Equal numbers; near ones where something else than the programs differs from the record's machine or build."""
    if found == expected:
        return
    reason = fixed_runs.why_not_exact(fixed_runs.Build(PROGRAMS), expected_of(version)["signature"])
    assert reason and all(fixed_runs.near(a, b) for a, b in zip(expected, found, strict=True)), \
        f"{what}: expected {expected}, found {found} ({reason or 'on such a machine'})"
    print(f"SKIPPED: the bits of fixed runs: {reason}")


def test_training(version, folder):
    """A train_dir is continued by its config.toml, with the same bits, and log, metrics and events keep their names."""
    copy_of(version, folder)
    metrics, train_dir = folder / "metrics.jsonl", folder / "train"
    had = {"metrics": files.keys_of_metrics(metrics), "tags": files.tags_of_events(train_dir)}
    lines = metrics.read_text().splitlines()
    for path in train_dir.glob("events.out.tfevents.*"):
        path.unlink()
    expected = expected_of(version)["training"]
    found = files.continue_training(PROGRAMS, folder)
    assert [step for step, _ in found["log"]] == [str(step) for step in range(files.STEPS + 1, files.LATER + 1)]
    expect_near([loss for _, loss in expected["log"]], [loss for _, loss in found["log"]], version, "losses")
    expect_near(expected["checkpoint"], found["checkpoint"], version, "a checkpoint")
    assert not list(train_dir.glob("checkpoints/*superseded*")), "the old checkpoint is set aside"
    grown = metrics.read_text().splitlines()
    assert grown[:len(lines)] == lines, "metrics of the old version are lost"
    metrics.write_text("\n".join(grown[len(lines):]) + "\n")
    has = {"metrics": files.keys_of_metrics(metrics), "tags": files.tags_of_events(train_dir)}
    for kind, names in had.items():
        assert names, kind
        missing = names - has[kind]
        assert not missing, f"{kind} that {version.name} wrote are missing: {sorted(missing)}"


def test_weights(version, folder):
    """Weights of a checkpoint start another run, and .npz weights convert back to the same bits."""
    copy_of(version, folder)
    out, _ = files.run(PROGRAMS, folder, "dtrain-cnn-benchmarks", *files.TRAINING, f"--num_batches={files.STEPS}",
                       "--train_dir=other", f"--weights=train/checkpoints/step-{files.STEPS}")
    assert f"{files.STEPS}\timages/sec" in out, out
    files.run(PROGRAMS, folder, "dtrain-mask-rcnn", "convert", "--from=weights.npz", "--to=again.safetensors")
    expected, found = (files.tensors_of(folder / name) for name in ("weights.safetensors", "again.safetensors"))
    assert found == expected, f"expected {expected}, found {found}"


def test_shards(version, folder):
    """The checksums in the manifest of shards are verified, and their indices are used: a rebuilt one is another file."""
    copy_of(version, folder)
    indices = sorted((folder / "data").glob(".*.dtidx"))
    assert indices
    for path in indices:
        modified, = struct.unpack_from("<q", path.read_bytes(), 16)
        os.utime(path.with_name(path.name[1:].removesuffix(".dtidx")), ns=(modified, modified))
    before = {path: (path.stat().st_ino, path.read_bytes()) for path in indices}
    files.run(PROGRAMS, folder, "dtrain-data", "verify", "data")
    files.run(PROGRAMS, folder, "dtrain-data", "index", "data")
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in indices} == before, "indices are made again"
    shard = folder / "data" / "train-00000-of-00002"
    shard.write_bytes((folder / "data" / "train-00001-of-00002").read_bytes())
    out, errors = files.run(PROGRAMS, folder, "dtrain-data", "verify", "data", code=2)
    assert "train-00000-of-00002" in out + errors, out + errors


def test_calibration(version, folder):
    """A calibration gives the same logits in int8."""
    copy_of(version, folder)
    expect_near(expected_of(version)["logits"], files.classify(PROGRAMS, folder), version, "logits")


def test_detector_config(version, folder):
    """A detector's configuration file has the same meaning: the identity that a checkpoint must have to be resumed."""
    copy_of(version, folder)
    expected, found = expected_of(version)["detector"], files.train_detector(PROGRAMS, folder)
    differing = {key: (value, found.get(key)) for key, value in expected.items() if found.get(key) != value}
    assert not differing, f"expected and found: {differing}"


def test_benchmark_plan(version, folder):
    """A benchmark plan is accepted, with the manifests that it names."""
    done = subprocess.run([SOURCE / "k8s/benchmark/run.sh", "--check", version / "files/benchmark.plan"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def test_names(version, folder):
    """Flags and their choices, environment variables, keys, metrics, kustomizations and chart values still exist. A flag
    may have become a former name, which the CHANGELOG lists."""
    del folder
    now = files.names_of_flags(PROGRAMS)
    changes = (SOURCE / "CHANGELOG.md").read_text()
    has = files.names_of_sources(SOURCE)
    has["flags"] = {name for name, is_former in now.items() if not is_former or f"`{name.split()[-1]}`" in changes}
    for kind, names in has.items():
        old = set(names_of(version, kind))
        assert old, kind
        if kind == "flags":  # former_name() converts the choices of a former name where it must
            old -= {name for name in old if "=" in name and now.get(name.partition("=")[0])}
        missing = sorted(old - names)
        assert not missing, (f"{kind} of {version.name} that do not exist or, renamed, are not in the CHANGELOG: "
                             f"{', '.join(missing)}; a renamed flag needs former_name()")


def crc32c(text):
    crc = 0xffffffff
    for byte in text.encode():
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return f"{crc ^ 0xffffffff:08x}"


def test_newer_checkpoint(version, folder):
    """A checkpoint of a later format is refused with the way out, not passed over for an older one."""
    checkpoints = copy_of(version, folder) / "train" / "checkpoints"
    old, newer = checkpoints / f"step-{files.STEPS}", checkpoints / f"step-{files.STEPS + 1}"
    shutil.copytree(old, newer)
    manifest = json.loads((newer / "MANIFEST.json").read_text())
    del manifest["checksum"]
    manifest |= {"format": 99, "version": "9.8.7"}
    manifest["checksum"] = crc32c(json.dumps(manifest, indent=2))
    (newer / "MANIFEST.json").write_text(json.dumps(manifest, indent=2) + "\n")
    names = sorted(path.name for path in checkpoints.iterdir())
    line = f"step-{files.STEPS + 1}/MANIFEST.json: checkpoint format 99, written by dtrain 9.8.7; dtrain "
    for more in ((), ("--eval",), (f"--resume=train/checkpoints/{newer.name}", "--train_dir=other"),
                 ("--weights=train", "--train_dir=other")):
        _, errors = files.run(PROGRAMS, folder, "dtrain-cnn-benchmarks", *files.CONTINUING, *more, code=5)
        assert line in errors and "resume with the version that wrote it" in errors, errors
    assert sorted(path.name for path in checkpoints.iterdir()) == names, "checkpoints are changed"
    _, errors = files.run(PROGRAMS, folder, "dtrain-report", "train", "--output=report.html")
    assert line in errors + (folder / "report.html").read_text(), errors
    # The way out: its weights, in another train_dir.
    files.run(PROGRAMS, folder, "dtrain-cnn-benchmarks", *files.TRAINING, f"--num_batches={files.STEPS}",
              f"--weights=train/checkpoints/{newer.name}/model.safetensors", "--train_dir=other")


def test_damaged_number(version, folder):
    """A format number that its checksum contradicts is damage: the older checkpoint is continued."""
    checkpoints = copy_of(version, folder) / "train" / "checkpoints"
    newer = checkpoints / f"step-{files.STEPS + 1}"
    shutil.copytree(checkpoints / f"step-{files.STEPS}", newer)
    manifest = newer / "MANIFEST.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 9'))
    out, errors = files.run(PROGRAMS, folder, "dtrain-cnn-benchmarks", *files.CONTINUING)
    assert f"Restored step {files.STEPS} from" in out and "MANIFEST.json: damaged: checksum mismatch" in errors, errors


def test_newer_files(version, folder):
    """So are a calibration and a manifest of shards."""
    copy_of(version, folder)
    calibration, shards = folder / "calibration.json", folder / "data" / ".shards"
    calibration.write_text(calibration.read_text().replace("calibration 1", "calibration 99"))
    _, errors = files.run(PROGRAMS, folder, "dtrain-classify", *files.LENET, *files.CLASSIFYING, code=2)
    assert "calibration.json: calibration format 99; dtrain " in errors and "dtrain-classify calibrate" in errors, errors
    text = shards.read_text().replace("version 1", "version 99").rpartition("crc32c ")[0]
    shards.write_text(f"{text}crc32c {crc32c(text)}\n")
    out, _ = files.run(PROGRAMS, folder, "dtrain-data", "verify", "data", code=2)
    assert ".shards: shard manifest format 99; dtrain " in out and "convert the data set again" in out, out


TESTS = {name: test for name, test in globals().items() if name.startswith("test_")}


def main():
    assert VERSIONS
    for name in sys.argv[1:] or TESTS:
        for version in VERSIONS:
            with tempfile.TemporaryDirectory() as folder:
                TESTS[name](version, pathlib.Path(folder))


if __name__ == "__main__":
    main()
