#!/usr/bin/env python3
"""Tests k8s/set.sh: each parameter of each overlay changes its fields of the rendered manifest, and no others.

Sets parameters one by one in a few representative overlays, and all at once in all overlays. Also tests flags and
rejected values.
"""

import re
import sys
import tempfile

import lint
import tools
from instance_types import TYPES
from tree import Tree

# A new value for each parameter, and suffixes of the paths that it changes. An environment variable is env.NAME.
NEW = {
    "NAMESPACE": ("team-a", r"metadata\.namespace|env\.NAMESPACE"),
    "NAME": ("renamed", r"metadata\.name|app\.kubernetes\.io/instance|env\.JOB_NAME|serviceName|secretName|subdomain|"
                        r"configMap\.name|runtimeRef\.name"),
    "IMAGE": ("registry.example:5000/other/image:9.9", r"image"),
    "TENSORBOARD_IMAGE": ("registry.example:5000/board:8.8", r"image"),
    "WORKERS": ("3", r"Worker\.replicas|spec\.replicas|numNodes|minAvailable|env\.WORKERS|env\.RANKS"),
    "SLOTS": ("5", r"slotsPerWorker|numProcPerNode|nvidia\.com/gpu|env\.SLOTS|env\.RANKS|"
                   r"containers\.training\.args\.\d+"),  # --num_gpus
    "MIN_RANKS": ("2", r"env\.MIN_RANKS"),
    "EFA": ("7", r"vpc\.amazonaws\.com/efa"),
    "CPU": ("11", r"(requests|limits)\.cpu"),
    "MEMORY": ("97Gi", r"(requests|limits)\.memory"),
    "SHM": ("1100Mi", r"volumes\.shm\.emptyDir\.sizeLimit"),
    "USER_ID": ("54321", r"runAsUser"),
    "GROUP_ID": ("54322", r"runAsGroup"),
    "FS_ID": ("54323", r"fsGroup"),
    "USER_NAME": ("ada", r"env\.USER_NAME"),
    "GROUP_NAME": ("lovelace", r"env\.GROUP_NAME"),
    "DATASET_DIR": ("/datasets/new", r"env\.DATASET_DIR"),
    "DATA_CLAIM": ("other-data", r"volumes\.data\.persistentVolumeClaim\.claimName"),
    "DATA_PATH": ("/datasets", r"volumeMounts\.(data|output)\.mountPath|env\.DATASET_DIR"),
    "NFS_SERVER": ("fs-1.example", r"nfs\.server"),
    "NFS_PATH": ("/exports/out", r"nfs\.path|volumeMounts\.output\.mountPath|env\.OUTPUT_DIR"),
    "PVC_NAME": ("other-claim", r"volumes\.output\.persistentVolumeClaim\.claimName"),
    "PVC_PATH": ("/results", r"volumeMounts\.output\.mountPath|env\.OUTPUT_DIR"),
    "QUEUE": ("other-queue", r"kueue\.x-k8s\.io/queue-name"),
    "S3_URL": ("s3://other-bucket/some/prefix", r"env\.S3_URL"),
    "RESULTS_URL": ("s3://other-bucket/runs", r"env\.RESULTS_URL"),
    "FOLDER": ("sets/imagenet", r"env\.FOLDER"),
    "SERVICE_ACCOUNT": ("reader", r"serviceAccountName"),
}
# Derived or tested by instance_type_test.py, cannot be set alone.
FOLLOWING = ("RANKS", "LAUNCHERS", "INSTANCE_TYPE")
# Overlays whose parameters are set one by one: all parameters, or those with special paths there.
ONE_BY_ONE = {
    "resnet50-cpu-multi-nfs": NEW, "resnet50-cpu-single-pvc": NEW, "no-operator": NEW, "trainjob": NEW, "p5": NEW,
    "mask-rcnn": ("DATASET_DIR", "PVC_NAME", "PVC_PATH"), "kueue": ("QUEUE",), "gang": ("WORKERS",),
    "elastic": ("NAME", "WORKERS", "MIN_RANKS"), "launcher-as-worker": ("WORKERS", "SLOTS", "CPU", "SHM"),
    "data-prep-s3": ("S3_URL", "FOLDER", "SERVICE_ACCOUNT"), "resnet50-s3": ("S3_URL", "RESULTS_URL", "SERVICE_ACCOUNT"),
    "mask-rcnn-s3": ("DATASET_DIR", "DATA_CLAIM", "SERVICE_ACCOUNT"), "tensorboard": ("NAME", "IMAGE", "TENSORBOARD_IMAGE"),
    "tf-cnn-ps": ("NAME", "SLOTS"),
}

REFUSED = (
    ("smoke", "WORKERS=0"), ("smoke", "WORKERS=two"), ("smoke", "SLOTS=-1"), ("smoke", "RANKS=4"),
    ("smoke", "NAME=a.b"), ("smoke", "NAME=1a"), ("smoke", "NAME=" + "a" * 60), ("smoke", "NAMESPACE=Team"), ("smoke", "IMAGE=a:latest"),
    ("smoke", "IMAGE=a"), ("smoke", "USER_ID=0"), ("smoke", "USER_NAME=Ada L"), ("smoke", "CPU=many"),
    ("smoke", "MEMORY=64GB"), ("smoke", "PVC_NAME=x"), ("smoke", "NOTHING=1"), ("smoke", "bare"), ("smoke", "--np=3"),
    ("smoke", "--expect_ranks=3"), ("smoke", "--max_bytes=a\nb"), ("smoke", "TRAIN.X=1"), ("nowhere", "WORKERS=2"),
    ("mask-rcnn", "PVC_PATH=fsx"), ("mask-rcnn", "PVC_PATH=/fsx/../etc"), ("mask-rcnn", "PVC_PATH=/usr/lib"),
    ("mask-rcnn", "DATASET_DIR=/elsewhere"), ("mask-rcnn", "PVC_PATH=/data"), ("elastic", "MIN_RANKS=5"),
    ("resnet50-cpu-multi-nfs", "NFS_SERVER=a b"), ("resnet50-cpu-multi-nfs", "NFS_PATH=/a:b"),
    ("launcher-as-worker", "LAUNCHERS=0"), ("data-prep-s3", "S3_URL=https://bucket"),
    ("resnet50-s3", "RESULTS_URL=s3://bucket/runs/"), ("resnet50-s3", "RESULTS_URL=/runs"),
    ("data-prep-s3", "FOLDER=/imagenet"), ("data-prep-s3", "FOLDER=../imagenet"), ("data-prep-s3", "FOLDER=a//b"),
    ("tensorboard", "TENSORBOARD_IMAGE=a:latest"), ("smoke", "SHM=2Gi"), ("smoke", "SHM=2097152Ki"), ("smoke", "MEMORY=512Mi"),
    ("smoke", "MEMORY=9999999999Gi"), ("no-operator", "NAME=" + "a" * 46))

# Flags: the overlay, the arguments, and what the command then contains and no longer contains.
FLAGS = (
    ("smoke", ["--max_bytes=1K"], ["--max_bytes=1K"], ["--max_bytes=16M"]),
    ("smoke", ["--min_bytes=1K", "--", "--sizes=1", "it's"], ["--min_bytes=1K", "--sizes=1", "it's"], []),
    ("resnet50-cpu-multi-nfs", ["--batch_size=2"], ["--batch_size 2"], ["--batch_size 128"]),
    ("resnet50-cpu-multi-nfs", ["--hooks=x"], ["--hooks=x -- --expect_ranks=$(RANKS)"], []),
    ("resnet50-cpu-single-pvc", ["steps=5"], ["steps=5"], ["steps=50"]),
    ("tf-cnn-benchmarks", ["--use_fp16=false", "--batch_size=4"], ["--use_fp16=false", "--batch_size=4"],
     ["--use_fp16 ", "--batch_size=256"]),
    ("mask-rcnn", ["TRAIN.BASE_LR=0.5", "TEST.X=[1,2]", "--save_model_secs=9"],
     ["TRAIN.BASE_LR=0.5", "--save_model_secs=9 --config", "TRAINER=horovod TEST.X=[1,2]"], ["TRAIN.BASE_LR=0.01"]),
    ("elastic", ["--num_batches=7"], ["--num_batches=7"], ["--num_batches=10000"]),
    ("vgg16-imagenet-2x4", ["--model=resnet50"], ["--model resnet50"], ["vgg16 "]),
)


class Changes(Tree):
    """Each change is made to a copy of its overlay, and all copies are rendered together at the end."""

    def __init__(self, folder):
        super().__init__(folder)
        self.checks = {}  # by copy

    def changed(self, overlay, changes, check):
        """Changes a copy of an overlay; returns faults of set.sh. check(objects) yields faults of the rendering."""
        copy = self.copy(overlay)
        done = self.set(copy, *changes)
        if done.returncode != 0:
            return [f"{overlay}: {changes}: {done.stderr.strip()}"]
        self.checks[copy] = check
        return []

    def faults(self):
        for copy, objects in self.render_all(self.checks):
            yield from self.checks[copy](objects)


def leaves(value, path=""):
    """(path, value) of all scalars; list items are identified by their names, if any."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, f"{path}.{key}")
    elif isinstance(value, list):
        for at, one in enumerate(value):
            name = one.get("name", at) if isinstance(one, dict) else at
            if isinstance(one, dict) and path.endswith(".env"):
                yield f"{path}.{name}", one.get("value")
            else:
                yield from leaves(one, f"{path}.{name}")
    else:
        yield path, value


def flat(documents):
    """Objects by their index among objects of the same kind, since their names may change."""
    found = {}
    for document in sorted(documents, key=lambda one: (one["kind"], one["metadata"]["name"])):
        at = sum(key == document["kind"] for key, _ in found)
        found[document["kind"], at] = dict(leaves(document))
    return {(kind, at, path): value for (kind, at), fields in found.items() for path, value in fields.items()}


def differences(before, after):
    for key in sorted(set(before) | set(after), key=str):
        if before.get(key) != after.get(key):
            yield key[2], before.get(key), after.get(key)


def check_one(tree, overlay, before, name):
    """Sets one parameter of an overlay."""
    value, places = NEW[name]
    changes = [f"{name}={value}"]
    if name in ("DATASET_DIR", "DATA_PATH") and "DATA_PATH" in tree.parameters(overlay):
        changes = ["DATA_PATH=/datasets", "DATASET_DIR=/datasets/new"]
        places = f"{NEW['DATA_PATH'][1]}|{NEW['DATASET_DIR'][1]}"

    def check(after):
        changed = list(differences(flat(before), flat(after)))
        if not changed:
            yield f"{overlay}: {name}: nothing has changed"
        for path, old, new in changed:
            if not re.search(rf"(^|\.)({places})$", path):
                yield f"{overlay}: {name}: changes {path} from {old!r} to {new!r}"
            elif value not in str(new) and name not in ("DATASET_DIR", "DATA_PATH") and not path.endswith("env.RANKS"):
                yield f"{overlay}: {name}: {path} is {new!r}, expected {value}"
            elif type(old) is not type(new):
                yield f"{overlay}: {name}: {path} was {old!r} and is {new!r}"
        yield from (f"{overlay}: {name}: {': '.join(fault)}" for fault in lint.faults(after)
                    if fault[1] not in ("efa-devices", "names-of-pods"))

    return tree.changed(overlay, changes, check)


def check_all(tree, overlay):
    """Sets all parameters of an overlay: no old value is left, and lint finds nothing."""
    parameters = tree.parameters(overlay)
    wanted = {name: NEW[name][0] for name in parameters if name not in FOLLOWING}
    if "INSTANCE_TYPE" in parameters:  # requests that an instance of each type satisfies
        wanted |= {"SLOTS": "1", "CPU": "2", "MEMORY": "11Gi"}
        if "EFA" in wanted:
            wanted["EFA"] = str(TYPES[parameters["INSTANCE_TYPE"]]["efa"])
    if "training" in parameters["NAME"]:
        wanted["NAME"] = "renamed-training"

    def check(objects):
        found = {str(value) for value in flat(objects).values()}
        for name, value in wanted.items():
            if not any(value in one for one in found):
                yield f"{overlay}: {name}={value} is nowhere"
        yield from (f"{overlay}: {': '.join(fault)}" for fault in lint.faults(objects))

    return tree.changed(overlay, [f"{name}={value}" for name, value in wanted.items()], check)


def check_refused(tree):
    for overlay, change in REFUSED:
        before = {} if overlay == "nowhere" else tree.text(overlay)
        done = tree.set(overlay, "CPU=7" if overlay != "nowhere" else "CPU=8", change)
        if done.returncode != 1 or not done.stderr.startswith("set.sh: "):
            yield f"{overlay}: {change!r}: exit code {done.returncode}, expected 1 and a reason: {done.stderr}"
        if before and tree.text(overlay) != before:
            yield f"{overlay}: {change!r} was rejected, but files have changed"


def check_foreign(tree):
    """A non-number in an overlay's file is not executed by bash arithmetic, and its control characters are not
    printed."""
    mark = tree.root / "ran"
    run = f"BASH_VERSINFO[$(touch {mark})]"
    for overlay, name, value in (("smoke", "WORKERS", run), ("smoke", "SLOTS", run), ("elastic", "MIN_RANKS", run),
                                 ("launcher-as-worker", "LAUNCHERS", run), ("launcher-as-worker", "LAUNCHERS", "08"),
                                 ("smoke", "SLOTS", "\x1b[2J"), ("smoke", "CPU", "\x9b2J")):
        copy = tree.copy(overlay)
        path = tree.root / "overlays" / copy / "parameters.yaml"
        text, count = re.subn(rf"(?m)^  {name}: .*", lambda _: f'  {name}: "{value}"', path.read_text())
        path.write_text(text)
        done = tree.set(copy, "CPU=7")
        reason = f"{name}='{value}'" if value.isprintable() else ": a control character"
        if count != 1 or done.returncode != 1 or reason not in done.stderr or mark.exists():
            yield f"{overlay}: {name}: exit code {done.returncode}, expected 1 and a reason: {done.stderr}"
        mark.unlink(missing_ok=True)


def check_flags(tree):
    for overlay, changes, there, gone in FLAGS:
        def check(objects, name=f"{overlay}: {changes}", there=there, gone=gone):
            command = next(pod for one in objects for pod in lint.Job(one, []).pods if pod.program[0])
            words = " ".join(command.args) + " "
            if not all(one in words for one in there) or any(one in words for one in gone):
                yield f"{name}: {words}"

        yield from tree.changed(overlay, changes, check)


def check_imagenet(tree):
    """Overlays that train on ImageNet accept DATASET_DIR=/data/imagenet. Those that read it from the claim have this
    default, the folder to which data-prep-imagenet writes on the claim."""
    [prepare] = [one for one in tree.render("data-prep-imagenet") if one["kind"] == "Job"]
    if "output=$OUTPUT_DIR/imagenet\n" not in lint.Job(prepare, []).pods[0].args[2]:
        yield "data-prep-imagenet does not write to imagenet"
    found = []
    for overlay in tree.overlays:
        parameters = tree.parameters(overlay)
        if "DATASET_DIR" not in parameters or overlay.startswith(("mask-rcnn", "faster-rcnn", "data-prep")):
            continue
        found.append(overlay)
        if "DATA_PATH" in parameters and (parameters["DATA_PATH"], parameters["DATASET_DIR"]) != ("/data", "/data/imagenet"):
            yield f"{overlay}: reads {parameters['DATASET_DIR']} of a claim mounted at {parameters['DATA_PATH']}"
        done = tree.set(tree.copy(overlay), "DATASET_DIR=/data/imagenet")
        if done.returncode != 0:
            yield f"{overlay}: DATASET_DIR=/data/imagenet: {done.stderr}"
    if not {"vgg16-imagenet-2x4", "vgg16-imagenet-4x8", "resnet50-fsx", "resnet50-efs"} <= set(found):
        yield f"only {found} read ImageNet"


def main():
    if tools.run("kubectl", "kustomize", tools.K8S / "base").returncode != 0:
        print("SKIPPED: there is no kubectl that knows components")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        tree, faults = Changes(folder), []
        before = dict(tree.render_all(ONE_BY_ONE))
        for overlay in tree.overlays:
            for name in tree.parameters(overlay):
                if name in ONE_BY_ONE.get(overlay, ()):
                    faults += check_one(tree, overlay, before[overlay], name)
            faults += check_all(tree, overlay)
        for check in (check_refused, check_foreign, check_flags, check_imagenet, Changes.faults):
            faults += check(tree)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
