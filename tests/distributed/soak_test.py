"""scripts/soak.sh itself: short soak tests. ctest runs each test_* function on its own, with the folder of the programs
in DTRAIN_BIN_DIR.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from cluster import SKIPPED, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Fast faults. Without address space, MPI_Init may hang for minutes.
QUICK = "--faults=kill a rank,kill in a save,kill the launcher,stop on request,pause,full disk,damaged checkpoint"


class Soak:
    def __init__(self, folder, *flags):
        self.out = pathlib.Path(folder) / "soak.jsonl"
        self.command = [ROOT / "scripts" / "soak.sh", "--bin", os.environ["DTRAIN_BIN_DIR"], "--out", self.out, *flags]

    def run(self):
        """The exit code."""
        code = subprocess.run(self.command).returncode
        if code == SKIPPED:
            sys.exit(SKIPPED)
        return code

    def lines(self):
        return list(map(json.loads, self.out.read_text().splitlines()))

    def expect(self, verdict):
        last = self.lines()[-1]
        if last["verdict"] != verdict:
            raise AssertionError(f"expected a verdict '{verdict}': {last}")
        return last


def test_short(folder):
    soak = Soak(folder, "--minutes=0.1", "--seed=2", "--steps=20", QUICK)
    code = soak.run()
    last = soak.expect("passed")
    if code != 0 or not last["rounds_equal"] or not last["faults"]:
        raise AssertionError(f"exit code {code}: {last}")


def test_detects_different_bits(folder):
    soak = Soak(folder, "--minutes=0.05", "--seed=2", "--steps=20", QUICK)
    soak.run()
    soak.expect("passed")
    soak.out.unlink()
    reference = soak.out.with_suffix(".reference.json")
    known = json.loads(reference.read_text())
    known["digests"]["20"] = "0" * 64
    reference.write_text(json.dumps(known))
    if soak.run() != 1 or soak.expect("failed")["unequal"] != 1:
        raise AssertionError(soak.lines())


def test_long(folder):
    """Two minutes with all faults, during which the soak test itself is killed."""
    soak = Soak(folder, "--minutes=2", "--seed=1", "--steps=200")
    first = subprocess.Popen(soak.command)
    wait_until(lambda: first.poll() is not None or soak.out.exists() and any("minute" in line for line in soak.lines()),
               "a minute", 400)
    first.send_signal(signal.SIGKILL)
    first.wait()
    code = soak.run()
    soak.expect("passed")
    if code != 0 or not any("goes_on" in line for line in soak.lines()):
        raise AssertionError(f"exit code {code}: {soak.lines()[1:]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
