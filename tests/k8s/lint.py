#!/usr/bin/env python3
"""Lints manifests of jobs with rules beyond schemas, from lint_instances.py, lint_objects.py,
lint_operators.py, lint_pods.py and lint_storage.py.

    lint.py FILE...        prints one line per violation: FILE: KIND/NAME: RULE: MESSAGE
    lint.py --rules        prints names and descriptions of the rules

A file is the input of one `kubectl apply`. Exit codes: 0 no violations, 1 violations.
"""

import argparse
import pathlib
import sys

import lint_instances
import lint_objects
import lint_operators
import lint_pods
import lint_storage
import yaml
from lint_job import Job

JOB_RULES = lint_instances.RULES | lint_objects.RULES | lint_operators.RULES | lint_pods.RULES
RULES = JOB_RULES | lint_storage.RULES
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def faults(documents):
    """All violations of a file as (object, rule, message)."""
    for document in documents:
        job = Job(document, documents)
        if job.pods:
            for name, check in JOB_RULES.items():
                for message in check(job):
                    yield f"{job.kind}/{job.name}", name, message
    yield from lint_storage.faults(documents)


def read(path):
    with path.open(encoding="utf-8") as file:
        return [document for document in yaml.load_all(file, Loader) if isinstance(document, dict)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", action="store_true", help="print the rules")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.rules:
        for name, check in RULES.items():
            print(f"{name}: {check.__doc__}")
        return 0
    found = 0
    for path in arguments.files:
        for where, name, message in faults(read(path)):
            print(f"{path}: {where}: {name}: {message}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
