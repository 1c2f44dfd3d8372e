#!/usr/bin/env python3
"""migration.py BUILD_DIR COMPILER: programs for dtrain 0.1 compile against the installed library after
scripts/migrate_0_1_to_0_2.py, and docs/migration.md has the script's table.

programs_0_1/ holds the examples of commit 70d1283 and ten programs that include its other public headers.
"""
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPT = ROOT / "scripts/migrate_0_1_to_0_2.py"
BEFORE = "70d1283"
EXCLUDED = re.compile(r"libdtrain/(cpu|cuda)/|.*/(mpi|nccl|tcp)_|data/jpeg_")  # not installed by 0.1
RUN = ("all_ops", "coco")


def output_of(*command: str, **options) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def check_table(page: str) -> None:
    rows = {(cells[1].strip().strip("`"), cells[2].strip().strip("`"))
            for cells in (line.split("|") for line in page.split("### To change by hand")[0].splitlines())
            if len(cells) == 5 and "`" in cells[1]}
    listed = {tuple(line.split(" -> ")) for line in output_of(SCRIPT, "--list").splitlines()}
    assert rows == listed and len(rows) > 20, f"docs/migration.md and the script differ: {sorted(rows ^ listed)}"


def check_headers(page: str, included: set[str]) -> None:
    """Each header that 0.1 installed is used by a program or stated to be private. Needs the repository's history."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-tree", "-r", "--name-only", BEFORE, "libdtrain/", "models/",
                             "data/"], capture_output=True, text=True, check=False)
    if listed.returncode:
        print(f"commit {BEFORE} is not in this repository's history: headers are not compared")
        return
    private = {folder + name for folder, names in re.findall(r"^\| `([\w/]+/)` \| (.*) \|$", page, re.M)
               for name in re.findall(r"`([\w.]+)`", names)}
    headers = {path for path in listed.stdout.split() if path.endswith(".h") and not EXCLUDED.match(path)}
    assert len(headers) > 250 and headers <= included | private, f"not covered: {sorted(headers - included - private)}"
    assert not included & private, f"programs use private headers: {sorted(included & private)}"


def check_aliases(page: str, compiler: str, flags: list[str], place: pathlib.Path) -> None:
    """Deprecated types compile, each with a warning."""
    names = re.findall(r"^\| `((?:\w+::)*[A-Z]\w+)` \| `[\w:]+` \| deprecated \|$", page, re.M)
    source = place / "aliases.cpp"
    headers = ("dtrain/dtrain.h", "dtrain/data/coco/evaluate.h", "dtrain/data/detection.h",
               "dtrain/models/classifier.h")
    source.write_text("".join(f"#include <{header}>\n" for header in headers) +
                      "".join(f"using T{i} = dtrain::{name};\n" for i, name in enumerate(names)), encoding="utf-8")
    done = subprocess.run([compiler, "-fsyntax-only", str(source), *flags], capture_output=True, text=True, check=False)
    warned = [name for i, name in enumerate(names) if re.search(rf"aliases\.cpp:{len(headers) + i + 1}:.*deprecated",
                                                                done.stderr)]
    assert done.returncode == 0 and warned == names and len(names) > 10, done.stderr[:4000]


def main() -> None:
    build, compiler = sys.argv[1:]
    page = (ROOT / "docs/migration.md").read_text(encoding="utf-8")
    check_table(page)
    sources = sorted((HERE / "programs_0_1").glob("*.cpp"))
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    check_headers(page, set(re.findall(r'^#include "(\S+)"', text, re.M)))
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        shutil.copytree(HERE / "programs_0_1", place / "programs")
        report = output_of(SCRIPT, str(place / "programs"))
        assert report.count(": changed") == len(sources) == 14, report
        assert output_of(SCRIPT, str(place / "programs")) == "", "a second run changes programs again"

        output_of("cmake", "--install", build, "--prefix", str(place / "prefix"))
        package = next((place / "prefix").rglob("dtrain.pc"))
        environment = {**os.environ, "PKG_CONFIG_PATH": str(package.parent),
                       "LD_LIBRARY_PATH": str(package.parents[1])}
        flags = shlex.split(output_of("pkg-config", "--cflags", "dtrain", env=environment))
        libraries = shlex.split(output_of("pkg-config", "--libs", "dtrain", env=environment))
        check_aliases(page, compiler, flags, place)
        warnings = ["-Wall", "-Wextra", "-Wno-deprecated-declarations", "-Werror"]

        def compile_program(path: pathlib.Path) -> None:
            linked = path.stem in RUN
            kind = ["-o", str(path.with_suffix(""))] if linked else ["-fsyntax-only"]
            done = subprocess.run([compiler, *warnings, *kind, str(path), *flags, *(libraries if linked else [])],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{path.name}: {done.stderr[:4000]}"

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            list(threads.map(compile_program, sorted((place / "programs").glob("*.cpp"))))
        for name in RUN:
            print(output_of(str(place / "programs" / name), env=environment), end="")


if __name__ == "__main__":
    main()
