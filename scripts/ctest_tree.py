"""The tests of a configured build tree, for affected_tests.py."""

import dataclasses
import math
import os
import pathlib
import re

# An argument in CMake's language: in brackets, in quotes, or bare.
WORD = re.compile(r'\[=*\[(.*?)\]=*\]|"((?:[^"\\]|\\.)*)"|([^\s"]+)', re.S)
DEFAULT_SECONDS = 2.0  # of a test that has not run yet


class Invalid(Exception):
    """An invalid argument; the text states the error and the remedy."""


@dataclasses.dataclass
class Test:
    """A ctest entry."""
    name: str
    tree: str
    folder: str  # of the CMake file that defines it, from the root of the sources
    command: list[str]
    properties: dict[str, str] = dataclasses.field(default_factory=dict)
    # Named by its command and environment: paths in its build tree, paths in the sources, names of other build trees.
    built: set[str] = dataclasses.field(default_factory=set)
    named: set[str] = dataclasses.field(default_factory=set)
    others: set[str] = dataclasses.field(default_factory=set)
    whole: bool = False  # needs a complete build of its tree
    # Set by affected_tests.Selection:
    roots: dict[str, int] = dataclasses.field(default_factory=dict)  # its sources and their distances
    readers: list[tuple[re.Pattern[str], int]] = dataclasses.field(default_factory=list)  # patterns of files it reads
    setups: list["Test"] = dataclasses.field(default_factory=list)  # of its fixtures
    known: bool = False  # whether a file that it depends on is known, apart from CMake's
    seconds: float = DEFAULT_SECONDS
    timed: bool = False  # seconds are of earlier runs
    distance: float = math.inf

    def items(self, key: str) -> list[str]:
        return [item for item in self.properties.get(key, "").split(";") if item]

    def load(self, jobs: int) -> float:
        """Processor-seconds: its duration times the processors that it occupies."""
        serial = self.properties.get("RUN_SERIAL", "").upper() in ("1", "ON", "TRUE")
        return self.seconds * (jobs if serial else min(jobs, int(self.properties.get("PROCESSORS", "1"))))

    def find_paths(self, source: str, build: str) -> None:
        """Sets built, named, others and whole. Ignores the folders of programs and sources, which are in the
        environment of all tests."""
        variables = [item.partition("=")[2] for item in self.items("ENVIRONMENT")]
        for path in re.findall(r"(?<![\w.-])/[^\s'\";:=]+", "\n".join(self.command + variables)):
            if path == build or path.startswith(build + "/"):
                self.built.add(os.path.relpath(path, build))
            elif path.startswith(source + "/build"):
                self.others.add(path[len(source) + 1:].split("/")[0])
            elif path.startswith(source + "/"):
                self.named.add(os.path.relpath(path, source))
        self.built.discard("bin")
        self.whole = bool(self.others) or "." in self.built and self.command[0].endswith(".sh")


class Tree:
    """A configured build tree: its tests and how long they take."""

    def __init__(self, argument: str) -> None:
        path, _, self.labels = argument.partition(":")
        self.path = pathlib.Path(path)
        try:
            cache = (self.path / "CMakeCache.txt").read_text(encoding="utf-8")
        except OSError:
            raise Invalid(f"{path}: not a build tree (no CMakeCache.txt). "
                          "Configure it: cmake --preset NAME") from None
        try:
            re.compile(self.labels)
        except re.error as error:
            raise Invalid(f"{argument}: the labels are not a regular expression: {error}") from None
        self.source = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache, re.M)[1]
        self.build = re.search(r"^CMAKE_CACHEFILE_DIR:INTERNAL=(.*)$", cache, re.M)[1]
        self.all_tests: dict[str, Test] = {}
        self._read_tests(self.path)
        for test in self.all_tests.values():
            test.find_paths(self.source, self.build)
        self.tests = [test for test in self.all_tests.values() if self._has_label(test)]
        self._read_costs()

    def _has_label(self, test: Test) -> bool:
        return not self.labels or any(re.search(self.labels, label) for label in test.items("LABELS"))

    def _read_tests(self, folder: pathlib.Path) -> None:
        """Parses CTestTestfile.cmake, since `ctest --show-only` omits the command of a program that is not built."""
        path = folder / "CTestTestfile.cmake"
        text = path.read_text(encoding="utf-8") if path.exists() else ""  # absent in folders without tests
        for call in re.finditer(r"^(add_test|set_tests_properties|subdirs)\((.*?)\)$", text, re.M | re.S):
            words = [re.sub(r"\\(.)", r"\1", word[2]) if word.lastindex == 2 else word[word.lastindex or 0]
                     for word in WORD.finditer(call[2])]
            if call[1] == "subdirs":
                self._read_tests(folder / words[0])
            elif call[1] == "add_test":
                below = os.path.relpath(folder, self.path)
                self.all_tests[words[0]] = Test(words[0], str(self.path), below, words[1:])
            elif words[0] in self.all_tests:
                self.all_tests[words[0]].properties.update(zip(words[2::2], words[3::2]))

    def _read_costs(self) -> None:
        """Reads seconds of earlier runs. For tests with a property COST, ctest averages them with COST; undo this."""
        try:
            lines = (self.path / "Testing/Temporary/CTestCostData.txt").read_text(encoding="utf-8").splitlines()
        except OSError:
            lines = []
        self.costs: dict[str, float] = {}
        for line in lines:
            fields = line.split(" ")
            if len(fields) != 3 or fields[0] not in self.all_tests or int(fields[1]) == 0:
                continue
            runs, average = int(fields[1]), float(fields[2])
            cost = float(self.all_tests[fields[0]].properties.get("COST", average))
            self.costs[fields[0]] = max(0.0, average * runs - cost * (runs - 1))
