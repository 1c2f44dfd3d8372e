#!/usr/bin/env python3
"""Compares the output of expand.py for expanded/*/job.yaml with objects.yaml beside each; --record updates them.

    expand_test.py [--record]
"""

import pathlib
import sys

import yaml

import expand

CASES = sorted(pathlib.Path(__file__).with_name("expanded").glob("*/job.yaml"))
KEYS = ("the private key\n", "the public key\n")


def made_from(path, **options):
    return expand.expand(yaml.safe_load_all(path.read_text()), KEYS, **options)


def record(path):
    made = yaml.safe_dump_all(made_from(path), sort_keys=False, width=120)
    path.with_name("objects.yaml").write_text(made)


def differences(path):
    """Differences, one line per object."""
    def by_name(objects):
        return {(found["kind"], found["metadata"]["name"]): found for found in objects}

    made, expected = by_name(made_from(path)), by_name(yaml.safe_load_all(path.with_name("objects.yaml").read_text()))
    return [f"{path.parent.name}: {' '.join(name)}: made {made.get(name)}, expected {expected.get(name)}"
            for name in made.keys() | expected.keys() if made.get(name) != expected.get(name)]


def check_domain():
    """--cluster-domain is the suffix of host names in both files."""
    [found] = [found for found in made_from(CASES[0], cluster_domain="example.org") if found["kind"] == "ConfigMap"]
    hosts = [line for text in found["data"].values() for line in text.splitlines() if "train-" in line]
    return [f"no domain in {host}" for host in hosts if ".svc.example.org" not in host]


def check_keys():
    """Each job gets a new P-521 key pair."""
    pairs = [expand.key_pair() for _ in range(2)]
    good = all(private.startswith("-----BEGIN EC PRIVATE KEY-----") and public.startswith("ecdsa-sha2-nistp521 ")
               for private, public in pairs)
    return ([] if good else ["not P-521 keys"]) + (["the same keys twice"] if pairs[0] == pairs[1] else [])


def main():
    if sys.argv[1:] == ["--record"]:
        for path in CASES:
            record(path)
        return
    found = [line for path in CASES for line in differences(path)] + check_domain() + check_keys()
    print("\n".join(found) or f"{len(CASES)} jobs have the expected expansion")
    sys.exit(bool(found) or not CASES)


if __name__ == "__main__":
    main()
