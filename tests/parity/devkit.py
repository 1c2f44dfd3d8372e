"""dtrain-data imagenet-labels on development kits whose meta.mat SciPy writes, compared with what SciPy reads back, and
on damaged ones.

Usage: devkit.py DTRAIN_DATA [CORPUS]     # CORPUS: also writes two small files there, the seeds of the fuzzer
"""

import gzip
import io
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS))
import python_packages  # noqa: E402

with python_packages.required():
    import numpy as np
    import scipy.io

FIELDS = ["ILSVRC2012_ID", "WNID", "words", "gloss", "num_children", "children", "wordnet_height", "num_train_images"]
ROOT = "ILSVRC2012_devkit_t12/data/"
CLASSES, INNER, IMAGES = 1000, 860, 50000


def synsets(rng, classes, inner):
    """The struct array of the development kit: classes, then inner nodes with children."""
    made = np.zeros((classes + inner, 1), dtype=[(name, object) for name in FIELDS])
    offsets = rng.sample(range(10**8), classes + inner)
    for i, offset in enumerate(offsets):
        children = [] if i < classes else rng.sample(range(1, classes + 1), rng.randint(1, 3))
        made[i, 0] = (i + 1, f"n{offset:08}", f"café {i}, name", "text " * (i % 7), len(children),
                      np.array(children, dtype=np.uint16), rng.randint(0, 9), rng.randint(700, 1300))
    return made[rng.sample(range(len(made)), len(made))]


def mat_file(array, **options):
    file = io.BytesIO()
    scipy.io.savemat(file, {"version": "1.0", "synsets": array}, **options)
    return file.getvalue()


def archive(meta, truth):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as tar:
        folder = tarfile.TarInfo(ROOT[:-1])
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, data in (("meta.mat", meta), ("ILSVRC2012_validation_ground_truth.txt", truth)):
            info = tarfile.TarInfo(ROOT + name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def ground_truth(rng):
    labels = [1 + i % CLASSES for i in range(IMAGES)]
    rng.shuffle(labels)
    return labels


def expected(meta, labels):
    """As users of SciPy derive the file."""
    names = {int(row["ILSVRC2012_ID"]): str(row["WNID"])
             for row in scipy.io.loadmat(io.BytesIO(meta), squeeze_me=True)["synsets"]}
    return "".join(names[label] + "\n" for label in labels)


class Kit:
    def __init__(self, program, folder):
        self.program, self.folder = pathlib.Path(program).resolve(), pathlib.Path(folder)

    def run(self, data):
        (self.folder / "kit.tar.gz").write_bytes(data)
        return subprocess.run([self.program, "imagenet-labels", "kit.tar.gz", "--output", "labels.txt"],
                              cwd=self.folder, capture_output=True, text=True, check=False)

    def require(self, meta, labels):
        ran = self.run(archive(meta, "".join(f"{label}\n" for label in labels).encode()))
        assert ran.returncode == 0, ran.stderr
        assert (self.folder / "labels.txt").read_text() == expected(meta, labels)
        (self.folder / "labels.txt").unlink()

    def refuse(self, data, message):
        ran = self.run(data)
        assert ran.returncode == 2 and message in ran.stderr and ran.stderr.count("\n") == 1, (message, ran)
        assert not (self.folder / "labels.txt").exists(), "written in spite of a fault"


def main(program, corpus=None):
    rng = random.Random(1)
    array, labels = synsets(rng, CLASSES, INNER), ground_truth(rng)
    truth = "".join(f"{label}\n" for label in labels).encode()
    with tempfile.TemporaryDirectory() as folder:
        kit = Kit(program, folder)
        for options in ({"do_compression": True}, {}, {"do_compression": True, "oned_as": "column"}):
            kit.require(mat_file(array, **options), labels)
        meta = mat_file(array, do_compression=True)
        good = archive(meta, truth)
        numbers = io.BytesIO()
        scipy.io.savemat(numbers, {"synsets": np.arange(5.0)}, format="4")
        kit.refuse(archive(numbers.getvalue(), truth), "meta.mat: no MAT-file of version 5")
        kit.refuse(archive(mat_file(np.arange(5.0)), truth), "meta.mat: the variable synsets is no struct array")
        kit.refuse(archive(mat_file(array[:900]), truth), "meta.mat: no synset with ILSVRC2012_ID ")
        kit.refuse(archive(meta[:-100], truth), "meta.mat: damaged or truncated")
        kit.refuse(archive(meta, truth[:-5]), "validation_ground_truth.txt: ")
        kit.refuse(good[:-1000], "kit.tar.gz: truncated gzip stream")
        kit.refuse(gzip.decompress(good), "kit.tar.gz: not compressed by gzip")
        for _ in range(50):  # a byte in the middle: an error, or the same labels where gzip's checksum misses nothing
            at = rng.randrange(200, len(meta))
            broken = bytearray(meta)
            broken[at] ^= 1 << rng.randrange(8)
            ran = kit.run(archive(bytes(broken), truth))
            assert ran.returncode == 2 and ran.stderr.count("\n") == 1, ran
    if corpus:
        small = synsets(rng, 3, 2)
        for name, options in (("compressed", {"do_compression": True}), ("plain", {})):
            (pathlib.Path(corpus) / name).write_bytes(mat_file(small, **options))
    print("equal to SciPy")


if __name__ == "__main__":
    main(*sys.argv[1:])
