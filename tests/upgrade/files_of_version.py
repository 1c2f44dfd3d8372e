"""What make_fixtures.py does with the programs of a version, and upgrade_test.py with those of this tree.

The model is tf_cnn_benchmarks' `trivial`, of 25,000 parameters. Like all fixed runs it computes in one thread with AVX2.
"""

import hashlib
import json
import pathlib
import re
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fixed_runs")]

import fixed_runs  # noqa: E402
import tiny_detector  # noqa: E402

# Paths are relative, so that config.toml continues the run in a copy of the folder.
TRAINING = ("--model=trivial", "--image_size=8", "--num_classes=5", "--data_dir=data", "--batch_size=4",
            "--num_warmup_batches=0", "--optimizer=momentum", "--init_learning_rate=0.001", "--weight_ema=0.9",
            "--eval_during_training_at_specified_steps=4", "--keep_best=loss", "--device=cpu", "--num_intra_threads=1",
            "--display_every=1", "--summary_verbosity=1", "--save_summaries_steps=1", "--train_dir=train")
METRICS = "--metrics_file=metrics.jsonl"
STEPS, LATER = 4, 8
CONTINUING = ("--config=train/config.toml", METRICS, f"--num_batches={LATER}")
# The weights of the calibration: those of the checkpoint that fixed_runs resumes.
LENET = ("--model=lenet", "--image_size=4", "--num_classes=10",
         f"--weights={fixed_runs.CHECKPOINT / 'model.safetensors'}", "--num_intra_threads=1")
CLASSIFYING = ("--precision=int8", "--calibration=calibration.json", "--logits", "--device=cpu", "image.jpg")
DETECTOR_KEYS = [key.replace("=", " = ") for key in tiny_detector.KEYS]
DETECTOR = ("--data_dir=shapes", "--config_file=detector.config", "--device=cpu", "--batch_size=2", "--num_batches=1",
            "--num_intra_threads=1", "--train_dir=detector")


def run(programs, folder, program, *arguments, code=0):
    """Runs a program in `folder` and returns its stdout and stderr. Raises unless it ends with `code`."""
    done = subprocess.run([pathlib.Path(programs) / program, *arguments], cwd=folder, text=True,
                          env=fixed_runs.environment_of_runs(folder), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != code:
        raise AssertionError(f"{program} {' '.join(arguments)} ended with {done.returncode}, expected {code}:\n"
                             f"{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def continue_training(programs, folder):
    """Continues the training of the fixture. Returns steps and losses, and checksums of its last checkpoint."""
    out, _ = run(programs, folder, "dtrain-cnn-benchmarks", *CONTINUING)
    checkpoint = folder / "train" / "checkpoints" / f"step-{LATER}"
    return {"log": re.findall(r"^(\d+)\timages/sec.*\t(\S+)$", out, re.MULTILINE),
            "checkpoint": [checksum_of_tensors(path) for path in sorted(checkpoint.glob("*.safetensors"))]}


def tensors_of(path):
    data = path.read_bytes()
    size, = struct.unpack_from("<Q", data)
    return {name: (tensor["shape"], data[8 + size:][slice(*tensor["data_offsets"])])
            for name, tensor in json.loads(data[8:8 + size]).items() if name != "__metadata__"}


def checksum_of_tensors(path):
    """Without the metadata, which later versions have more of."""
    digest = hashlib.sha256()
    for name, (shape, data) in sorted(tensors_of(path).items()):
        digest.update(f"{name} {shape} ".encode() + data)
    return f"{path.name} sha256 {digest.hexdigest()}"


def classify(programs, folder):
    """The logits of the image in int8."""
    out, _ = run(programs, folder, "dtrain-classify", *LENET, *CLASSIFYING)
    return re.search(r"^ *logits (.*)", out, re.MULTILINE)[1].split()


def train_detector(programs, folder):
    """Trains a detector for a step and returns the identity in its checkpoint, which a run must have to resume."""
    run(programs, folder, "dtrain-data", "shapes", "--output=shapes", "--images=4", "--validation=2", "--size=96x64")
    run(programs, folder, "dtrain-mask-rcnn", "train", *DETECTOR)
    return json.loads((folder / "detector/checkpoints/step-1/state.json").read_text())["identity"]


def keys_of_metrics(path):
    """Names of a metrics file, of displayed steps, evaluations and checkpoints."""
    return {key for line in path.read_text().splitlines() for key in json.loads(line)}


def tags_of_events(train_dir):
    """Tags of all TensorBoard events: Event.summary (field 5), Summary.value (1), Value.tag (1)."""
    tags = set()
    for path in train_dir.glob("events.out.tfevents.*"):
        data = path.read_bytes()
        while data:
            length, = struct.unpack_from("<Q", data)
            for summary in fields(data[12:12 + length], 5):
                for value in fields(summary, 1):
                    tags |= {tag.decode() for tag in fields(value, 1)}
            data = data[12 + length + 4:]
    return tags


def fields(message, wanted):
    """The length-delimited fields `wanted` of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 2:
            size = varint()
            if key >> 3 == wanted:
                yield message[at:at + size]
            at += size
        elif key & 7 == 0:
            varint()
        else:
            at += {1: 8, 5: 4}[key & 7]


def names_of_flags(programs):
    """Commands, as "PROGRAM COMMAND", and flags, as "PROGRAM [COMMAND] --flag", and "--flag=CHOICE" of those that have
    choices, each with whether it is a former name."""
    names = {}
    for path in sorted(pathlib.Path(programs).glob("dtrain-*")):
        def ask(*arguments, path=path):
            return subprocess.run([path, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout
        commands = re.findall(r"^(\w+)\tcommand\t", ask("--help=list"), re.MULTILINE)
        names |= {f"{path.name} {command}": False for command in commands}
        # Programs that only have commands have no flags themselves.
        has_flags = re.search(r"^--(?!help|version)", ask("--help=list"), re.MULTILINE)
        for command in ([[]] if has_flags else []) + [[command] for command in commands]:
            text = ask(*command, "--helpmarkdown")
            start = " ".join((path.name, *command, "")) + "--"
            for flag, choices in re.findall(r"^\| `(\w+)` \| ((?:[^|\\]|\\\|)*) \|", text, re.MULTILINE):
                values = choices.split("\\|") if "\\|" in choices else []
                names |= {start + flag: False} | {f"{start}{flag}={value}": False for value in values}
            names |= {start + flag: True for flag in re.findall(r"; formerly `--(\w+)`", text)}
    return names


# What sources have between quotation marks.
SOURCES = ("apps", "data", "include", "libdtrain", "models")
PATTERNS = {"environment": r"(?:DTRAIN|HOROVOD|K_MPI|LOCAL|MASTER|OMP|OMPI|PMI|SLURM|WORLD)_[A-Z0-9_]+|RANK",
            "prometheus": r"dtrain_[a-z_]+",
            "detector_keys": r"MODE_[A-Z]+|[A-Z]+\.[A-Z0-9_.]*[A-Z0-9]"}


def names_of_sources(source):
    """Names by kind, except those of flags."""
    return {kind: names_in_sources(source, pattern) for kind, pattern in PATTERNS.items()} | {
        "kubernetes": names_of_manifests(source)}


def names_of_manifests(source):
    """Kustomizations, which the users' own ones and benchmark plans name, and the values of charts."""
    names = {str(path.parent.relative_to(source)) for path in (source / "k8s").rglob("kustomization.yaml")}
    for path in (source / "k8s").glob("charts/*/values.yaml"):
        names |= {f"{path.parent.relative_to(source)} {key}"
                  for key in re.findall(r"^(\w+):", path.read_text(), re.MULTILINE)}
    return names


def names_in_sources(source, pattern):
    names = set()
    for folder in SOURCES:
        for path in (source / folder).rglob("*"):
            if path.suffix in (".h", ".cpp"):
                names |= set(re.findall(f'"({pattern})"', path.read_text()))
    return names
