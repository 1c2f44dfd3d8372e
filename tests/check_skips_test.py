#!/usr/bin/env python3
"""check_skips.py on logs that ctest writes: which reasons pass, and which tests it names."""

import os
import pathlib
import subprocess
import sys
import tempfile

CHECKER = pathlib.Path(__file__).with_name("check_skips.py")
RULES = """\
# No device.
any no GPU: .*
sanitized too slow with sanitizers
unprivileged needs root
"""
GOOGLE_TEST = """\
[ RUN      ] A.B
a_test.cpp:3: Skipped
{}
[  SKIPPED ] A.B (0 ms)
[  SKIPPED ] 1 test, listed below:
"""


class Tree:
    """A build tree with tests, each a script of the shell."""

    def __init__(self, folder, sanitizers="OFF", **tests):
        self.folder = pathlib.Path(folder)
        (self.folder / "CMakeCache.txt").write_text(f"DTRAIN_SANITIZE:STRING={sanitizers}\n")
        text = "".join(f"""add_test({name} "/bin/sh" "-c" [==[{script}]==])
                           set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77)
                           """ for name, script in tests.items())
        (self.folder / "CTestTestfile.cmake").write_text(text)
        (self.folder / "rules.txt").write_text(RULES)

    def check(self, *, code, junit=""):
        """Output of the checker after a run of the tests."""
        words = ["ctest", "--output-junit", str(self.folder / "junit.xml")]
        subprocess.run(words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        done = subprocess.run([sys.executable, "-B", CHECKER, "--allowed", self.folder / "rules.txt",
                               f"{self.folder}{junit and ':'}{junit}"], capture_output=True, text=True, check=False)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout


def shown(text):
    return f"printf '%s' '{text}'"


def main():
    number = iter(range(100))
    with tempfile.TemporaryDirectory() as temporary:
        def tree(**tests):
            folder = pathlib.Path(temporary, str(next(number)))
            folder.mkdir()
            return Tree(folder, **tests)

        passed = tree(passes="echo fine", skipped="echo 'SKIPPED: no GPU: none'; exit 77",
                      part=shown(GOOGLE_TEST.format("SKIPPED: no GPU: another")))
        assert passed.check(code=0).split("\n", 1)[1] == "      1 no GPU: another\n      1 no GPU: none\n"

        # A part of a test that passes, a test that is skipped, and one that fails, each for a reason of its own.
        named = tree(a="echo 'SKIPPED: no GPU: none'", b="echo 'line SKIPPED: no GPU, no more'",
                     c="echo 'SKIPPED: no onnx'; exit 77", d=f"{shown(GOOGLE_TEST.format('SKIPPED: no x'))}; exit 1")
        lines = named.check(code=1).splitlines()
        assert [line.partition(f"{named.folder}: ")[2] for line in lines[-3:]] == [
            "b: no GPU, no more", "c: no onnx", "d: no x"], lines

        # Without a reason: GoogleTest's skip, a test that ctest skips by its exit code, and one that it does not start.
        assert "a: skipped without a reason" in tree(a=shown(GOOGLE_TEST.format("no GPU: none"))).check(code=1)
        silent = tree(a="exit 77")
        silent.check(code=0)
        assert "a: skipped without a reason" in silent.check(code=1, junit=silent.folder / "junit.xml")
        disabled = tree(a="true")
        with (disabled.folder / "CTestTestfile.cmake").open("a") as file:
            file.write("set_tests_properties(a PROPERTIES DISABLED ON)\n")
        assert "a: skipped without a reason" in disabled.check(code=1)

        slow = "echo 'SKIPPED: too slow with sanitizers'; exit 77"
        tree(a=slow, sanitizers="address;undefined").check(code=0)
        assert "a: too slow with sanitizers" in tree(a=slow).check(code=1)

        tree(a="echo 'SKIPPED: needs root'").check(code=0 if os.geteuid() else 1)

        tree().check(code=2)  # no tests
        wrong = tree(a="true")
        (wrong.folder / "rules.txt").write_text("sometimes no GPU\n")
        wrong.check(code=2)
    print("check_skips.py names what it should")


main()
