#!/usr/bin/env python3
"""Validates and lints the rendered overlays and storages and the manifests of k8s/peers, and checks that each bad
manifest in bad/ violates exactly its rule.

    manifests_test.py --source DIR --version VERSION

Images must have the version VERSION. The schemas are in the folder schemas beside $DTRAIN_TEST_DATA.

A file bad/RULE.yaml names an overlay or storage, an object in it by its kind, and changes of the object: set, add (to a
list), remove, move, or document, which adds an object. List items are named by index or by name. Names that begin with
schema- are tests of validate.py.
"""

import argparse
import copy
import pathlib
import sys

import lint
import lint_storage
import tools
import validate


def parts_of(path):
    return [part.replace("~1", "/") for part in path.split("/")[1:]]


def step(value, part):
    """Key of a mapping or index of a list for a part of a path."""
    if isinstance(value, dict):
        return part
    return int(part) if part.isdigit() else next(at for at, item in enumerate(value) if item["name"] == part)


def find(value, parts):
    for part in parts:
        value = value[step(value, part)]
    return value


def change(documents, document, one):
    if one["op"] == "document":
        documents.append(one["value"])
        return
    *parents, last = parts_of(one["path"])
    parent = find(document, parents)
    if one["op"] == "remove":
        del parent[step(parent, last)]
    elif one["op"] == "move":
        *others, old = parts_of(one["from"])
        parent[last] = find(document, others).pop(old)
    elif one["op"] == "add" and isinstance(parent, list):
        parent.insert(int(last), one["value"])
    else:
        parent[step(parent, last)] = one["value"]


def changed(rendered, bad):
    """Objects of a rendered overlay with the changes of a bad manifest."""
    documents = copy.deepcopy(rendered[bad["overlay"]])
    document = next(one for one in documents if one["kind"] == bad["kind"])
    for one in bad["changes"]:
        change(documents, document, one)
    return documents


def has_schema(document, schemas):
    """False for a job of Training Operator if its types are not installed."""
    kind = (document.get("apiVersion"), document.get("kind"))
    return kind not in validate.CLIENT_TYPES or schemas.of(*kind) is not None


def check_good(rendered, schemas):
    for name, documents in rendered.items():
        for document in documents:
            for error in validate.errors(document, schemas) if has_schema(document, schemas) else []:
                yield f"{name}: {document['kind']}: {error}"
        for fault in lint.faults(documents):
            yield f"{name}: {': '.join(fault)}"


def check_bad(rendered, schemas, folder):
    files = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    for name in sorted(set(lint.RULES) - set(files)):
        yield f"the rule {name} has no bad manifest"
    for name, path in files.items():
        documents = changed(rendered, lint.read(path)[0])
        if name.startswith("schema-"):
            if all(has_schema(document, schemas) for document in documents) and not any(list(validate.errors(document, schemas)) for document in documents):
                yield f"{path.name}: accepted by the schemas"
            continue
        found = {fault[1] for fault in lint.faults(documents)}
        if found != {name}:
            yield f"{path.name}: found by {sorted(found)}, expected [{name!r}]"


def check_versions(rendered, version):
    for name, documents in rendered.items():
        for image in {container.get("image") for document in documents for pod in lint.Job(document, documents).pods
                      for container in pod.containers}:
            if image.startswith("dtrain-") and image.partition(":")[2] != version:
                yield f"{name}: the image {image} does not have version {version}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--version", required=True)
    arguments = parser.parse_args()
    schemas = validate.Schemas(tools.SCHEMAS)
    if not schemas.files:
        print(f"SKIPPED: there are no schemas in {tools.SCHEMAS}")
        return 0
    if validate.kubernetes_validate is None:
        print("kubernetes-validate is not installed: core kinds are checked by tables of fields and the schema of pods")
    folder = arguments.source / "k8s/rendered"
    rendered = {str(path.relative_to(folder).with_suffix("")): lint.read(path) for path in sorted(folder.rglob("*.yaml"))}
    rendered |= {path.stem: lint.read(path) for path in sorted((arguments.source / "k8s/peers").glob("*job-*.yaml"))}
    if not all(schemas.of(*kind) for kind in validate.CLIENT_TYPES):
        print("kubeflow-training is not installed: jobs of Training Operator are linted, not validated")
    faults = list(check_good(rendered, schemas))
    for path in sorted((arguments.source / "k8s/cluster").glob("*.yaml")):
        for document in lint.read(path):
            faults += [f"{path.name}: {error}" for error in validate.errors(document, schemas)]
    faults += check_versions(rendered, arguments.version)
    faults += check_bad(rendered, schemas, pathlib.Path(__file__).parent / "bad")
    for fault in faults:
        print(fault)
    print(f"{len(rendered)} manifests, {len(lint.RULES | lint_storage.RULES)} rules")
    return 1 if faults or not rendered else 0


if __name__ == "__main__":
    sys.exit(main())
