"""Lists of images, compared with Python's csv module: files, order and labels, as written by several dialects.

Usage: image_list.py PARITY_IMAGE_SOURCE; that is the program that lists the engine's images.
"""

import csv
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

LABELS = ["cat", "dog", "Zürich", 'the "best"', "a, b", "猫", "10", "9"]
QUOTING = {"minimal": csv.QUOTE_MINIMAL, "all": csv.QUOTE_ALL}


def place_images(folder):
    """Names of files that begin as a JPEG."""
    names = ["a.jpg", "sub folder/b.jpg", 'quoted "c".jpg', "comma, d.jpg", "ü/é.jpeg", "no extension"]
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"\xff\xd8\xff\xe0" + bytes([number] * (20 + number)))
    return names


def write(path, rows, rng, quoting, ending):
    with path.open("w", encoding=rng.choice(["utf-8", "utf-8-sig"]), newline="") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",", quoting=quoting,
                            lineterminator=ending)
        if rng.random() < 0.5:
            writer.writerow(["path", "label"])
        writer.writerows(rows)


def peer_images(path):
    """Name and label indices of each row, by Python's reader."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",") if row]
    if rows[0][0] == "path":
        rows = rows[1:]
    labels = [[label for label in row[1:] if label] for row in rows]
    names = sorted(set(itertools.chain.from_iterable(labels)), key=str.encode)
    numeric = all(name.isdecimal() for name in names)
    for row, own in zip(rows, labels):
        yield row[0], sorted({int(label) if numeric else names.index(label) for label in own})


def our_images(program, kind, path, output):
    subprocess.run([program, str(output), kind, str(path), "train"], check=True)
    for line in map(json.loads, output.with_suffix(".json").read_text().splitlines()):
        assert "fault" not in line, line
        yield line["file"].removeprefix(f"{path.parent}/"), line["labels"]


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        names = place_images(folder)
        for seed, (kind, suffix, quoting, ending) in enumerate(
                itertools.product(("list", "labels"), (".csv", ".tsv"), QUOTING, ("\n", "\r\n", "\r"))):
            rng = random.Random(seed)
            known = rng.choice([LABELS, LABELS[-2:]])
            labels = {name: rng.sample(known, 1 if kind == "list" else rng.randint(0, len(known))) for name in names}
            rows = [[name, *labels[name]] for name in rng.choices(names, k=10)]
            path = folder / f"{seed}{suffix}"
            write(path, rows, rng, QUOTING[quoting], ending)
            found, expected = list(our_images(program, kind, path, folder / "out")), list(peer_images(path))
            assert found == expected, [pair for pair in zip(found, expected) if pair[0] != pair[1]][:3]
    print("equal to Python's csv")


if __name__ == "__main__":
    main(sys.argv[1])
