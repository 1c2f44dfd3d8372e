#!/usr/bin/env python3
"""Compares the pins of versions.txt with the newest versions, ends of support and security advisories of support.txt.

Prints a table, and warns of each pin that is outdated, ends within 90 days, is out of support, or is in the range of an
advisory. Needs no network.

    k8s/check_versions.py [--as-of=YYYY-MM-DD] [--pins=FILE] [--support=FILE]
    k8s/check_versions.py --page >k8s/versions.md

Without --as-of the date is today's, and warnings do not change the exit code. With it, a pin that is out of support at
that date, or in the range of an advisory that was published by then, is an error. --page prints k8s/versions.md, which
depends on no date.
Exit codes: 0 checked, 1 errors at the date of --as-of, 2 usage, or a file cannot be read or has an invalid line.
"""

import argparse
import collections
import datetime
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
PINS = HERE / "versions.txt"
SUPPORT = HERE / "support.txt"
SOON = datetime.timedelta(days=90)
KINDS = ("manifest", "kustomization", "chart", "service", "provider", "tool", "image", "minimum")
DIGESTS = {"manifest": 40, "kustomization": 40, "tool": 64}  # required hexadecimal digits
VERSION = re.compile(r"v?[0-9][A-Za-z0-9.+_-]*")
IMAGE = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)+")

Pin = collections.namedtuple("Pin", "kind name version date source digest place")
Newest = collections.namedtuple("Newest", "version seen source")
End = collections.namedtuple("End", "line date source")
Advisory = collections.namedtuple("Advisory", "id first last fixed published source")
Support = collections.namedtuple("Support", "newest ends advisories moves")
Finding = collections.namedtuple("Finding", "pin is_error text")

INTRODUCTION = """\
# Versions of upstream components

This page is a reference of the upstream components of `k8s/`: the pinned versions, the newest known ones, and the ends
of their support. `k8s/check_versions.py --page` generates it from [versions.txt](versions.txt), the only place that
states a version, and [support.txt](support.txt).

    k8s/check_versions.py                      # a table, and a warning for each outdated, ending or vulnerable pin
    k8s/check_versions.py --as-of=2027-03-01   # exits with 1 if a pin is then out of support or in an advisory's range

To move a pin, change its row in `versions.txt`, then the places that `k8s.versions.*` reports, and generate this page.
The scripts and Terraform read `versions.txt`. Add a version to `support.txt` when it is released.

CUDA libraries are not listed: `images/*/requirements.txt` pins them by digest. Images of dtrain have the version of the
release. Nodes boot the newest Amazon Linux 2023 image of their Kubernetes version.
"""


class Fault(Exception):
    """A file that cannot be read, or an invalid line."""


def date_of(text):
    """The date of YYYY-MM-DD; raises ValueError."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise ValueError(text)
    return datetime.date.fromisoformat(text)


def numbers(version):
    """The numbers of a version up to its suffix: (1, 31) of 1.31-alpine."""
    return tuple(int(part) for part in re.match(r"v?(\d+(?:\.\d+)*)", version)[1].split("."))


def is_older(one, other):
    """Whether a version is older than another; 1.36 equals 1.36.0."""
    one, other = numbers(one), numbers(other)
    length = max(len(one), len(other))
    return one + (0,) * (length - len(one)) < other + (0,) * (length - len(other))


def records(path):
    """Yields position and fields of each line of a file that is not empty and no comment."""
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Fault(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield f"{path}:{number}", line.split()


def is_date(text):
    try:
        date_of(text)
    except ValueError:
        return False
    return True


def is_source(kind, text):
    return bool(IMAGE.fullmatch(text) if kind == "image" else re.fullmatch(r"(https|oci)://[a-z0-9][^ ]*", text))


def check_pin(pin):
    """Yields what is wrong with a row of versions.txt."""
    if not re.fullmatch(r"[a-z][a-z0-9-]*", pin.name):
        yield f"expected a name in lower-case letters, found '{pin.name}'"
    if not VERSION.fullmatch(pin.version):
        yield f"expected a version such as v1.2.3, found '{pin.version}'"
    if not is_date(pin.date):
        yield f"expected the date of the pin as YYYY-MM-DD, found '{pin.date}'"
    if not is_source(pin.kind, pin.source):
        form = "REGISTRY/NAME" if pin.kind == "image" else "https:// or oci://"
        yield f"expected a source ({form}), found '{pin.source}'"
    digits, alternative = (DIGESTS[pin.kind], "") if pin.kind in DIGESTS else (64, " or -")
    if not re.fullmatch(rf"[0-9a-f]{{{digits}}}", pin.digest) and not (alternative and pin.digest == "-"):
        yield f"expected {digits} hexadecimal digits{alternative} as digest, found '{pin.digest}'"
    if len(pin.place) != (2 if pin.kind == "manifest" else 0):
        yield "expected PATH and OBJECT after the digest of a manifest, and of no other kind"


def read_pins(path=PINS):
    """The rows of versions.txt by name."""
    pins = {}
    for where, fields in records(path):
        if fields[0] not in KINDS or len(fields) < 6:
            raise Fault(f"{where}: expected KIND NAME VERSION DATE SOURCE DIGEST [PATH OBJECT] with a kind of "
                        f"{', '.join(KINDS)}; found '{' '.join(fields)}'. Add what is missing")
        pin = Pin(*fields[:6], fields[6:])
        for fault in check_pin(pin):
            raise Fault(f"{where}: {pin.name}: {fault}. Correct the row")
        if pin.name in pins:
            raise Fault(f"{where}: {pin.name} is pinned twice. Remove one row")
        pins[pin.name] = pin
    if not pins:
        raise Fault(f"{path}: no pins found, expected rows KIND NAME VERSION DATE SOURCE DIGEST")
    return pins


FORMS = {"newest": "NAME VERSION SEEN SOURCE", "end": "NAME LINE DATE SOURCE",
         "advisory": "NAME ID FIRST LAST FIXED PUBLISHED SOURCE", "move": "NAME VERSION STEPS"}
COLUMNS = {"ID": bool, "STEPS": bool, "SEEN": is_date, "PUBLISHED": is_date,
           "SOURCE": lambda text: text.startswith("https://"),
           "DATE": lambda text: is_date(text.removeprefix("~")) or bool(re.fullmatch(r"after:v?[0-9.]+", text))}


def check_record(kind, fields, pins):
    """Yields what is wrong with a line of support.txt."""
    columns = FORMS.get(kind, "").split()
    if not columns or len(fields) != len(columns):
        yield f"expected {' or '.join(' '.join(form) for form in FORMS.items())}"
        return
    for column, value in zip(columns, fields):
        if column == "NAME" and value not in pins:
            yield "expected the name of a component of versions.txt"
        elif column != "NAME" and not COLUMNS.get(column, VERSION.fullmatch)(value):
            yield f"expected {column} instead of '{value}', as the head of the file describes it"
    if kind == "move" and fields[0] in pins and not is_older(pins[fields[0]].version, fields[1]):
        yield f"{fields[0]} is pinned to {pins[fields[0]].version} already: remove the line"


def read_support(path, pins):
    """The records of support.txt, each for a component of `pins`."""
    support = Support({}, collections.defaultdict(list), collections.defaultdict(list), {})
    for where, (kind, *fields) in records(path):
        if kind == "move":
            fields = [*fields[:2], " ".join(fields[2:])]
        for fault in check_record(kind, fields, pins):
            raise Fault(f"{where}: {fault}; found '{kind} {' '.join(fields)}'")
        name, *values = fields
        if kind == "newest":
            support.newest[name] = Newest(*values)
        elif kind == "move":
            support.moves[name] = values
        elif kind == "end":
            support.ends[name].append(End(*values))
        else:
            support.advisories[name].append(Advisory(*values))
    return support


def end_of(pin, support):
    """The record of the end of support of a pin's release line, and its date. Both may be None."""
    mine = [end for end in support.ends[pin.name] if numbers(pin.version)[:len(numbers(end.line))] == numbers(end.line)]
    if not mine:
        return None, None
    end = max(mine, key=lambda one: len(numbers(one.line)))
    if not end.date.startswith("after:"):
        return end, date_of(end.date.removeprefix("~"))
    newest = support.newest.get(pin.name)
    released = newest and not is_older(newest.version, end.date.removeprefix("after:"))
    return end, date_of(newest.seen) if released else None


def text_of_end(pin, support):
    """The end of support in words."""
    end, _ = end_of(pin, support)
    if not end:
        return "not stated"
    return end.date.replace("after:", "release of ").replace("~", "about ")


def matching(pin, support):
    """The advisories in whose range a pin is."""
    return [one for one in support.advisories[pin.name]
            if not is_older(pin.version, one.first) and not is_older(one.last, pin.version)]


def findings(pins, support, date):
    """Yields the findings about all pins at a date."""
    for pin in pins.values():
        named = f"{pin.name} {pin.version}"
        for one in matching(pin, support):
            if date_of(one.published) <= date:
                yield Finding(pin, True, f"{named} is in the range of {one.id} ({one.first} to {one.last}); "
                                         f"fixed in {one.fixed}: {one.source}")
        end, day = end_of(pin, support)
        about = "about" if end and end.date.startswith("~") else "on"
        if day and day < date:
            yield Finding(pin, True, f"{named} is out of support: {end.line} ended {about} {day}: {end.source}")
        elif day and day <= date + SOON:
            yield Finding(pin, False, f"{named} ends soon: support of {end.line} ends {about} {day}: {end.source}")
        newest = support.newest.get(pin.name)
        if newest and pin.kind != "minimum" and is_older(pin.version, newest.version):
            yield Finding(pin, False, f"{named} is outdated: {newest.version} is the newest: {newest.source}")


def table(pins, support):
    """Rows of component, pin, newest version and end of support."""
    for pin in pins.values():
        newest = support.newest.get(pin.name)
        yield pin, (pin.name, pin.version, newest.version if newest else "not known", text_of_end(pin, support))


def report(pins, support, date, is_strict):
    """Prints table and findings; returns the exit code."""
    rows = [("COMPONENT", "PIN", "NEWEST", "END OF SUPPORT"), *(row for _, row in table(pins, support))]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    found = list(findings(pins, support, date))
    for finding in found:
        print(f"{'error' if is_strict and finding.is_error else 'warning'}: {finding.text}")
    for name in dict.fromkeys(finding.pin.name for finding in found):
        if name in support.moves:
            print("move: {} to {}: {}".format(name, *support.moves[name]))
    count = sum(is_strict and finding.is_error for finding in found)
    print(f"{len(pins)} pins at {date}: {count} errors, {len(found) - count} warnings")
    return 1 if count else 0


def page(pins, support):
    """The text of versions.md."""
    lines = [INTRODUCTION, "## Pins", "",
             "| component | kind | version | pinned on | source | newest, seen on | end of support |",
             "|---|---|---|---|---|---|---|"]
    for pin, (name, version, newest, end) in table(pins, support):
        seen = f"{newest}, {support.newest[name].seen}" if name in support.newest else newest
        source = f"`{pin.source}`" if pin.kind == "image" or pin.source.startswith("oci:") else f"<{pin.source}>"
        lines.append(f"| {name} | {pin.kind} | {version} | {pin.date} | {source} | {seen} | {end} |")
    lines += ["", "## Advisories that concern a pin", "", "| component | advisory | affected | fixed in | published |",
              "|---|---|---|---|---|"]
    lines += [f"| {pin.name} {pin.version} | [{one.id}]({one.source}) | {one.first} to {one.last} | {one.fixed} | "
              f"{one.published} |" for pin in pins.values() for one in matching(pin, support)]
    lines += ["", "## Pins to move", "", "| component | to | steps |", "|---|---|---|"]
    lines += [f"| {name} | {version} | {steps} |" for name, (version, steps) in support.moves.items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--as-of", metavar="DATE", help="date YYYY-MM-DD at which findings are errors")
    parser.add_argument("--pins", default=PINS, help="replaces versions.txt")
    parser.add_argument("--support", default=SUPPORT, help="replaces support.txt")
    parser.add_argument("--page", action="store_true", help="prints versions.md")
    options = parser.parse_args()
    if options.as_of is not None and not is_date(options.as_of):
        parser.error(f"--as-of: expected a date YYYY-MM-DD, found '{options.as_of}'")
    try:
        pins = read_pins(options.pins)
        support = read_support(options.support, pins)
    except Fault as fault:
        print(f"check_versions.py: {fault}", file=sys.stderr)
        return 2
    if options.page:
        print(page(pins, support))
        return 0
    date = date_of(options.as_of) if options.as_of else datetime.date.today()
    return report(pins, support, date, bool(options.as_of))


if __name__ == "__main__":
    sys.exit(main())
