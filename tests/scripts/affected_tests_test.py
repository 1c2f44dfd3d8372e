#!/usr/bin/env python3
"""Tests scripts/affected_tests.py on this checkout with the given build tree, and on a small generated project.

    affected_tests_test.py BUILD_DIR
"""
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("DTRAIN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2])).resolve()
SCRIPTS = ("affected_tests.py", "ctest_tree.py", "source_graph.py")
sys.path.insert(0, str(SOURCE / "scripts"))

import affected_tests  # noqa: E402
import ctest_tree  # noqa: E402

BUILD = sys.argv[1] if len(sys.argv) > 1 else str(SOURCE / "build-ci")


class Checkout(unittest.TestCase):
    """Changes of single files of this checkout."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.graph = affected_tests.make_graph(SOURCE, set())
        cls.fuzz = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.fuzz.cleanup)
        folder = pathlib.Path(cls.fuzz.name)  # like tests/fuzz/CMakeLists.txt
        write_tree(folder, SOURCE, {"tests/fuzz": [
            (f"fuzz.{name}", ["sh", "-c", 'exec "$@"', "sh", f"{folder}/fuzz/fuzz_{name}",
                              f"{folder}/fuzz/corpus/{name}", f"{SOURCE}/tests/fuzz/corpus/{name}"], {"LABELS": "fuzz"})
            for name in ("png", "idx")]})
        cls.trees = [ctest_tree.Tree(BUILD), ctest_tree.Tree(cls.fuzz.name)]

    def select(self, *changed: str, budget: float = 1e9) -> affected_tests.Selection:
        return affected_tests.Selection(self.graph, self.trees, set(changed), budget, 2)

    def distances(self, *changed: str) -> dict[str, float]:
        """Distances of the tests that depend on these files."""
        return {test.name: test.distance for test in self.select(*changed).affected()}

    def selected(self, selection: affected_tests.Selection) -> set[str]:
        return {test.name for test in selection.tests if selection.is_selected(test)}

    def test_change_of_an_op(self) -> None:
        everywhere = self.trees[0].all_tests
        for source in ("libdtrain/ops/roi_align.cpp", "libdtrain/ops/roi_align_cuda.cu"):
            found = self.distances(source)
            always = {"ops.roi_align", "gpu.ops.roi_align", "parity.detection_ops"} & everywhere.keys()
            if source.endswith(".cpp") or "cuda.step_graph" in everywhere:
                self.assertIn("ops.roi_align", always)
                self.assertEqual({name: found.get(name) for name in always}, dict.fromkeys(always, 1))
                self.assertLessEqual(always, self.selected(self.select(source, budget=0)))
                self.assertLess(found["models.detector"], found["apps.mask_rcnn"])
            wrong = [name for name in found if re.match(r"(data|io)\.", name)]
            self.assertEqual(wrong, [])
            self.assertNotIn("models.resnet", found)

    def test_change_of_a_reader(self) -> None:
        found = self.distances("data/png.cpp")
        self.assertEqual(found["data.png"], 1)
        self.assertLess(found["fuzz.png"], 4)
        self.assertNotIn("fuzz.idx", found)
        # It decodes an image on the host if the GPU does not.
        ops = {name for name in found if re.match(r"(gpu\.)?ops\.", name)}
        self.assertLessEqual(ops, {"ops.jpeg_decode", "gpu.ops.jpeg_decode"})
        self.assertEqual(self.distances("tests/fuzz/corpus/png/grey1")["fuzz.png"], 1)

    def test_change_of_a_kernel(self) -> None:
        found = self.distances("libdtrain/cpu/kernels/winograd.cpp")
        self.assertEqual(found["cpu.winograd"], 1)
        self.assertLess(found["ops.conv2d"], found["data.jpeg"])  # links the context with all kernels

    def test_change_of_the_emulation(self) -> None:
        found = self.distances("tests/emulation/memory.cpp")
        emulated = "emulation.kernels" in self.trees[0].all_tests
        self.assertEqual("emulation.runtime" in found and "ops.roi_align" in found, emulated)
        self.assertEqual("ops.roi_align" in found, emulated)

    def test_change_of_documents(self) -> None:
        documents = r"apps\.classify|install\.packages|readme\.(commands|documents)"
        found = self.distances("docs/models.md")
        self.assertEqual(found["apps.classify"], 1)
        self.assertEqual([name for name in found if not re.fullmatch(documents, name)], [])
        # It lists renamed flags, and is in the packages.
        found = {name for name, distance in self.distances("CHANGELOG.md").items() if distance <= 2}
        self.assertEqual([name for name in found if not re.fullmatch(r"upgrade\..*|install\.packages", name)], [])
        self.assertEqual(self.distances(".gitignore"), {})
        self.assertEqual(self.select(".gitignore").depended_on(), set())

    def test_change_of_the_build(self) -> None:
        for path in ("CMakePresets.json", "cmake/Compile.cmake", "scripts/setup.sh", "libdtrain/CMakeLists.txt"):
            selection = self.select(path, budget=0)
            self.assertEqual(len(self.selected(selection)), len({test.name for test in selection.tests}))
            self.assertEqual(selection.targets(selection.trees[0]), {"all"})
        found = self.distances("tests/distributed/CMakeLists.txt")
        self.assertIn("distributed.tcp_ranks.two", found)
        self.assertEqual([name for name in found if not re.match(r"distributed\.|k8s\.ec2_run\.", name)], [])

    def test_no_change(self) -> None:
        self.assertEqual(self.distances(), {})

    def test_every_test_is_known(self) -> None:
        self.assertEqual([test.name for test in self.select("LICENSE").tests if not test.known], [])

    def test_every_source_is_reached(self) -> None:
        """Each source affects some test: a source without a rule would never be tested."""
        selection = self.select("LICENSE")
        reached = self.graph.closure({node for test in selection.tests for node in test.roots})
        sources = self.graph.matching(r"(libdtrain|models|data|apps)/.*\.(cpp|cu)$")
        self.assertGreater(len(sources), 500)
        self.assertEqual([file for file in sources if file not in reached], [])

    def test_readers_exist(self) -> None:
        names = self.trees[0].all_tests
        for pattern, files, _ in affected_tests.READERS:
            if "install" in names or not re.match(r"install|k8s", pattern):  # not in sanitized builds
                self.assertTrue(any(re.fullmatch(pattern, name) for name in names), pattern)
            self.assertTrue(any(re.fullmatch(files, file) for file in self.graph.files), files)

    def test_targets(self) -> None:
        selection = self.select("libdtrain/ops/roi_align.cpp", budget=0)
        targets = selection.targets(selection.trees[0])
        self.assertLessEqual({"test_ops", "test_tests"}, targets)
        self.assertFalse(targets & {"all", "test_data", "test_apps"}, targets)
        if "parity.detection_ops" in selection.trees[0].all_tests:
            self.assertIn("parity_ops", targets)
        targets = self.select("tests/parity/ops.py", "tests/serve/http_test.py", budget=0).targets(selection.trees[0])
        self.assertIn("dtrain-serve", targets)
        self.assertEqual(self.select("data/png.cpp").targets(selection.trees[1]), {"fuzz_png"})


def write_tree(folder: pathlib.Path, source: pathlib.Path,
               tests: dict[str, list[tuple[str, list[str], dict[str, str]]]]) -> None:
    """Writes the files of a CMake build tree: per source folder names, commands and properties of tests."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "CMakeCache.txt").write_text(
        f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\nCMAKE_CACHEFILE_DIR:INTERNAL={folder}\n", encoding="utf-8")
    (folder / "CTestTestfile.cmake").write_text("".join(f'subdirs("{below}")\n' for below in tests), encoding="utf-8")
    for below, entries in tests.items():
        (folder / below).mkdir(parents=True, exist_ok=True)
        with open(folder / below / "CTestTestfile.cmake", "w", encoding="utf-8") as file:
            for name, command, properties in entries:
                words = " ".join('"' + re.sub(r'(["\\])', r"\\\1", word) + '"' for word in command)
                file.write(f"add_test([=[{name}]=] {words})\n")
                pairs = " ".join(f'{key} "{value}"' for key, value in properties.items())
                file.write(f"set_tests_properties([=[{name}]=] PROPERTIES  {pairs})\n")


FILES = {
    ".gitignore": "/build/\n",
    "apps/CMakeLists.txt": "dtrain_add_program(dtrain-show show)\n",
    "apps/show/main.cpp": '#include "libdtrain/ops/sum.h"\n',
    "libdtrain/ops/sum.h": "int sum(int a);\n",
    "libdtrain/ops/sum.cpp": "int unrelated(int a) {}\n",
    "libdtrain/ops/other.cpp": '#include "libdtrain/ops/sum.h"\nint sum(int a) {}\n',
    "libdtrain/ops/alone.cpp": "int nowhere(int a) {}\n",
    "libdtrain/ops/mul.h": "struct Mul {};\n",
    "libdtrain/ops/mul.cpp": "int other(int a) {}\n",
    "libdtrain/ops/mul_cpu.cpp": "int another(int a) {}\n",
    "models/net.h": '#include "libdtrain/ops/sum.h"\n#include "libdtrain/ops/mul.h"\nstruct Net {\n  void run();\n};\n',
    "models/parts.cpp": '#include "models/net.h"\nvoid Net::run() {}\n',
    "tests/main.cpp": "",
    "tests/ops/sum_test.cpp": '#include "libdtrain/ops/sum.h"\n',
    "tests/models/net_test.cpp": '#include "models/net.h"\n',
    "tests/run/run_test.py": 'import helper\nrun("dtrain-show")\ncompare(HERE / "expected")\n',
    "tests/run/helper.py": "pass\n",
    "tests/run/expected/a.txt": "a\n",
}


class Project(unittest.TestCase):
    """The program on a small generated project."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for path, text in FILES.items():
            self.add(path, text)
        (self.root / "scripts").mkdir()
        for name in SCRIPTS:
            shutil.copy(SOURCE / "scripts" / name, self.root / "scripts")
        self.build = self.root / "build"
        self.tests = {"tests": [
            ("ops.sum", [f"{self.build}/tests/test_ops", "sum"], {"LABELS": "cpu"}),
            ("models.net", [f"{self.build}/tests/test_models", "net"], {"LABELS": "cpu"}),
            ("run.one", ["python3", f"{self.root}/tests/run/run_test.py", "a\\b"],
             {"LABELS": "distributed", "COST": "10"})]}
        write_tree(self.build, self.root, self.tests)
        self.git("init", "-q")
        self.commit()

    def add(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True,
                       stdout=subprocess.DEVNULL, env=dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null"))

    def commit(self) -> None:
        self.git("add", ".")
        self.git("commit", "-q", "-m", "a change")

    def run_script(self, *arguments: str, code: int = 0) -> str:
        result = subprocess.run([sys.executable, "-B", self.root / "scripts" / SCRIPTS[0], *arguments],
                                capture_output=True, text=True, check=False, cwd=self.root)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stderr if code else result.stdout

    def selected(self, *arguments: str, tree: str = "build") -> list[str]:
        self.output = self.run_script(*arguments, tree)
        return self.written("tests.txt").splitlines()

    def written(self, name: str) -> str:
        return (self.build / f"affected_{name}").read_text(encoding="utf-8")

    def test_kinds_of_changes(self) -> None:
        self.assertEqual(self.selected(), [])
        self.assertIn("No file has changed since", self.output)
        self.assertEqual(self.written("tests.regex"), "^$\n")
        self.add("models/parts.cpp", '#include "models/net.h"\nvoid Net::run() { }\n')
        self.assertEqual(self.selected(), ["models.net"])
        self.assertIn("Left out: 2 tests independent of the change", self.output)
        self.assertEqual(self.written("targets.txt"), "test_models\n")
        self.commit()
        self.assertEqual(self.selected(), [])
        self.assertEqual(self.selected("--since", "HEAD~1"), ["models.net"])
        (self.root / "tests/run/expected/a.txt").unlink()
        self.add("tests/notes", "untracked")
        self.assertEqual(self.selected("--budget", "0"), ["run.one"])
        self.assertIn("No test depends on tests/notes", self.output)
        self.assertEqual(self.written("targets.txt"), "dtrain-show\n")
        self.assertEqual(self.selected(tree="build:cpu"), [])
        self.assertEqual(self.selected(tree="build:cpu|distributed"), ["run.one"])

    def test_implementations(self) -> None:
        everything = ["ops.sum", "models.net", "run.one"]
        for path in ("libdtrain/ops/sum.cpp", "libdtrain/ops/other.cpp", "libdtrain/ops/alone.cpp"):
            self.assertEqual(self.selected("--file", path), everything, path)
        for path in ("libdtrain/ops/mul.cpp", "libdtrain/ops/mul_cpu.cpp", "models/parts.cpp"):
            self.assertEqual(self.selected("--file", path), ["models.net"], path)
        self.assertEqual(self.selected("--file", "tests/run/helper.py"), ["run.one"])
        self.assertEqual(self.selected("--file", "tests/main.cpp", "--budget", "0"), everything[:2])
        self.add("new/CMakeLists.txt", "")
        self.add("CMakeLists.txt", "")
        self.assertEqual(self.selected("--file", "new/CMakeLists.txt"), [])
        self.assertEqual(self.selected("--file", "CMakeLists.txt", "--budget", "0"), everything)
        self.assertEqual(self.written("targets.txt"), "all\n")

    def test_unknown_tests_are_selected(self) -> None:
        self.tests["tests"].append(("odd", ["true"], {}))
        write_tree(self.build, self.root, self.tests)
        self.assertEqual(self.selected("--file", "tests/run/helper.py"), ["run.one", "odd"])
        self.assertIn("Selected because no source of them is known: odd", self.output)

    def test_budget(self) -> None:
        """Near tests first, then cheap ones; cheaper tests may fit after one that exceeds the budget."""
        self.add("models/b.h", '#include "models/net.h"\n')
        self.tests["tests"] = self.tests["tests"][:1]
        seconds = {"near_a": 30, "near_b": 30, "near_big": 50, "near_c": 30, "far_cheap": 5, "far_big": 40}
        for name in seconds:
            header = "net" if name.startswith("near") else "b"
            self.add(f"tests/models/{name}_test.cpp", f'#include "models/{header}.h"\n')
            self.tests["tests"].append((f"models.{name}", [f"{self.build}/tests/test_models", name], {}))
        write_tree(self.build, self.root, self.tests)
        self.add("build/Testing/Temporary/CTestCostData.txt",
                 "".join(f"models.{name} 1 {cost}\n" for name, cost in seconds.items()) + "---\n")
        change = ("--file", "libdtrain/ops/sum.cpp", "--jobs", "2", "--budget")
        for budget, names in (("0", []), ("31", ["near_a", "near_b"]),
                              ("50", ["near_a", "near_b", "near_c", "far_cheap"]), ("200", list(seconds))):
            self.assertEqual(self.selected(*change, budget), ["ops.sum"] + ["models." + name for name in names])
            if budget == "0":
                self.assertIn("Over the budget of 0 s", self.output)
            elif budget == "50":
                self.assertIn("1 have not run yet", self.output)  # ops.sum counts 2 s
                self.assertIn("Left out: 2 tests at distance 2 or more, over the budget of 50 s: "
                              "models.far_big, models.near_big 90 s", self.output)

    def test_seconds_of_the_last_run(self) -> None:
        """ctest averages the last time with the property COST, and without it with all earlier times."""
        self.add("build/Testing/Temporary/CTestCostData.txt", "ops.sum 3 7\nrun.one 3 7.5\ngone 2 3\n---\nops.sum\n")
        self.assertEqual(ctest_tree.Tree(str(self.build)).costs, {"ops.sum": 7, "run.one": 2.5})

    def test_ctest_takes_the_expression(self) -> None:
        names = ["a.b", "axb", "a.b.c", "d+(e)", "d"]
        scripts = {name: "a.sh" if name in ("a.b", "d+(e)") else "b.sh" for name in names}
        self.tests["tests"] = [(name, ["true", f"{self.root}/tests/run/{script}"], {}) for name, script in
                               scripts.items()]
        write_tree(self.build, self.root, self.tests)
        self.add("tests/run/a.sh", "")
        self.add("tests/run/b.sh", "")
        self.assertEqual(self.selected("--file", "tests/run/a.sh"), ["a.b", "d+(e)"])
        if not shutil.which("ctest"):
            self.skipTest("there is no ctest")
        listed = subprocess.run(["ctest", "--test-dir", self.build, "-N", "-R", self.written("tests.regex").strip()],
                                capture_output=True, text=True, check=True).stdout
        self.assertEqual(re.findall(r"Test +#\d+: (\S+)", listed), ["a.b", "d+(e)"])

    def test_fixtures_and_other_trees(self) -> None:
        image = self.root / "build-image"
        self.tests["tests"] = [
            ("image.build", [f"{self.root}/tests/run/a.sh", str(image)], {"FIXTURES_SETUP": "image"}),
            ("image.run", [f"{self.root}/tests/run/b.sh"], {"FIXTURES_REQUIRED": "image", "LABELS": "k8s"})]
        write_tree(self.build, self.root, self.tests)
        write_tree(image, self.root, {})
        for name in ("a", "b"):
            self.add(f"tests/run/{name}.sh", "")
        self.run_script("--file", "tests/run/b.sh", "build", "build-image")
        self.assertEqual(self.written("tests.txt"), "image.build\nimage.run\n")
        self.assertEqual((image / "affected_targets.txt").read_text(encoding="utf-8"), "programs\n")
        self.assertEqual(self.selected("--file", "tests/run/a.sh"), ["image.build", "image.run"])

    def test_errors(self) -> None:
        for arguments, message in (
                (("--since", "nowhere", "build"), "--since=nowhere: not a commit"),
                (("absent",), "absent: not a build tree"),
                (("build:(",), "build:(: the labels are not a regular expression"),
                (("--file", "absent.cpp", "build"), "absent.cpp")):
            text = self.run_script(*arguments, code=2)
            self.assertIn(message, text)
            self.assertEqual(len(text.splitlines()), 1, text)


if __name__ == "__main__":
    if affected_tests.git(SOURCE, "rev-parse", "HEAD") is None:
        print(f"SKIPPED: there is no git checkout in {SOURCE}")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1])
