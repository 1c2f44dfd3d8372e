#!/usr/bin/env python3
"""Compares the ABI of the shared libraries with a recorded one.

    abi_check.py record PREFIX FOLDER     writes the ABI of an installed library to FOLDER
    abi_check.py compare FOLDER PREFIX    exits with 1 if programs linked before would break, and prints why

PREFIX holds lib*/libdtrain_*.so with debug information and include/dtrain, as `cmake --install` of a build with
-DBUILD_SHARED_LIBS=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo writes them. Only what public headers declare counts: types by
their header, functions by their name. Added functions and types are no break. Needs abigail-tools and binutils.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ERRORS = 1 | 2  # bits of abidiff's exit code; the others: changes
INTERNAL = re.compile(r"\bdtrain::(cpu|cuda)::")


def output_of(*command: str, text: str | None = None) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout


def libraries(prefix: pathlib.Path) -> list[pathlib.Path]:
    found = sorted(path for path in prefix.glob("lib*/**/libdtrain_*.so"))
    if not found:
        sys.exit(f"{prefix}: no lib*/libdtrain_*.so; expected an installed build with -DBUILD_SHARED_LIBS=ON")
    return found


def split_symbols(library: pathlib.Path, headers: pathlib.Path) -> tuple[list[str], list[str]]:
    """Symbols of a library: those whose names occur in public headers, and the others."""
    words = {word for path in headers.rglob("*.h") for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    listed = output_of("nm", "-D", "--defined-only", "--format=posix", str(library))
    symbols = [line.split()[0] for line in listed.splitlines()]
    public, private = [], []
    for symbol, name in zip(symbols, output_of("c++filt", "-p", text="\n".join(symbols)).splitlines(), strict=True):
        while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:  # template arguments
            name = shorter
        parts = re.findall(r"\w+", name.replace("[abi:cxx11]", ""))
        chosen = name.startswith("dtrain::") and not INTERNAL.search(name) and set(parts) <= words
        (public if chosen else private).append(symbol)
    return public, private


def record(prefix: pathlib.Path, folder: pathlib.Path) -> int:
    headers = prefix / "include/dtrain"
    folder.mkdir(parents=True, exist_ok=True)
    for library in libraries(prefix):
        symbols, others = split_symbols(library, headers)
        private = "".join(f"[suppress_{kind}]\n  symbol_name = {symbol}\n  drop = yes\n" for symbol in others
                          for kind in ("function", "variable"))
        with tempfile.NamedTemporaryFile("w", suffix=".ini", encoding="utf-8") as dropped:
            dropped.write(private)
            dropped.flush()
            output_of("abidw", "--headers-dir", str(headers), "--drop-private-types", "--suppressions", dropped.name,
                      "--out-file", str(folder / (library.stem + ".abi")), str(library))
        print(f"{library.stem}: {len(symbols)} public symbols")
    return 0


def compare(folder: pathlib.Path, prefix: pathlib.Path) -> int:
    broken = False
    new = {library.stem: library for library in libraries(prefix)}
    for before in sorted(folder.glob("*.abi")):
        if before.stem not in new:
            print(f"{before.stem}.so is gone")
            broken = True
            continue
        done = subprocess.run(["abidiff", "--headers-dir2", str(prefix / "include/dtrain"), "--drop-private-types",
                               "--no-added-syms", str(before), str(new[before.stem])], capture_output=True, text=True,
                              check=False)
        if done.returncode & ERRORS:
            sys.exit(f"abidiff {before}: {done.stdout}{done.stderr}")
        print(f"{before.stem}: {'changed' if done.returncode else 'compatible'}")
        print(done.stdout, end="")
        broken |= done.returncode != 0
    return int(broken)


def main(arguments: list[str]) -> int:
    if len(arguments) != 3 or arguments[0] not in ("record", "compare"):
        print(__doc__.strip())
        return 0 if arguments == ["--help"] else 2
    command = record if arguments[0] == "record" else compare
    return command(pathlib.Path(arguments[1]), pathlib.Path(arguments[2]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
