"""Renders many kustomizations with few starts of kubectl, which take most of the time of a rendering."""

import os
import pathlib
import tempfile

import tools
import yaml

# Distinguishes the objects of several kustomizations, which may have the same names.
LABEL = "tests.dtrain/rendering"
WRAPPER = """apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [{}]
labels: [{{pairs: {{{}: "{}"}}}}]
nameSuffix: {}
"""


def without(value, suffix):
    """A copy of an object, without a suffix of its name and of references to it."""
    if isinstance(value, dict):
        return {key: without(one, suffix) for key, one in value.items()}
    if isinstance(value, list):
        return [without(one, suffix) for one in value]
    return value.replace(suffix, "") if isinstance(value, str) else value


def render(folders, at_once=16):
    """Objects of each kustomization in a list of folders."""
    folders = list(folders)
    for begin in range(0, len(folders), at_once):
        yield from render_together(folders[begin:begin + at_once])


def render_together(folders):
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name).resolve()
        suffixes = [f"-rendering-{number}-" for number in range(len(folders))]
        for number, folder in enumerate(folders):
            (work / str(number)).mkdir()
            path = os.path.relpath(pathlib.Path(folder).resolve(), work / str(number))
            (work / str(number) / "kustomization.yaml").write_text(WRAPPER.format(path, LABEL, number, suffixes[number]))
        numbers = ", ".join(f'"{number}"' for number in range(len(folders)))
        (work / "kustomization.yaml").write_text(f"resources: [{numbers}]\n")
        rendered = [[] for _ in folders]
        for one in yaml.safe_load_all(tools.check_run("kubectl", "kustomize", work)):
            labels = one["metadata"]["labels"]
            number = int(labels.pop(LABEL))
            if not labels:
                del one["metadata"]["labels"]
            rendered[number].append(without(one, suffixes[number]))
        return rendered
