"""Reference of a soak test: digests of an undisturbed training after each step."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import time

import training
from soak_job import CALM, Job


def digest(checkpoint):
    """Digest of a checkpoint's training state."""
    whole = hashlib.sha256()
    for name in training.STATE:
        whole.update((checkpoint / name).read_bytes())
    return whole.hexdigest()


def steps_in(folder):
    """Checkpoints by step."""
    with contextlib.suppress(FileNotFoundError):
        return {int(entry.name[5:]): pathlib.Path(entry.path) for entry in os.scandir(folder / "checkpoints")
                if entry.name[5:].isdigit()}
    return {}


class Reference:
    """Digests of an undisturbed training after each step, and its seconds; read from `path`, or computed and stored."""

    def __init__(self, path, work, identity, ranks, ends):
        if path.exists() and (kept := json.loads(path.read_text()))["identity"] == identity:
            self.seconds, self.digests = kept["seconds"], {int(step): value for step, value in kept["digests"].items()}
            return
        self.digests, self.folder = {}, work / "reference"
        begun = time.monotonic()
        for number, end in zip(ranks, ends):
            job = Job(work, self.folder, number, end, "--save_model_steps=1",
                      "--max_ckpts_to_keep=1000000", *CALM, poll=self._take)
            if code := job.end():
                raise SystemExit(f"the undisturbed training ended with {code}: {job.written()}")
            self._take()
        if list(self.digests) != list(range(1, ends[-1] + 1)):
            raise SystemExit(f"the undisturbed training saved steps {list(self.digests)}")
        self.seconds = time.monotonic() - begun
        shutil.rmtree(self.folder)
        path.write_text(json.dumps({"identity": identity, "seconds": round(self.seconds, 1), "digests": self.digests}))

    def _take(self):
        """Reads new checkpoints; keeps the newest for the next part."""
        found = steps_in(self.folder)
        for step in sorted(found):
            if step not in self.digests:
                self.digests[step] = digest(found[step])
            elif step < max(found) - 2:
                shutil.rmtree(found[step])
