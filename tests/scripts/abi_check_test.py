#!/usr/bin/env python3
"""Tests scripts/abi_check.py with small libraries: abi_check_test.py BUILD_DIR (not used)."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("DTRAIN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2])).resolve()
PUBLIC = """#pragma once
namespace dtrain {
struct Hidden;
struct Options { int batch = 1; };
int train(const Options& options);
int evaluate(const Hidden* hidden);
}
"""
PRIVATE = """
#include "dtrain/train.h"
namespace dtrain {
struct Hidden { int a; };
int train(const Options& options) { return options.batch; }
int evaluate(const Hidden* hidden) { return hidden->a; }
int ring() { return 1; }
namespace cpu { int evaluate(int x) { return x; } }
}
"""


class Comparison(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = pathlib.Path(folder.name)
        self.install("before", PUBLIC, PRIVATE)
        self.run_script("record", "before", "abi")

    def install(self, name: str, header: str, source: str) -> None:
        prefix = self.place / name
        (prefix / "include/dtrain").mkdir(parents=True)
        (prefix / "lib").mkdir()
        (prefix / "include/dtrain/train.h").write_text(header, encoding="utf-8")
        (self.place / f"{name}.cpp").write_text(source, encoding="utf-8")
        subprocess.run(["c++", "-g", "-shared", "-fPIC", f"-I{prefix}/include", str(self.place / f"{name}.cpp"), "-o",
                        str(prefix / "lib/libdtrain_engine.so")], check=True)

    def run_script(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([SOURCE / "scripts/abi_check.py", *arguments], cwd=self.place, capture_output=True,
                              text=True, check=False)

    def breaks(self, header: str, source: str) -> bool:
        self.install("after", header, source)
        done = self.run_script("compare", "abi", "after")
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        return done.returncode == 1

    def test_the_same(self) -> None:
        self.assertFalse(self.breaks(PUBLIC, PRIVATE))

    def test_a_member_of_a_public_type(self) -> None:
        self.assertTrue(self.breaks(PUBLIC.replace("int batch = 1;", "long seed = 0; int batch = 1;"), PRIVATE))

    def test_a_parameter_of_a_public_function(self) -> None:
        self.assertTrue(self.breaks(PUBLIC.replace("Hidden* hidden);", "Hidden* hidden, int step);"),
                                    PRIVATE.replace("Hidden* hidden) {", "Hidden* hidden, int) {")))

    def test_removal_of_a_public_function(self) -> None:
        self.assertTrue(self.breaks(PUBLIC.replace("int train(const Options& options);", ""),
                                    PRIVATE.replace("int train(const Options& options) { return options.batch; }", "")))

    def test_a_member_of_a_private_type(self) -> None:
        self.assertFalse(self.breaks(PUBLIC, PRIVATE.replace("int a;", "long b; int a;")))

    def test_removal_of_private_functions(self) -> None:
        source = PRIVATE.replace("int ring() { return 1; }", "").replace("(int x)", "(long x)")
        self.assertFalse(self.breaks(PUBLIC, source))

    def test_an_addition(self) -> None:
        self.assertFalse(self.breaks(PUBLIC.replace("int train", "int save();\nint train"),
                                     PRIVATE.replace("int ring()", "int save() { return 0; }\nint ring()")))

    def test_nothing_to_compare(self) -> None:
        (self.place / "empty").mkdir()
        done = self.run_script("compare", "abi", "empty")
        self.assertEqual(done.returncode, 1)
        self.assertIn("BUILD_SHARED_LIBS", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
