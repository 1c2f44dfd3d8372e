"""WebDataset archives, compared with the package `webdataset`: keys, order, labels and bytes of all samples.

Usage: web_dataset.py PARITY_IMAGE_SOURCE; that is the program that lists the engine's samples.
"""

import io
import json
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
    import braceexpand
    import webdataset

IMAGES = ["jpg", "JPEG", "png", "webp"]
FORMATS = {"gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT, "ustar": tarfile.USTAR_FORMAT}


def members(rng, number, longest):
    """Names and contents of one archive: samples with an image and a label, and members around them."""
    for i in range(rng.randint(1, 20)):
        folder = rng.choice(["", "a/", "a.b/c/", "./"])
        key = f"{folder}{number}-{i}" + "n" * (rng.choice([0, 0, longest]) - 20)
        parts = [(rng.choice(IMAGES), rng.randbytes(rng.choice([0, 511, 512, 513, 700]))),
                 rng.choice([("cls", f"{i}".encode()), ("CLS", f" {i}\n".encode()),
                             ("json", json.dumps({"label": i, "caption": "ü"}).encode())]),
                 ("seg.png", b"mask"), ("txt", b"text")][:rng.randint(2, 4)]
        rng.shuffle(parts)
        yield from ((f"{key}.{extension}", content) for extension, content in parts)
        if rng.random() < 0.2:
            yield rng.choice(["README", "__meta__/x.jpg", f"only-text-{i}.txt"]), b"other"


def write(path, rng, number, kind):
    with tarfile.open(path, "w", format=FORMATS[kind]) as tar:
        tar.addfile(tarfile.TarInfo("a/"))  # of size 0
        for name, content in members(rng, number, 80 if kind == "ustar" else 200):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("link.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "a"
        tar.addfile(link)


def write_by_package(path, rng):
    with webdataset.TarWriter(str(path)) as tar:
        for i in range(7):
            tar.write({"__key__": f"sample{i:04}", "jpg": rng.randbytes(300 + i), "cls": i % 3})


def peer_samples(pattern):
    """Key, label and image of the samples that have an image."""
    for sample in webdataset.WebDataset(str(pattern), shardshuffle=False):
        images = [sample[extension.lower()] for extension in ("jpg", "jpeg", "png", "webp") if extension in sample]
        if images:
            label = int(sample["cls"]) if "cls" in sample else json.loads(sample["json"])["label"]
            yield sample["__url__"], sample["__key__"], label, images[0]


def our_samples(program, pattern, output):
    subprocess.run([program, str(output), "tars", str(pattern), "train"], check=True)
    lines = [json.loads(line) for line in output.with_suffix(".json").read_text().splitlines()]
    assert not any("fault" in line for line in lines), lines
    content = output.with_suffix(".bin").read_bytes()
    for line in lines:
        key = line["name"].removeprefix("sample ").rpartition(" at byte ")[0]
        yield line["file"], key, line["label"], content[:line["bytes"]]
        content = content[line["bytes"]:]


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for seed in range(5):
            rng = random.Random(seed)
            kinds = [*FORMATS, *rng.choices(list(FORMATS), k=3)]
            for number, kind in enumerate(kinds):
                write(folder / f"set{seed}-{number:03}.tar", rng, number, kind)
            write_by_package(folder / f"set{seed}-{len(kinds):03}.tar", rng)
            pattern = folder / f"set{seed}-{{000..{len(kinds):03}}}.tar"
            found, expected = list(our_samples(program, pattern, folder / "list")), list(peer_samples(pattern))
            assert found == expected, [pair for pair in zip(found, expected) if pair[0] != pair[1]][:3]
            print(f"seed {seed}: {len(found)} samples in {len(kinds) + 1} archives")
        for text in ("a-{08..11}.tar", "{2..0}", "{b,a}-{0..1}", "{000..9..4}", "{9..0..2}", "{a..e}",
                     "{D..A..2}"):
            names = subprocess.run(["bash", "-c", f"printf '%s\\n' {text}"], capture_output=True, text=True, check=True)
            assert list(braceexpand.braceexpand(text)) == names.stdout.split(), text
    print("equal to webdataset")


if __name__ == "__main__":
    main(sys.argv[1])
