#!/usr/bin/env python3
"""Checks README.md and docs/: links resolve, the index lists every page, named files exist, and our programs accept
the commands that are shown.

    documents_test.py --source DIR [--bin DIR]

A command of dtrain-cnn-benchmarks without remote files is run with --print_config, which parses and validates its flags.
Other commands have their commands and flags looked up in --help=list. docs/coming-from.md may name only flags and keys
that exist. Without --bin, programs are not run. Prints one line per fault; exit status 1 where there is any.
"""

import argparse
import functools
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(#[^)\s]*)?\)")
FOLDERS = "apps|benchmarks|cmake|data|docs|examples|include|k8s|libdtrain|models|scripts|tests"
PATH = re.compile(rf"`((?:{FOLDERS})/[-A-Za-z0-9_./]*[A-Za-z0-9_/])(?: [^`]*)?`")
PROGRAM = re.compile(r"(?:^|[\s/])(dtrain-[a-z-]+)(?=\s|$)")
# First words of commands in docs/coming-from.md, which are no identifiers of the library.
COMMANDS = ("eval", "mpirun", "predict", "srun", "visualize")
# Words that stand for what the reader puts there, or that shorten a command.
SHORTENED = re.compile(r"\.\.\.|\s[NRW]\s")


def prose_and_code(text):
    """Splits a page into its text and the lines of its code blocks, indented or fenced, with continuations joined."""
    prose, code, fenced = [], [], False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or re.match(r"    \S", line) or line.startswith("        ") and code and code[-1].endswith("\\"):
            if code and code[-1].endswith("\\"):
                code[-1] = code[-1][:-1] + line.strip()
            else:
                code.append(line.strip())
        else:
            prose.append(line)
    return "\n".join(prose), code


def slug(heading):
    """The anchor that GitHub gives a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


@functools.cache
def anchors(path):
    prose, _ = prose_and_code(path.read_text(encoding="utf-8"))
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", prose, re.MULTILINE)}


def check_links(page, text):
    prose, _ = prose_and_code(text)
    for target, anchor in LINK.findall(prose):
        path = (page.parent / target).resolve() if target else page
        if not path.exists():
            yield f"link to {target}, which does not exist"
        elif anchor and path.suffix == ".md" and anchor[1:] not in anchors(path):
            yield f"link to {target}{anchor}: no such heading"


def check_paths(root, text):
    for name in PATH.findall(prose_and_code(text)[0]):
        if not (root / name).exists() and not list(root.glob(name + ".*")):
            yield f"{name} does not exist"


def check_index(root):
    linked = {target for target, _ in LINK.findall((root / "docs/README.md").read_text(encoding="utf-8"))}
    linked |= {f"design/{target}" for path in root.glob("docs/design/README.md")
               for target, _ in LINK.findall(path.read_text(encoding="utf-8"))}
    for page in sorted((root / "docs").rglob("*.md")):
        name = str(page.relative_to(root / "docs"))
        if page.name != "README.md" and name not in linked:
            yield f"docs/README.md does not list {name}"


class Programs:
    """The programs of a build tree, asked for their commands and flags."""

    def __init__(self, folder):
        self.folder = folder

    @functools.cache
    def listed(self, program, command=""):
        words = [self.folder / program, *([command] if command else []), "--help=list"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        return {row[0]: row[1] for row in rows if len(row) > 1}

    @functools.cache
    def every_flag(self):
        flags = set()
        for path in sorted(self.folder.glob("dtrain-*")):
            for name, kind in self.listed(path.name).items():
                flags |= set(self.listed(path.name, name)) if kind == "command" else {name}
        return flags

    def check_command(self, line):
        """Yields the problems of all dtrain commands in a shell line."""
        for part in re.split(r"\s(?:\|\||\||&&|;|&|2?>>?)(?:\s|$)", re.sub(r"(^|\s)# .*$", "", line)):
            found = PROGRAM.search(part)
            if found and (self.folder / found[1]).exists():
                yield from self.check_words(found[1], part[found.end():])

    def check_words(self, program, rest):
        shortened = bool(SHORTENED.search(rest + " "))
        words = [word for word in shlex.split(re.sub(r"\[[^\]]*\]", "", rest)) if word != "..."]
        if program == "dtrain-mask-rcnn" and "--config" in words:  # --config KEY=VALUE ... is no declared flag
            words.remove("--config")
        flags = self.listed(program)
        if words and flags.get(words[0]) == "command":
            flags = self.listed(program, words.pop(0))
        for name in (word.partition("=")[0] for word in words if word.startswith("--") and word != "--"):
            if name not in flags and "--" + name.removeprefix("--no") not in flags and name not in self.listed(program):
                yield f"{program} knows no {name}"
        whole = not shortened and not re.search(r"--(help|version|print_config)|(s3|https)://", rest)
        if program == "dtrain-cnn-benchmarks" and whole:
            with tempfile.TemporaryDirectory() as empty:
                done = subprocess.run([self.folder / program, *words, "--print_config"], capture_output=True, text=True,
                                      check=False, cwd=empty)
            if done.returncode:
                yield f"{program}{rest}: exit code {done.returncode}: {done.stderr.strip()[-300:]}"


class Mapping:
    """docs/coming-from.md, whose second columns may name only flags, keys and identifiers that exist."""

    GROUPS = "MODE|DATA|PREPROC|BACKBONE|FPN|MRCNN|CASCADE|RPN|FRCNN|TRAIN|TEST"

    def __init__(self, root, flags):
        text = (root / "docs/detection_keys.md").read_text(encoding="utf-8")
        self.keys = set(re.findall(r"^\| `([A-Z0-9_.]+)` \|", text, re.MULTILINE))
        self.flags = flags
        self.headers = "\n".join(path.read_text(encoding="utf-8") for folder in ("include", "libdtrain", "models", "data")
                                 for path in sorted((root / folder).rglob("*.h")))
        self.lines = (root / "docs/coming-from.md").read_text(encoding="utf-8").splitlines()

    def faults(self):
        for line in self.lines:
            cells = line.split(" | ")
            if line.startswith("|") and len(cells) > 1:
                for quoted in re.findall(r"`([^`]*)`", cells[1]):
                    yield from self.faults_of(quoted)

    def faults_of(self, quoted):
        for flag in re.findall(r"(?<![\w-])(--[a-z0-9_]+)", "" if "torchrun" in quoted else quoted):
            if flag not in self.flags and "--" + flag.removeprefix("--no") not in self.flags:
                yield f"no program knows {flag}"
        for key in re.findall(rf"\b((?:{self.GROUPS})[._][A-Z0-9_.]+)", quoted):
            if key not in self.keys:
                yield f"there is no key {key}"
        name = re.fullmatch(r"(?:\w+::)*([A-Za-z]\w+)(?:\(\))?", quoted)
        if name and name[1].upper() != name[1] and name[1] not in COMMANDS:
            if not re.search(rf"\b{name[1]}\b", self.headers):
                yield f"no header has {name[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path)
    arguments = parser.parse_args()
    root = arguments.source.resolve()
    programs = Programs(arguments.bin.resolve()) if arguments.bin else None
    faults, commands = list(check_index(root)), 0
    ours = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    for page in [*ours, root / "CONTRIBUTING.md", root / "SECURITY.md", *sorted((root / "k8s").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        found = list(check_links(page, text))
        if page in ours:
            found += check_paths(root, text)
            for line in prose_and_code(text)[1] if programs else []:
                commands += bool(PROGRAM.search(line))
                found += programs.check_command(line)
        faults += [f"{page.relative_to(root)}: {fault}" for fault in found]
    if programs:
        faults += [f"docs/coming-from.md: {fault}" for fault in Mapping(root, programs.every_flag()).faults()]
    for fault in faults:
        print(fault)
    print(f"{len(ours)} pages, {commands} commands, {len(faults)} faults")
    return 1 if faults or programs and commands < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
