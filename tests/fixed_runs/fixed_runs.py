#!/usr/bin/env python3
"""Golden tests: output, exit code and checkpoints of a dozen small runs of dtrain-cnn-benchmarks must equal the records
in expected/, so that refactorings are proven to change nothing.

    fixed_runs.py [RUN...]                      compares with the records; ctest runs each test separately
    fixed_runs.py --reference BIN_DIR [RUN...]  compares with the programs of BIN_DIR, bit for bit on any machine
    fixed_runs.py --record BIN_DIR [RUN...]     rewrites the records with the programs of BIN_DIR

DTRAIN_BIN_DIR holds the programs under test. Speeds, times, memory, paths, hosts and versions are masked. For stderr
only the kinds of lines are compared.

Rounding depends on the compiler, on oneDNN, on the instruction set that oneDNN uses and on the cache sizes that it
detects. Therefore every process runs with one thread and AVX2, the minimum that the programs require; signature.json
holds the remaining factors. Where they match this machine and build, checksums must be equal. Elsewhere differing
checksums are reported as skipped, and numbers may differ by TOLERANCE.
"""

import argparse
import ctypes
import difflib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "expected"
SIGNATURE = HERE / "signature.json"
CHECKPOINT = HERE / "checkpoint" / "step-4"  # made by an earlier version; recording keeps an existing one
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none")
SKIPPED = 77
# Relative, in addition to the last printed digit. With oneDNN's kernels for SSE4.1, AVX or AVX-512, which round
# differently, losses differ by at most 0.0006, and accuracies do not.
TOLERANCE = 0.002
# Variables of the environment that would affect a run.
FOREIGN = ("DTRAIN_", "HOROVOD_", "K_MPI_", "DNNL_", "ONEDNN_", "OMP_", "GOMP_")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
MASKS = (
    (r"^(dtrain: +)\S+", r"\1#"),
    (r"(?<=images/sec: )\S+", "#"),
    (r"(?<= \+/- )\S+", "#"),
    (r"(?<=jitter = )[^)]+", "#"),
    (r"[\d.]+(?= (?:ms\b|%|MiB\b|examples/sec|GFLOP/s))", "#"),
    (r"^ +rank +host .*", lambda header: " ".join(header[0].split())),
    (r"^ +(\d+) +\S+ +(\S+) +\S+ +\S+ +(MPI|NCCL)$", r"\1 # \2 # # \3"),
    (r'("version": )"[^"]+"', r'\1"#"'),
    (r'("(?:images_per_sec|slowest_rank|slowest_rank_factor|data_wait_share|seconds_left|model_flops_\w+|\w+_ms)":)'
     r"[^,}]+", r"\1#"),
)


class Build:
    """The programs of a folder of a build."""

    def __init__(self, programs):
        self.programs = pathlib.Path(programs).resolve()
        self.cache = (self.programs.parent / "CMakeCache.txt").read_text()
        self.has_faults = self.option("DTRAIN_FAULTS") == "ON"

    def option(self, name):
        return re.search(rf"^{name}:\w+=(.*)$", self.cache, re.MULTILINE)[1]

    def signature(self):
        """Factors other than flags that determine the bits of a run. Xbyak does not report cache sizes of non-Intel
        processors to oneDNN, so that all of those are alike."""
        compiler = next(self.programs.parent.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")).read_text()
        name, version = (re.search(rf'CMAKE_CXX_COMPILER_{word} "([^"]+)"', compiler)[1] for word in ("ID", "VERSION"))
        libraries = subprocess.run(["ldd", self.programs / "dtrain-cnn-benchmarks"], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout
        return {"compiler": f"{name} {version}",
                "build": f"{self.option('CMAKE_BUILD_TYPE')} for {self.option('DTRAIN_CPU_ARCH')}, sanitizers "
                         f"{self.option('DTRAIN_SANITIZE')}",
                "C library": os.confstr("CS_GNU_LIBC_VERSION"),
                "oneDNN": version_of_onednn(re.search(r"libdnnl\S* => (\S+)", libraries)[1]),
                "caches that oneDNN sees": caches() if processor()["vendor_id"] == "GenuineIntel" else "none"}


def version_of_onednn(path):
    class Version(ctypes.Structure):
        _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int)]

    library = ctypes.CDLL(path)
    library.dnnl_version.restype = ctypes.POINTER(Version)
    version = library.dnnl_version().contents
    return f"{version.major}.{version.minor}.{version.patch}"


def processor():
    """The fields of /proc/cpuinfo of the first core."""
    first, _, _ = pathlib.Path("/proc/cpuinfo").read_text().partition("\n\n")
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first.splitlines())}


def caches():
    found = []
    for folder in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size, cores = ((folder / name).read_text().strip()
                                    for name in ("level", "type", "size", "shared_cpu_list"))
        if kind != "Instruction":
            found.append(f"L{level} {size} of cores {cores}")
    return ", ".join(found)


def environment_of_runs(folder):
    """The environment without foreign variables, for runs whose bits do not depend on the processor."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return dict(kept, OMP_WAIT_POLICY="passive", DTRAIN_CPU_ISA="avx2", LC_ALL="C", XDG_CACHE_HOME=f"{folder}/cache")


class Run:
    """One or more runs of the program that share a data folder and a train_dir. `lines` describes them."""

    def __init__(self, build, folder):
        self.build, self.folder, self.lines, self.errors = build, pathlib.Path(folder), [], ""
        self.data, self.train_dir = self.folder / "data", self.folder / "train"
        self.metrics = self.folder / "metrics.json"
        self.environment = environment_of_runs(self.folder)
        subprocess.run([build.programs / "dtrain-data", "synthesize", f"--output={self.data}", "--classes=9",
                        "--image_size=24", "--train=64", "--validation=13", "--shards=2", "--seed=1"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)
        self.lines += [f"{path.name}: {checksum(path)}" for path in sorted(self.data.iterdir())]

    def start(self, *flags, ranks=1, fault="", stop_in=None, stop_after=0.0):
        """Runs the program to its end and returns its log. Sends SIGTERM `stop_after` seconds into step `stop_in`."""
        flags = ("--device=cpu", "--num_intra_threads=1", "--display_every=1", *flags)
        command = [*((*MPIRUN, "-np", str(ranks)) if ranks > 1 else ()),
                   self.build.programs / "dtrain-cnn-benchmarks", *flags]
        log = ""
        with (self.folder / "stderr").open("w+") as errors:
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                                  env=dict(self.environment, DTRAIN_FAULT=fault)) as process:
                for line in process.stdout:
                    log += line
                    if stop_in and line.startswith(f"{stop_in - 1}\timages/sec"):
                        time.sleep(stop_after)
                        process.send_signal(signal.SIGTERM)
            errors.seek(0)
            notices = errors.read()
        self.errors += notices
        if process.returncode < 0:  # killed by someone else; no run here is
            raise RuntimeError(f"{command[0]} was ended by {signal.Signals(-process.returncode).name}:\n{log}{notices}")
        self.lines += ["", *self.masked(f"== {ranks} x DTRAIN_FAULT='{fault}' {' '.join(flags)}"), *self.masked(log),
                       "", f"exit code {process.returncode}, {kinds_of(notices, ranks)}"]
        if self.metrics.exists():
            steps = [line for line in self.metrics.read_text().splitlines() if "loss" in json.loads(line)]
            self.lines += ["", *self.masked("\n".join(steps))]
        if self.train_dir.exists():
            self.lines += ["", *self.files_of_train_dir()]
        return log

    def masked(self, text):
        lines = text.replace(str(self.folder), "DIR").splitlines()
        for pattern, replacement in MASKS:
            lines = [re.sub(pattern, replacement, line) for line in lines]
        return lines

    def files_of_train_dir(self):
        lines = []
        for path in sorted(path for path in self.train_dir.rglob("*") if path.is_file()):
            line = str(path.relative_to(self.train_dir))
            if path.suffix == ".safetensors":
                line += f": {checksum(path)}"
            elif path.name == "state.json":
                line += f": {' '.join(path.read_text().split())}"
            lines += self.masked(line)
        return lines


def checksum(path):
    data = path.read_bytes()
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"


def kinds_of(notices, ranks):
    """Notices by kind, and the steps named in errors. Which ranks still report when a job of several ends, and whether
    one is reported as slow, depends on timing: then only the presence of an error counts. The notice that another
    version wrote a checkpoint does not count."""
    notices = re.sub(r"(?m)^note: version: checkpoint .*\n", "", notices)
    count = {kind: len(re.findall(f"^{kind}: ", notices, re.MULTILINE)) for kind in ("note", "warning", "error")}
    steps = sorted(set(re.findall(r"\bstep \d+", " ".join(re.findall("^error: .*", notices, re.MULTILINE)))))
    if ranks > 1:
        count = {"error": "yes" if count["error"] else "no"}
    return ", ".join(f"{kind}: {number}" for kind, number in count.items()) + "".join(f" ({step})" for step in steps)


# The runs, one function test_* each; CMakeLists.txt parses their names, and runs of several ranks have `ranks` in
# theirs. ResNet-20 has low learning rates, so that training does not amplify rounding.


def resnet(run, steps, *flags):
    return ("--model=resnet20", "--data_name=cifar10", f"--data_dir={run.data}", "--num_classes=10",
            "--init_learning_rate=0.0003", "--num_warmup_batches=0", f"--num_batches={steps}", *flags)


def lenet(run, steps, *flags):
    return ("--model=lenet", "--image_size=8", f"--data_dir={run.data}", "--num_classes=10",
            "--init_learning_rate=0.01", "--num_warmup_batches=0", f"--num_batches={steps}", *flags)


def saving(run, every):
    return (f"--train_dir={run.train_dir}", f"--save_model_steps={every}", f"--metrics_file={run.metrics}")


def test_train(run):
    run.start("--model=resnet20", "--data_name=imagenet", "--image_size=16", f"--data_dir={run.data}",
              "--num_classes=10", "--batch_size=8", "--num_batches=9", "--num_warmup_batches=2", "--distortions",
              "--piecewise_learning_rate_schedule=0.0003;0.5;0.0002;1;0.0001", "--num_learning_rate_warmup_epochs=0.25",
              "--optimizer=momentum", "--weight_decay=1e-3", "--print_training_accuracy", "--max_ckpts_to_keep=2",
              *saving(run, 3))


def test_train_and_evaluate(run):
    run.start(*resnet(run, 7), "--batch_size=8", "--optimizer=rmsprop", "--label_smoothing=0.1", "--lr_schedule=cosine",
              "--eval_during_training_every_n_steps=3", "--eval_batch_size=4", "--num_eval_epochs=1", *saving(run, 100))


def test_evaluate(run):
    run.start(*resnet(run, 3), "--batch_size=8", *saving(run, 100))
    run.start("--eval", *resnet(run, 3), "--num_eval_epochs=1", "--batch_size=5", f"--train_dir={run.train_dir}")


def small_lenet(run, steps):
    return (*lenet(run, steps), "--image_size=4", "--batch_size=4", "--optimizer=momentum", *saving(run, 100))


def test_resume(run):
    shutil.copytree(CHECKPOINT, run.train_dir / "checkpoints" / CHECKPOINT.name)
    run.start(*small_lenet(run, 9))


def test_stop(run):
    """Stops in the middle of step 5; retries with a longer step if a busy machine misses it."""
    for seconds in (1, 5, 25):
        fresh = Run(run.build, tempfile.mkdtemp(dir=run.folder))
        flags = lenet(fresh, 8, "--batch_size=8", "--optimizer=adam", "--init_learning_rate=0.001", *saving(fresh, 3))
        fault = f"rank=0,step=5,kind=slow,seconds={seconds}"
        log = fresh.start(*flags, fault=fault, stop_in=5, stop_after=seconds / 2)
        if re.findall(r"^(\d+)\timages/sec", log, re.MULTILINE)[-1:] == ["5"]:
            break
    fresh.start(*flags)
    run.lines, run.errors = [line.replace(fault, "seconds=#") for line in fresh.lines], fresh.errors


def test_fault(run):
    flags = resnet(run, 8, "--batch_size=8", *saving(run, 3))
    run.start(*flags, fault="rank=0,step=5,kind=exception")
    run.start(*flags)


def test_micro_steps(run):
    run.start(*resnet(run, 5), "--batch_size=4", "--gradient_accumulation=3", "--gradient_clip_norm=1",
              "--optimizer=lars", "--loss_type_to_report=base_loss", *saving(run, 100))


def test_forward_only(run):
    run.start("--model=resnet20", "--data_name=cifar10", "--forward_only", "--batch_size=4", "--num_batches=4",
              "--num_warmup_batches=1", f"--metrics_file={run.metrics}")


BUCKETS = ("--noautotune_buckets", "--bucket_mb=0.2", "--last_bucket_mb=0.05")


def test_two_ranks(run):
    run.start(*resnet(run, 6), "--variable_update=horovod", "--batch_size=4", "--optimizer=momentum",
              "--sync_batch_norm", "--eval_during_training_at_specified_steps=4", "--verify_weights_every=2", *BUCKETS,
              *saving(run, 3), ranks=2)


def test_four_ranks(run):
    run.start(*lenet(run, 5), "--variable_update=replicated", "--batch_size=4", "--optimizer=momentum",
              "--all_reduce_algorithm=ring", *BUCKETS, *saving(run, 100), ranks=4)


def test_elastic_ranks(run):
    flags = ("--variable_update=horovod", "--batch_size=2", "--optimizer=momentum", *BUCKETS, *saving(run, 100))
    run.start(*lenet(run, 3), *flags, ranks=4)
    run.start(*lenet(run, 6), *flags, ranks=2)


def test_fault_of_ranks(run):
    flags = lenet(run, 7, "--variable_update=horovod", "--batch_size=4", *BUCKETS, *saving(run, 3))
    run.start(*flags, ranks=2, fault="rank=1,step=5,kind=nan")
    run.start(*flags, ranks=2)


RUNS = {name: run for name, run in globals().items() if name.startswith("test_")}
WITH_FAULTS = (test_stop, test_fault, test_fault_of_ranks)


def done(name, build):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(build, folder)
        RUNS[name](run)
        return run


def near(expected, found):
    """Whether two lines differ only in checksums, and in numbers by at most TOLERANCE."""
    expected, found = (re.sub(r"\bsha256 \w+", "sha256", line) for line in (expected, found))
    if NUMBER.sub("#", expected) != NUMBER.sub("#", found):
        return False
    return all(a == b or "." in a and "." in b and abs(float(a) - float(b)) <= TOLERANCE * abs(float(a)) + last_digit(a)
               for a, b in zip(NUMBER.findall(expected), NUMBER.findall(found)))


def last_digit(number):
    return min(0.001, 10.0 ** -len(number.partition("e")[0].partition(".")[2]))


def expect(expected, name, build, why_not_exact):
    """Whether the run matches its record, bit for bit unless there is a known reason."""
    run = done(name, build)
    found = run.lines
    if why_not_exact and len(found) == len(expected):
        found = [a if near(a, b) else b for a, b in zip(expected, found)]
    if found != expected:
        print(f"{name} does not do what is expected:",
              *difflib.unified_diff(expected, found, "expected", "found", lineterm="", n=2),
              "Its notices:", run.errors, sep="\n")
        return False
    if run.lines != expected:
        print(f"SKIPPED: the bits of fixed runs: {why_not_exact}")
    return True


def why_not_exact(build, recorded):
    """How the build and the machine differ from those of the signature `recorded`; empty: the bits must be equal."""
    here = build.signature()
    return "; ".join(f"{key}: {value}, in the records {recorded[key]}" for key, value in here.items()
                     if value != recorded[key])


def record_of(name):
    return EXPECTED / f"{name.removeprefix('test_')}.txt"


def make_records(names, build):
    cpu = processor()
    where = f"{cpu['model name']}, family {cpu['cpu family']}, model {cpu['model']}; {caches()}"
    SIGNATURE.write_text(json.dumps({**build.signature(), "recorded on": where}, indent=2) + "\n")
    if not CHECKPOINT.exists():
        with tempfile.TemporaryDirectory() as folder:
            run = Run(build, folder)
            run.start(*small_lenet(run, 4))
            shutil.copytree(run.train_dir / "checkpoints" / CHECKPOINT.name, CHECKPOINT)
    EXPECTED.mkdir(exist_ok=True)
    for name in names:
        record_of(name).write_text("\n".join(done(name, build).lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", metavar="BIN_DIR", type=Build)
    parser.add_argument("--record", metavar="BIN_DIR", type=Build)
    parser.add_argument("runs", metavar="RUN", nargs="*", help=", ".join(RUNS))
    asked = parser.parse_args()
    names = asked.runs or list(RUNS)
    if asked.record:
        if not asked.record.has_faults:
            parser.error(f"{asked.record.programs}: built without DTRAIN_FAULTS, which some of the runs need")
        make_records(names, asked.record)
        return 0
    build = Build(os.environ["DTRAIN_BIN_DIR"])
    results = []
    for name in names:
        if RUNS[name] in WITH_FAULTS and not build.has_faults:
            print("SKIPPED: there is no DTRAIN_FAULT in a build without DTRAIN_FAULTS")
        elif asked.reference:
            results.append(expect(done(name, asked.reference).lines, name, build, ""))
        else:
            results.append(expect(record_of(name).read_text().splitlines(), name, build,
                                  why_not_exact(build, json.loads(SIGNATURE.read_text()))))
    return SKIPPED if not results else int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
