#!/usr/bin/env python3
"""docs/performance.md is the output of benchmarks/document_results.py, which rejects bad result files."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("DTRAIN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
SCRIPT = SOURCE / "benchmarks/document_results.py"
RESULTS = SOURCE / "benchmarks/results"


def check(folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-B", SCRIPT, "--check", "--results", folder], capture_output=True, text=True,
                          check=False)


class PerformancePage(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name) / "results"
        shutil.copytree(RESULTS, self.results)

    def test_page_is_up_to_date(self) -> None:
        done = check(RESULTS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_changed_result(self) -> None:
        path = next(self.results.glob("*-allreduce-zen4.json"))
        path.write_text(path.read_text().replace("3.22 GB/s", "4.33 GB/s"))
        done = check(self.results)
        self.assertEqual(done.returncode, 1)
        self.assertIn("run benchmarks/document_results.py", done.stderr)

    def test_replaced_result(self) -> None:
        path = next(self.results.glob("*-allreduce-zen4.json"))
        shutil.copy(path, self.results / "2020-01-01-allreduce-zen4.json")
        done = check(self.results)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no table uses 2020-01-01-allreduce-zen4.json", done.stderr)

    def test_names_that_no_table_reads(self) -> None:
        for name in ("2026-01-01-speed-zen4.json", "2026-01-01-cpu-zen4.jsonl", "2026-01-01-cpu-zen4.txt"):
            with self.subTest(name):
                path = self.results / name
                path.write_text("{}")
                done = check(self.results)
                path.unlink()
                self.assertEqual(done.returncode, 1)
                self.assertIn("expected <date>-<task>-<machine>.json", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
