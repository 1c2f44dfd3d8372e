"""Dependency graph of the repository's files, for affected_tests.py.

A node is a file that git tracks or does not ignore. An edge leads from a file to
- an included file, and a header's implementation: sources with its stem, with or without _cpu or _cuda, and sources
  that define a function or class member that it declares. A header and its implementation are at the same distance,
  because each includer of the header links the implementation;
- for tests and scripts: an imported module, a mentioned program `dtrain-NAME`, or a mentioned file.
A test or script that mentions a folder reads its files at distance 2, or 1 if the folder is below its own. It does not
depend on the dependencies of those files.
"""

import collections
import collections.abc
import heapq
import os
import pathlib
import re

CPP = (".h", ".cuh", ".cpp", ".cu")
SCRIPTS = (".py", ".sh", ".bash")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)
# A declaration or definition at the start of a line: optional class, and name.
FUNCTION = re.compile(r"^(?!inline|constexpr|static|return|using|typedef|namespace|template|__global__|__device__)"
                      r"[A-Za-z_][^\n(=;]*?(?:\b(\w+)::|\b)(~?\w+)\(", re.M)
# A path, with an optional prefix that shows that it is relative to the root or to the folder of the file.
MENTION = re.compile(r"((?:\b(?:ROOT|SOURCE|HERE|root|source|here)\}?|source_dir\(\)|parents\[\d\]) ?/ ?\"?)?"
                     r"(\b\w[\w.-]*(?:/[\w.-]+)*)")
# A comment of a script, or a string in triple quotes, with the text before a docstring in its line.
COMMENT = re.compile(r'^([ \t]*)(?:# [^\n]*|""".*?""")|""".*?"""', re.M | re.S)
CLASS = re.compile(r"\b(?:class|struct) (\w+)[^;{()]*\{")
# The roots of include paths; the CUDA emulation has headers that replace others.
INCLUDE_ROOTS = ("", "include/", "tests/emulation/include/", "tests/emulation/stand_ins/")
# Files that only builds with CUDA, or only builds with the emulation, compile.
CUDA_ONLY = r"libdtrain/cuda/|.*_cuda\.(cu|cpp)$|tests/cuda/"
EMULATED_ONLY = r"tests/emulation/"
# Files that mention other files as examples only.
EXAMPLES_ONLY = ("scripts/affected_tests.py", "scripts/source_graph.py", "tests/scripts/affected_tests_test.py")
PROCESSOR_CHECK = "apps/cli/processor_check.cpp"  # linked into every program, without a declaration
LIBRARIES = ("libdtrain/", "models/", "data/", "apps/")


def stem_of(path: str) -> str:
    return os.path.splitext(path)[0]


def public_stem(stem: str) -> str:
    """The public header that a source of the libraries implements: include/dtrain/ops/pool of libdtrain/ops/pool."""
    return "include/dtrain/" + stem.removeprefix("libdtrain/")


def sources_of(header: str) -> str:
    """The folder of a header's implementation."""
    folder = os.path.dirname(header)
    if not folder.startswith("include/dtrain"):
        return folder
    folder = folder.removeprefix("include/dtrain").removeprefix("/")
    return folder if folder.startswith(("data", "models")) else os.path.normpath("libdtrain/" + folder)


class SourceGraph:
    """Files, and edges from each file to its dependencies."""

    def __init__(self, root: pathlib.Path, files: set[str]) -> None:
        self.root, self.files = root, files
        self.edges: dict[str, dict[str, int]] = collections.defaultdict(dict)
        self._reads: dict[str, dict[str, int]] = collections.defaultdict(dict)
        self._folders: dict[str, list[str]] = collections.defaultdict(list)  # all files below each
        self._by_name: dict[str, list[str]] = collections.defaultdict(list)
        for file in sorted(files):
            self._by_name[os.path.basename(file)].append(file)
            for parent in pathlib.PurePosixPath(file).parents:
                self._folders[str(parent)].append(file)
        cmake = self._text("apps/CMakeLists.txt")
        self._programs = dict(re.findall(r"^dtrain_add_program\((\S+) (\w+)", cmake, re.M))
        self._executables = {self._executable_name(file): file for file in sorted(files)
                             if re.match(r"tests/.*(?<!_test)\.cpp$", file)}
        self._texts = {file: re.sub(r"//[^\n]*", "", self._text(file)) for file in files if file.endswith(CPP)}
        self._add_includes()
        self._add_implementations()
        for file in sorted(files):
            if self.is_test_side(file):
                self._add_mentions(file)

    def _text(self, file: str) -> str:
        try:
            return (self.root / file).read_text(encoding="utf-8", errors="replace")
        except OSError:  # deleted, or a dangling link
            return ""

    @staticmethod
    def _executable_name(file: str) -> str:
        """The target that tests/*/CMakeLists.txt create for a source that is not a *_test.cpp."""
        folder, _, name = stem_of(file).removeprefix("tests/").rpartition("/")
        if folder == "parity":
            return name
        return "fuzz_" + name if folder == "fuzz" else f"test_{folder}_{name}".replace("/", "_")

    def _add(self, source: str, target: str, distance: int) -> None:
        if source != target:
            self.edges[source][target] = min(distance, self.edges[source].get(target, distance))

    # Compiled files.

    def _add_includes(self) -> None:
        for file, text in self._texts.items():
            for name in INCLUDE.findall(text):
                self._add_included(file, name)
        for file in ("README.md",):  # its example is compiled
            for name in INCLUDE.findall(self._text(file)):
                self._add_included(file, name)

    def _add_included(self, file: str, name: str) -> None:
        for path in [prefix + name for prefix in INCLUDE_ROOTS] + [os.path.join(os.path.dirname(file), name)]:
            if path in self.files:
                self._add(file, path, 1)

    def _add_implementations(self) -> None:
        functions = {file: set(FUNCTION.findall(text)) for file, text in self._texts.items()}
        headers = {file: (set(CLASS.findall(text)), {name for scope, name in functions[file] if not scope})
                   for file, text in self._texts.items() if file.endswith((".h", ".cuh"))}
        linked = self.programs().keys() | {PROCESSOR_CHECK}
        for program in self.programs():
            self._add(program, PROCESSOR_CHECK, 1)
        pairs = []  # added last: includes of implementations are not includes of headers
        for source in self._texts:
            if not source.endswith((".cpp", ".cu")) or source.endswith("_test.cpp"):
                continue
            stems = {stem_of(source), re.sub("_(cpu|cuda)$", "", stem_of(source))}
            implemented = {stem + end for stem in stems | set(map(public_stem, stems))
                           for end in (".h", ".cuh")} & headers.keys()
            for header in self.closure([source]) & headers.keys():
                classes, names = headers[header]
                if self._may_implement(header, source) and any(
                        scope in classes if scope else name in names for scope, name in functions[source]):
                    implemented.add(header)
            if not implemented and source.startswith(LIBRARIES) and source not in linked:  # of what uses its folder
                implemented = {header for header in headers if sources_of(header) == os.path.dirname(source)}
            pairs += [(header, source) for header in implemented]
        for header, source in pairs:
            self._add(header, source, 0)

    @staticmethod
    def _may_implement(header: str, source: str) -> bool:
        """Functions of the same name in two programs are different functions. The dispatch table of kernels declares
        the functions of all kernels, but kernels are not its implementation."""
        if header == "libdtrain/cpu/kernels/table.h" and os.path.dirname(source) == os.path.dirname(header):
            return False
        engine, folder = ("libdtrain", "tests/emulation"), sources_of(header)
        return folder == os.path.dirname(source) or folder.startswith(engine) and source.startswith(engine)

    # Programs that are run, and files that are read.

    def is_test_side(self, file: str) -> bool:
        """True for files that run programs and read files of the repository by name."""
        if file.startswith("tests/") and file.endswith(CPP):
            return True
        return file.startswith(("tests/", "k8s/", "scripts/")) and (
            file.endswith(SCRIPTS) or "." not in os.path.basename(file) and self._text(file).startswith("#!"))

    def _add_mentions(self, file: str) -> None:
        here = os.path.dirname(file)
        text = self._texts.get(file) or COMMENT.sub(
            lambda match: match[0] if match[1] is None else "", self._text(file))
        if file.endswith(".py"):
            for name in set(re.findall(r"^\s*(?:import|from) (\w+)", text, re.M)):
                beside = f"{here}/{name}.py"
                for module in [beside] if beside in self.files else self._by_name[name + ".py"]:
                    self._add(file, module, 1)
        if file in EXAMPLES_ONLY:
            return
        text = re.sub(r'"\s*/\s*f?"', "/", INCLUDE.sub("", text))  # "a" / "b" is a path, too
        names = set(re.findall(r"\bdtrain-(?:[\w-]+|\*)", text)) if self._runs_programs(file, text) else set()
        for source, name in self.programs().items():
            if names & {name, "dtrain-*"}:
                self._add(file, source, 1)
        for rooted, mentioned in set(MENTION.findall(text)):
            path = mentioned.rstrip(".")
            for node in (path, f"{here}/{path}"):
                node = os.path.normpath(node) if ".." in node else node
                if node in self.files:
                    self._add(file, node, 1)
                elif node in self._folders and node != "." and (rooted or "/" in path):
                    distance = 1 if node.startswith(here + "/") else 2
                    self._reads[file] |= {found: distance for found in self._folders[node] if found != file}

    @staticmethod
    def _runs_programs(file: str, text: str) -> bool:
        """False for files that mention programs which run in a cluster: scripts of k8s/, and tests that do not use a
        folder of programs."""
        return not file.startswith(("k8s/", "tests/k8s/")) or (
            file.startswith("tests/") and re.search(r"\bPROGRAMS\b|\bBINARIES\b|\bbin\b", text) is not None)

    def nodes_of(self, path: str) -> list[str]:
        """A file, or the files of a folder."""
        return [path] if path in self.files else self._folders.get(path, [])

    # Queries.

    def program(self, name: str) -> str | None:
        """The source of an installed program."""
        return f"apps/{self._programs[name]}/main.cpp" if name in self._programs else None

    def programs(self) -> dict[str, str]:
        """Maps the source of each program to its name."""
        return {f"apps/{folder}/main.cpp": name for name, folder in self._programs.items()}

    def executable(self, name: str) -> str | None:
        """The source of a single-source test program, or of a module that it loads."""
        return self._executables.get(stem_of(name).removeprefix("lib"))

    def test_source(self, name: str) -> str | None:
        """The source of a ctest entry such as ops.conv2d."""
        path = f"tests/{name.replace('.', '/')}_test.cpp"
        return path if path in self.files else None

    def matching(self, pattern: str) -> list[str]:
        """Files whose paths begin with a match of the pattern."""
        found = re.compile(pattern)
        return [file for file in sorted(self.files) if found.match(file)]

    def closure(self, nodes: collections.abc.Iterable[str],
                follow: collections.abc.Callable[[str], bool] = lambda node: True) -> set[str]:
        """The nodes and their transitive dependencies. Ignores edges of nodes that `follow` rejects."""
        found = set(nodes)
        waiting = list(found)
        while waiting:
            node = waiting.pop()
            new = self.edges[node].keys() - found if node in self.edges and follow(node) else set()
            found |= new
            waiting += new
        return found

    def read(self, nodes: set[str]) -> set[str]:
        """The nodes and the files of folders that they mention."""
        return nodes.union(*(self._reads[node] for node in nodes if node in self._reads))

    def distances(self, changed: set[str], emulated: bool, cuda: bool) -> dict[str, int]:
        """The number of edges from each file to the nearest changed file, in a build with these CUDA options."""
        reverse = collections.defaultdict(list)
        for source, targets in self.edges.items():
            for target, distance in targets.items():
                reverse[target].append((source, distance))
        absent = re.compile("|".join([EMULATED_ONLY] * (not emulated) + [CUDA_ONLY] * (not cuda)) or "$^")
        distances: dict[str, int] = {}
        waiting = [(0, file) for file in changed]
        waiting += [(files[file], reader) for reader, files in self._reads.items() for file in files.keys() & changed]
        heapq.heapify(waiting)
        while waiting:
            distance, node = heapq.heappop(waiting)
            if node in distances or absent.match(node):
                continue
            distances[node] = distance
            for source, step in reverse[node]:
                heapq.heappush(waiting, (distance + step, source))
        return distances
