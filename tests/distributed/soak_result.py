"""Result of a soak test as JSON Lines: a header, a line per minute, a line per round, and a verdict. A killed soak
continues its file.
"""

import hashlib
import json
import os
import pathlib
import platform
import subprocess
import threading
import time

import training

MEANINGS = {0: "done", 4: "another rank or the network", 6: "memory or disk", 75: "stopped on request",
            129: "ended by SIGHUP", 130: "ended by SIGINT", 137: "ended by SIGKILL", 138: "ended by SIGUSR1",
            139: "crash of oneDNN without memory",
            140: "ended by SIGUSR2", 143: "ended by SIGTERM"}


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def machine():
    cpu = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
           if line.startswith("model name")]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30
    return f"{cpu[0] if cpu else platform.machine()}, {os.cpu_count()} cores, {memory} GiB, Linux {platform.release()}"


def build(program):
    """Version and digest of a program."""
    path = training.BINARIES / program
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {"version": version, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


class Result:
    """Writes the file `path`. `header` identifies a soak test, and must match to resume it."""

    def __init__(self, path, header):
        self.path, self.lock = path, threading.Lock()
        self.counters = {"round": 0, "step": 0, "rounds_equal": 0, "starts": 0, "checkpoints": 0, "steps": 0,
                         "faults": {}, "exit_codes": {}, "damaged_checkpoints_passed_over": 0,
                         "damaged_checkpoints_used": 0, "checkpoints_lost": 0, "unequal": 0, "undocumented_codes": 0,
                         "orphans": 0, "hangs": 0, "leftovers": 0}
        self.minute, self.verdict = 0, None
        lines = self._read()
        if lines:
            for key in ("soak", "seed", "steps_of_a_round", "build"):
                if lines[0].get(key) != header[key]:
                    raise SystemExit(f"{path}: its header has {key} {lines[0].get(key)}, this soak {header[key]}; "
                                     "choose another --out")
            for line in lines[1:]:
                self.counters.update({key: value for key, value in line.items() if key in self.counters})
                self.minute = line.get("minute", self.minute)
                self.verdict = line.get("verdict", self.verdict)
            self.counters["step"] = 0  # an interrupted round is repeated
            if not self.verdict:
                self.write({"goes_on": "the soak test was killed and restarted; its round is repeated"})
        else:
            self.write({**header, "begun": now()})
        self.start_clock()

    def _read(self):
        if not self.path.exists():
            return []
        lines = self.path.read_text().split("\n")
        if lines[-1]:  # truncated
            self.path.write_text("".join(line + "\n" for line in lines[:-1]))
        return [json.loads(line) for line in lines[:-1]]

    def start_clock(self):
        """Starts counting time."""
        self.begun = time.monotonic() - 60 * self.minute

    def minutes(self):
        return (time.monotonic() - self.begun) / 60

    def count(self, key, name=None, by=1):
        with self.lock:
            if name is None:
                self.counters[key] += by
            else:
                table = self.counters[key]
                table[str(name)] = table.get(str(name), 0) + by

    def set(self, **values):
        with self.lock:
            self.counters.update(values)

    def write(self, line, counters=False):
        with self.lock, self.path.open("a") as file:
            text = json.dumps({"time": now(), **line, **(self.counters if counters else {})})
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        return text

    def every_minute(self):
        """Writes a line per minute from a thread, until the process exits."""
        self.start_clock()

        def run():
            while True:
                time.sleep(max(0.1, 60 * (self.minute + 1 - self.minutes())))
                if self.verdict:
                    return
                if self.minutes() >= self.minute + 1:
                    self.minute += 1
                    print(self.write({"minute": self.minute}, counters=True), flush=True)

        threading.Thread(target=run, daemon=True).start()

    def end(self, verdict, text):
        self.verdict = verdict
        print(self.write({"minute": round(self.minutes(), 1), "verdict": verdict, "summary": text}, counters=True))
