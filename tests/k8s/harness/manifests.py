"""The rendered manifests, and changes by tests: parameters through k8s/set.sh, arguments by name."""

import contextlib
import os
import pathlib
import shutil
import tempfile

import yaml

from harness.spaces import run

K8S = pathlib.Path(__file__).resolve().parents[3] / "k8s"


def overlay(name, *settings):
    """Objects of an overlay, rendered from a copy after k8s/set.sh has set parameters."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "k8s"
        shutil.copytree(K8S, copy)
        if settings:
            run(copy / "set.sh", name, *settings)
        rendered = run("kubectl", "kustomize", copy / "overlays" / name)
    return list(yaml.safe_load_all(rendered))


def of_kind(documents, kind):
    [found] = [document for document in documents if document["kind"] == kind]
    return found


def container(document, replica="Launcher"):
    """Container of a Job or StatefulSet, or of a replica type of an MPIJob."""
    part = document["spec"]["mpiReplicaSpecs"][replica] if document["kind"] == "MPIJob" else document["spec"]
    [found] = part["template"]["spec"]["containers"]
    return found


def made_by(script, *arguments):
    """Object that a script of k8s/ passes to kubectl, which a fake kubectl prints."""
    with tempfile.TemporaryDirectory() as folder:
        made, stand_in = pathlib.Path(folder) / "made.yaml", pathlib.Path(folder) / "kubectl"
        kubectl = shutil.which("kubectl")
        stand_in.write_text(f'#!/bin/sh\n[ "$1" != create ] || {kubectl} "$@" --dry-run=client -o yaml >{made}\n')
        stand_in.chmod(0o755)
        run(K8S / script, *arguments, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        return yaml.safe_load(made.read_text())


def replace_program(document, *command):
    """Replaces the launcher's program, whose name begins with `dtrain-`; mpirun's arguments before it stay."""
    arguments = container(document)["args"]
    at = next(i for i, word in enumerate(arguments) if i and word.startswith("dtrain-"))
    arguments[at:] = [str(word) for word in command]


@contextlib.contextmanager
def shared_folder(user=1000):
    """A folder that acts as a claim or NFS export: it belongs to the user of the job."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        shutil.chown(path, user, user)
        path.chmod(0o2775)
        yield path
