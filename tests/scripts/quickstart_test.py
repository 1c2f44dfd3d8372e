"""Tests where scripts/quickstart-common.sh takes the programs from: an archive, or the source."""
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["DTRAIN_SOURCE_DIR"])


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "scripts").mkdir()
        shutil.copy(SOURCE / "scripts/quickstart-common.sh", self.folder / "scripts")
        setup = self.folder / "scripts/setup.sh"
        setup.write_text("#!/bin/sh\necho builds from source\nexit 9\n")
        setup.chmod(0o755)

    def archive(self, path, version):
        """An archive whose dtrain-data prints `version`."""
        program = self.folder / "dtrain-data"
        program.write_text(f"#!/bin/sh\necho dtrain-data {version}\n")
        program.chmod(0o755)
        (self.folder / path).parent.mkdir(exist_ok=True)
        with tarfile.open(self.folder / path, "w:gz") as file:
            file.add(program, f"dtrain-{version}/bin/dtrain-data")

    def run_common(self, *arguments, call="get_programs"):
        command = f'set -euo pipefail; . scripts/quickstart-common.sh; programs=(dtrain-data); {call} "$@"'
        return subprocess.run(["bash", "-c", command, "quickstart.sh", *arguments], cwd=self.folder, text=True,
                              capture_output=True)

    def test_takes_the_newest_archive_in_dist(self):
        self.archive("dist/dtrain-0.9.0-linux-x86_64.tar.gz", "0.9.0")
        self.archive("dist/dtrain-0.10.0-linux-x86_64.tar.gz", "0.10.0")
        done = self.run_common()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("dtrain-data 0.10.0\n", done.stdout)

    def test_takes_the_archive_that_is_named(self):
        self.archive("dist/dtrain-0.10.0-linux-x86_64.tar.gz", "0.10.0")
        self.archive("other/old.tar.gz", "0.9.0")
        (self.folder / "build").mkdir()
        (self.folder / "build/CMakeCache.txt").touch()
        self.assertIn("dtrain-data 0.9.0\n", self.run_common("other/old.tar.gz").stdout)

    def test_builds_from_source_else(self):
        for prepare in (lambda: None,
                        lambda: self.archive("dist/dtrain-0.9.0-linux-x86_64.tar.gz", "0.9.0"),
                        lambda: (self.folder / "build/CMakeCache.txt").touch()):
            prepare()
            (self.folder / "build").mkdir(exist_ok=True)
            arguments = ["-DDTRAIN_CUDA=ON"] if (self.folder / "dist").exists() else []
            done = self.run_common(*arguments)
            self.assertEqual(done.returncode, 9, done.stdout)
            self.assertIn("builds from source", done.stdout)

    def test_refuses_wrong_arguments(self):
        self.archive("old.tar.gz", "0.9.0")
        for arguments, message in ((("missing.tar.gz",), "missing.tar.gz does not exist"),
                                   (("old.tar.gz", "-DX=1"), "'-DX=1': expected no argument after an archive")):
            done = self.run_common(*arguments)
            self.assertEqual((done.returncode, done.stderr), (1, f"quickstart.sh: {message}\n"))

    def test_estimates_the_time_that_is_left(self):
        steps = "\n".join(("1 100 0.5 Building a", "10 100 25.0 Building b", "11 100 26.0 Building c", "warning: w",
                           "50 100 60 Linking d"))
        done = self.run_common(call=f"printf '%s\\n' '{steps}' | show_progress")
        self.assertEqual(done.stdout, " 10 of 100 steps in 0:25 min, about 3:45 min left\nwarning: w\n"
                                      " 50 of 100 steps in 1:00 min, about 1:00 min left\n")


if __name__ == "__main__":
    unittest.main(argv=["quickstart_test"])
