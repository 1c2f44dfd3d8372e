#!/usr/bin/env python3
"""Tests scripts/test_times.py on synthetic records, and the functions of scripts/test.sh that write records."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("DTRAIN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
SCRIPT = SOURCE / "scripts" / "test_times.py"
TICK = os.sysconf("SC_CLK_TCK")
ENGINE = "lib/CMakeFiles/engine.dir"


class Run:
    """A source folder with build trees, and the records of a run."""

    def __init__(self, folder: str) -> None:
        self.source = pathlib.Path(folder)
        self.records = self.source / "records"
        self.records.mkdir()
        self.clock = 1000.0
        (self.records / "phases.tsv").touch()

    def event(self, name: str, kind: str, tree: str, event: str, time: float, cpu_s: float, machine: str) -> None:
        own = f"7 (ba sh)) S {' '.join(['1'] * 10)} 0 0 0 {int(cpu_s * TICK)} 20"
        with open(self.records / "phases.tsv", "a", encoding="utf-8") as file:
            file.write(f"{name}\t{kind}\t{tree}\t{event}\t{time}\t{own}\t{machine}\n")

    def phase(self, name: str, kind: str, tree: str, wall_s: float = 10, cpu_s: float = 20, others_s: float = 0,
              steal_s: float = 0, status: int = 0, start: float | None = None) -> None:
        """A phase on two processors, after the phase before unless it has a start."""
        start = self.clock if start is None else start
        idle = 2 * wall_s - cpu_s - others_s - steal_s
        jiffies = [int(seconds * TICK) for seconds in (cpu_s + others_s, 0, 0, idle, 0, 0, 0, steal_s)]
        self.event(name, kind, tree, "start", start, 3, "cpu  " + " ".join(["5"] * 10))
        self.event(name, kind, tree, str(status), start + wall_s, 3 + cpu_s,
                   "cpu  " + " ".join(str(5 + count) for count in jiffies) + " 5 5")
        self.clock = max(self.clock, start + wall_s)

    def build(self, tree: str, entries: dict[str, float], **phase) -> None:
        """Adds a phase that built `tree`: seconds per output."""
        self.add(f"{tree}/.ninja_log", "# ninja log v5\n" + "".join(
            f"10\t{10 + round(seconds * 1000)}\t{number}\t{output}\t{number:x}\n"
            for number, (output, seconds) in enumerate(entries.items())))
        self.add(f"{tree}/build.ninja", "\n".join(
            f"build {output}: CXX_EXECUTABLE_LINKER__x in.o || dep" for output in entries if output.startswith("bin/")))
        self.phase(f"build-{tree}", "build", tree, **phase)

    def test(self, tree: str, seconds: dict[str, float | None], labels: dict[str, str] | None = None,
             **phase) -> None:
        """Adds a phase that ran tests: seconds, or None if skipped; `labels` may have more tests."""
        labels = {name: "cpu" for name in seconds} | (labels or {})
        self.add(f"{tree}/CTestTestfile.cmake", "".join(
            f'add_test({name} "true")\nset_tests_properties({name} PROPERTIES LABELS "{label}")\n'
            for name, label in labels.items()))
        self.add(f"records/test-{tree}.xml", "<testsuite>" + "".join(
            f'<testcase name="{name}" time="{time or 0}" status="{"notrun" if time is None else "run"}"/>'
            for name, time in seconds.items()) + "</testsuite>")
        self.phase(f"test-{tree}", "tests", tree, **phase)

    def add(self, name: str, text: str) -> None:
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def report(self, limits: str = "") -> tuple[int, str, dict]:
        """Exit status, output, and the JSON file."""
        self.add("limits.txt", limits)
        done = subprocess.run([sys.executable, "-B", SCRIPT, self.records, "--source", self.source, "--budget",
                               self.source / "limits.txt"], capture_output=True, text=True)
        path = self.records / "times.json"
        result = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return done.returncode, done.stdout + done.stderr, result


class TestTimes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_ = Run(os.path.realpath(folder.name))

    def over(self, limits: str = "") -> tuple[int, dict[str, bool]]:
        """Exit status, and per name over its budget whether it fails."""
        status, text, result = self.run_.report(limits)
        self.assertIn(status, (0, 1), text)
        return status, {row["name"]: row["fails"] for row in result["over_budget"]}

    def stale(self, limits: str) -> dict[str, str]:
        _, text, result = self.run_.report(limits)
        self.assertTrue(result, text)
        return {row["pattern"]: row["why"] for row in result["no_longer_needed"]}

    def test_sums(self) -> None:
        run = self.run_
        run.build("fast", {f"{ENGINE}/a.cpp.o": 4, f"{ENGINE}/b.cpp.o": 2.5, f"{ENGINE}/c.cpp.o": 0.02, "bin/x": 1,
                           "generated.h": 9}, wall_s=30, cpu_s=12)
        run.test("fast", {"a": 1.5, "b": 2, "c": None}, {"b": "cpu;slow", "other": "gpu"}, wall_s=5, cpu_s=4, status=8)
        status, text, result = run.report()
        self.assertEqual(status, 0, text)
        self.assertEqual(result["phases"], [
            {"name": "build-fast", "kind": "build", "tree": "fast", "status": 0, "wall_s": 30, "cpu_s": 12, "share": 1},
            {"name": "test-fast", "kind": "tests", "tree": "fast", "status": 8, "wall_s": 5, "cpu_s": 4, "share": 1}])
        self.assertEqual(result["trees"], [{"tree": "fast", "wall_s": 30, "compile_s": 6.52, "compilations": 3,
                                            "cached": 1, "links": 1}])
        self.assertEqual(result["labels"], [
            {"label": "cpu", "tree": "fast", "tests": 2, "skipped": 1, "seconds": 3.5},
            {"label": "slow", "tree": "fast", "tests": 1, "skipped": 0, "seconds": 2}])
        self.assertEqual(result["total"], {"wall_s": 35, "cpu_s": 16})
        self.assertEqual(sorted(result["machine"]), ["commit", "cores", "cpu", "date", "load"])
        for line in (r"build-fast +fast +30\.0 +12\.0 +100 +0", r"fast +30\.0 +6\.5 +3 +1 +1",
                     r"cpu +fast +2 +1 +3\.5", r"Total: 35 s wall, 16 s CPU"):
            self.assertRegex(text, line)

    def test_entries_of_earlier_builds(self) -> None:
        """Neither they nor their order count; an edge with several outputs counts once."""
        run = self.run_
        run.build("fast", {})
        old = f"7\t90007\t1\t{ENGINE}/old.cpp.o\taa\n8\t9\t1\tbin/old\tee\n"
        new = f"5\t1005\t2\t{ENGINE}/new.cpp.o\tbb\n6\t16\t3\tbin/x\tcc\n6\t16\t3\tbin/y\tcc\n"
        run.add("records/build-fast.ninja_log", f"# ninja log v5\n8\t9\t1\tgone.o\tdd\n{old}")
        run.add("fast/.ninja_log", f"# ninja log v5\n{new}{old}")
        run.add("fast/build.ninja", "build bin/old: CXX_EXECUTABLE_LINKER__o in.o\n"
                "build bin/x bin/y | z: CXX_SHARED_LIBRARY_LINKER__x in.o\nbuild w: phony bin/x\n")
        _, _, result = run.report()
        self.assertEqual(result["trees"], [{"tree": "fast", "wall_s": 10, "compile_s": 1, "compilations": 1,
                                            "cached": 0, "links": 1}])
        self.assertEqual([row["name"] for row in result["slowest_compilations"]], [f"{ENGINE}/new.cpp.o"])

    def test_slowest(self) -> None:
        run = self.run_
        for tree, first in (("fast", 0.25), ("checked", 0.75)):
            run.build(tree, {f"{ENGINE}/f{number}.cpp.o": first + number for number in range(10)})
            run.test(tree, {f"t{number}": first + 2 * number for number in range(10)})
        _, text, result = run.report()
        tests, compilations = result["slowest_tests"], result["slowest_compilations"]
        self.assertEqual([row["seconds"] for row in compilations], [9.75 - 0.5 * number for number in range(15)])
        self.assertEqual([row["seconds"] for row in tests], sorted((row["seconds"] for row in tests), reverse=True))
        self.assertEqual([(row["tree"], row["name"]) for row in tests[:3]],
                         [("checked", "t9"), ("fast", "t9"), ("checked", "t8")])
        self.assertEqual(len(tests), 15)
        self.assertRegex(text, r"checked +9\.8 +engine lib/f9\.cpp\n +fast +9\.2 +engine lib/f9\.cpp\n")

    def test_budgets(self) -> None:
        run = self.run_
        run.build("fast", {f"{ENGINE}/{name}.cpp.o": time for name, time in (("a", 29), ("b", 31), ("c", 59))})
        run.test("fast", {"d": 59, "e": 61, "f": 119})
        inside = {f"{ENGINE}/b.cpp.o": False, f"{ENGINE}/c.cpp.o": False, "e": False, "f": False}
        self.assertEqual(self.over(), (0, inside))
        run.test("checked", {"g": 121})
        self.assertEqual(self.over(), (1, inside | {"g": True}))
        self.assertRegex(run.report()[1], r"Over budget\n.*\n  checked +121\.0 +121\.0 +60\.0 +g +FAILED: over twice")

    def test_compilation_over_twice_its_budget(self) -> None:
        self.run_.build("fast", {f"{ENGINE}/a.cpp.o": 61})
        self.assertEqual(self.over(), (1, {f"{ENGINE}/a.cpp.o": True}))

    def test_scaling(self) -> None:
        """Scaled by half if other processes and steal time use half of two cores, and unscaled if they are idle."""
        run = self.run_
        run.build("busy", {f"{ENGINE}/a.cpp.o": 59}, wall_s=100, cpu_s=100, others_s=70, steal_s=30)
        run.test("busy", {"b": 121}, wall_s=100, cpu_s=50, others_s=100)
        run.test("idle", {"c": 121}, wall_s=100, cpu_s=10, others_s=0)
        self.assertEqual(self.over(), (1, {"b": False, "c": True}))
        result = run.report()[2]
        self.assertEqual([row["share"] for row in result["phases"]], [0.5, 0.5, 1])
        self.assertEqual(result["over_budget"][1]["scaled_s"], 60.5)

    def test_phases_side_by_side(self) -> None:
        """Parallel phases are not other processes of each other; only `left` has others, in its first half."""
        self.run_.phase("left", "other", "-", wall_s=100, cpu_s=100, others_s=100, start=0)
        self.run_.phase("right", "other", "-", wall_s=100, cpu_s=100, others_s=50, start=50)
        self.assertEqual([row["share"] for row in self.run_.report()[2]["phases"]], [0.75, 1])

    def test_without_proc_stat(self) -> None:
        run = self.run_
        run.test("fast", {"a": 121})
        run.add("records/phases.tsv", re.sub(r"cpu .*", "-", (run.records / "phases.tsv").read_text("utf-8")))
        self.assertEqual(self.over(), (1, {"a": True}))

    def test_exceptions(self) -> None:
        run = self.run_
        run.add("fast/" + ENGINE + "/Unity/unity_3_cxx.cxx", f'#include "{run.source}/lib/ops/add.cpp"\n')
        unity = f"{ENGINE}/Unity/unity_3_cxx.cxx.o"
        run.build("fast", {unity: 99, f"{ENGINE}/a.cpp.o": 99, f"{ENGINE}/b.cpp.o": 121})
        run.test("fast", {"models.a": 179, "models.b": 181, "models.c": 90, "ops": 361})
        run.test("checked", {"ops": 361})
        limits = ("# KIND LIMIT PATTERN REASON\n\ncompile 100 lib/ops/add.cpp  long\n"
                  "compile 60 *engine.dir/[ab].cpp.o x\ntest 80 models.c  the first line counts\n"
                  "test 180 models.*  sanitized: many steps\ntest 400 checked:ops  y\ntest 170 ops z\n")
        self.assertEqual(self.over(limits), (1, {f"{ENGINE}/a.cpp.o": False, f"{ENGINE}/b.cpp.o": True,
                                                 "models.b": False, "models.c": False, "ops": True}))
        over = run.report(limits)[2]["over_budget"]
        self.assertEqual([row["tree"] for row in over if row["name"] == "ops"], ["fast"])

    def test_exceptions_no_longer_needed(self) -> None:
        run = self.run_
        run.build("fast", {f"{ENGINE}/a.cpp.o": 14, f"{ENGINE}/b.cpp.o": 16, f"{ENGINE}/cached.cpp.o": 0.01})
        run.test("fast", {"c": 29, "d": 31, "skipped": None}, {"gpu.c": "gpu"})
        patterns = ["*a.cpp.o", "*b.cpp.o", "*cached.cpp.o", "*gone.cpp.o"]
        limits = "".join(f"compile 40 {pattern} x\n" for pattern in patterns)
        limits += "".join(f"test 70 {name} x\n" for name in ("c", "d", "skipped", "gpu.c", "gone", "fast:gone",
                                                             "absent:gone"))
        short = {"*a.cpp.o": "takes 14.0 s, less than half of 30 s", "c": "takes 29.0 s, less than half of 60 s"}
        gone = {name: "matches nothing" for name in ("*gone.cpp.o", "gone", "fast:gone")}
        self.assertEqual(self.stale(limits), short | gone)
        self.assertEqual(run.report(limits)[0], 0)
        self.assertRegex(run.report(limits)[1], r"limits\.txt:9 +test +gone +matches nothing")
        run.phase("later", "other", "-", status=1)  # the run ended early: more might match
        self.assertEqual(self.stale(limits), short)

    def test_malformed_exceptions(self) -> None:
        self.run_.test("fast", {"a": 1})
        for line, expected in (("tests 70 a x", "KIND being test or compile; found 'tests 70 a x'"),
                               ("test 70 a", "expected KIND LIMIT PATTERN REASON"),
                               ("test many a x", "expected a limit in seconds above the budget of 60; found 'many'"),
                               ("test 60 a x", "above the budget of 60; found '60'"),
                               ("compile nan a x", "above the budget of 30; found 'nan'")):
            status, text, _ = self.run_.report(f"# first\n{line}\n")
            self.assertEqual(status, 2, text)
            self.assertRegex(text, rf"^\S*/limits\.txt:2: [^\n]*{re.escape(expected)}[^\n]*\n$")

    def test_malformed_phases(self) -> None:
        for line in ("a\tb", "a\tother\t-\t0\t1.0\t1 (x) S\t-", "a\tother\t-\tstart\tnoon\t1 (x) S\t-"):
            self.run_.add("records/phases.tsv", line + "\n")
            status, text, _ = self.run_.report()
            self.assertEqual(status, 2, text)
            self.assertRegex(text, r"^\S*/phases\.tsv:1: expected 7 fields[^\n]*\n$")

    def test_missing_inputs(self) -> None:
        run = self.run_
        run.build("fast", {f"{ENGINE}/a.cpp.o": 1})
        run.phase("build-gone", "build", "gone")
        run.phase("test-gone", "tests", "gone")
        run.event("killed", "tests", "fast", "start", 2000.0, 0, "-")
        status, text, result = run.report("test 70 gone x\n")
        self.assertEqual(status, 0, text)
        self.assertEqual([row["tree"] for row in result["trees"]], ["fast"])
        self.assertEqual([row["name"] for row in result["phases"]], ["build-fast", "build-gone", "test-gone"])
        self.assertEqual(result["no_longer_needed"], [])
        missing = "\n".join(result["missing"])
        for what in ("gone/.ninja_log: the tree was not built", "results of phase test-gone",
                     "the end of phase killed"):
            self.assertIn(what, missing)
            self.assertIn(what, text)
        (run.records / "phases.tsv").unlink()
        self.assertEqual(run.report()[0], 2)

    def test_titles(self) -> None:
        run = self.run_
        unity = "\n\n".join(f'#include "{run.source}/lib/{name}.cpp"' for name in ("ops/add", "ops/mul", "run/step"))
        run.add(f"fast/{ENGINE}/Unity/unity_12_cxx.cxx", unity)
        run.add("fast/lib/kernels_0.cu", "".join(f'#include "{run.source}/lib/ops/{name}.cu"\n' for name in "ab"))
        run.add("fast/lib/example.cpp", '#include "lib/lib.h"\n')
        run.build("fast", {f"{ENGINE}/{name}.o": 1 for name in (
            "Unity/unity_12_cxx.cxx", "kernels_0.cu", "example.cpp", "__/tests/x.cpp")} | {"plain.o": 1})
        self.assertEqual([row["title"] for row in run.report()[2]["slowest_compilations"]],
                         ["engine unity_12 (lib/{ops/add..run/step})", "engine kernels_0 (lib/ops/{a..b})",
                          "engine lib/example.cpp", "engine tests/x.cpp", "plain.o"])

    def test_functions_of_test_sh(self) -> None:
        """They record a command's status and return it, also in a pipe, and keep the log of the tree's last build."""
        text = (SOURCE / "scripts" / "test.sh").read_text(encoding="utf-8")
        functions = re.findall(r"^(?:phase|clocks)\(\) \{\n.*?^\}\n", text, re.M | re.S)
        self.assertEqual(len(functions), 2, "scripts/test.sh must define phase() and clocks()")
        run = self.run_
        run.add("fast/build.ninja", "")
        run.add("fast/.ninja_log", f"# ninja log v5\n1\t2\t3\t{ENGINE}/a.cpp.o\taa\n")
        subprocess.run(["bash", "-euo", "pipefail", "-c", f"""records={run.records}\n{''.join(functions)}
            builds() {{ printf '1\\t4001\\t5\\t{ENGINE}/b.cpp.o\\tbb\\n' >>fast/.ninja_log; }}
            phase build-fast build fast builds
            phase words other - printf '%s\\n' 'two words' | cat >words
            result=0; phase fails other - sh -c 'exit 3' || result=$?
            echo $result >result
            phase ends other - false
            echo >not-reached"""], cwd=run.source)
        _, text, result = run.report()
        self.assertEqual([(row["name"], row["status"]) for row in result["phases"]],
                         [("build-fast", 0), ("words", 0), ("fails", 3), ("ends", 1)], text)
        self.assertEqual([row["title"] for row in result["slowest_compilations"]], ["engine lib/b.cpp"])
        self.assertEqual((run.source / "words").read_text(encoding="utf-8"), "two words\n")
        self.assertEqual((run.source / "result").read_text(encoding="utf-8"), "3\n")
        self.assertFalse((run.source / "not-reached").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
