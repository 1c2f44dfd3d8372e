#!/usr/bin/env python3
"""Checks that tests were skipped only for allowed reasons.

    check_skips.py [--allowed FILE] BUILD[:JUNIT]...

Prints each reason for which a test, or a part of one, was skipped in the last run of ctest in the build tree BUILD,
with the number of times, and names the tests whose reason FILE, by default tests/skips.txt, does not allow. A reason is
the rest of a line of output after "SKIPPED: ". JUNIT, the result of `ctest --output-junit` in that run, also shows
tests that ctest counts as skipped although they print no reason.
Exit codes: 0 all reasons are allowed, 1 at least one is not, 2 a file cannot be read.
"""

import argparse
import collections
import os
import pathlib
import re
import sys
import xml.etree.ElementTree

TESTS = pathlib.Path(__file__).resolve().parent
CONDITIONS = {
    "any": lambda build: True,
    "sanitized": lambda build: is_sanitized(build),
    "unprivileged": lambda build: os.geteuid() != 0,
}


def is_sanitized(build):
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    return re.search(r"^DTRAIN_SANITIZE:\w+=(?!OFF$).", cache, re.MULTILINE) is not None


def read_rules(path):
    """Pairs of a condition and a pattern of reasons."""
    rules = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            condition, _, pattern = line.partition(" ")
            if condition not in CONDITIONS:
                raise ValueError(f"{path}:{number}: condition {condition}; expected one of {', '.join(CONDITIONS)}")
            rules.append((condition, re.compile(pattern.strip())))
    return rules


def tests_of(log):
    """Triples of name, command and lines of output from the text of ctest's LastTest.log."""
    name, command, output = None, "", None
    for line in log.splitlines():
        if output is not None:
            text, end, _ = line.partition("<end of output>")
            output.append(text)
            if end:
                yield name, command, output[1:]  # the first line is a ruler
                output = None
        elif found := re.match(r"\d+/\d+ Test: (.*)", line):
            name = found[1]
        elif line.startswith("Command: "):
            command = line.removeprefix("Command: ")
        elif line == "Output:":
            output = []


def reasons_of(command, output):
    """The reasons for which a test or parts of it were skipped; None for one that gives no reason."""
    if command == '""':  # ctest has not started it: it is disabled, or its program or fixture is missing
        yield None
    explained = False  # whether the present test of GoogleTest has given a reason
    for line in output:
        if found := re.search("SKIPPED: (.*)", line):
            explained = True
            yield found[1].strip()
        elif line.startswith("[ RUN      ]"):
            explained = False
        elif re.match(r"\[  SKIPPED \] .* \(\d+ ms\)", line) and not explained:
            yield None


def skips_of(build, junit):
    """Pairs of test and reason in the last run of a build tree."""
    log = (build / "Testing" / "Temporary" / "LastTest.log").read_text(encoding="utf-8", errors="replace")
    tests = list(tests_of(log))
    if not tests:
        raise ValueError(f"{build}: the last run of ctest had no tests")
    skips = [(name, reason) for name, command, output in tests for reason in reasons_of(command, output)]
    if junit:
        explained = {name for name, _ in skips}
        cases = xml.etree.ElementTree.parse(junit).iter("testcase")
        skipped = [case.get("name") for case in cases if case.find("skipped") is not None]
        skips += [(name, None) for name in skipped if name not in explained]
    return skips


def check(build, junit, rules):
    """Prints the reasons of a build tree and returns a line for each test whose reason is not allowed."""
    skips = skips_of(build, junit)
    for reason, count in sorted(collections.Counter(reason or "no reason given" for _, reason in skips).items()):
        print(f"{count:7} {reason}")
    if not skips:
        print("      - nothing")
    holding = [pattern for condition, pattern in rules if CONDITIONS[condition](build)]
    bad = [(name, reason) for name, reason in skips if not (reason and any(one.fullmatch(reason) for one in holding))]
    return [f"{build}: {name}: {reason or 'skipped without a reason'}" for name, reason in dict.fromkeys(bad)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allowed", metavar="FILE", type=pathlib.Path, default=TESTS / "skips.txt")
    parser.add_argument("builds", metavar="BUILD[:JUNIT]", nargs="+")
    arguments = parser.parse_args()
    try:
        rules, bad = read_rules(arguments.allowed), []
        for build, _, junit in (one.partition(":") for one in arguments.builds):
            print(f"{build}:")
            bad += check(pathlib.Path(build), junit, rules)
    except (OSError, ValueError, re.error, xml.etree.ElementTree.ParseError) as error:
        print(f"check_skips.py: {error}", file=sys.stderr)
        return 2
    if bad:
        print(f"Skipped for a reason that {arguments.allowed.name} does not allow:")
        print(*(f"  {line}" for line in bad), sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
