#!/usr/bin/env python3
"""make_wheel.py STAGE VERSION OUTPUT: writes a wheel of an installed tree: programs, library, headers, CMake package.

The tree is package data of the Python package `dtrain`. Each program has an entry point that replaces itself by it;
there is no other Python code. Equal trees give equal bytes: times are SOURCE_DATE_EPOCH, entries are sorted.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import time
import zipfile

TAG = "py3-none-manylinux_2_31_x86_64"
# Extras: libraries that the programs load at run time, by their PyPI names.
EXTRAS = {"cuda13": ["nvidia-cublas>=13,<14", "nvidia-cuda-nvrtc>=13,<14", "nvidia-cudnn-cu13>=9.8,<10",
                     "nvidia-nccl-cu13>=2.28,<3", "nvidia-nvjpeg>=13,<14"]}

INIT = '''"""Programs and library of dtrain. See `python -m dtrain --help`."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent


def run():
    """Replaces this process by the program of the entry point's name, which finds the libraries of nvidia's wheels."""
    folders = [str(folder) for folder in sorted(ROOT.parent.glob("nvidia/*/lib"))]
    folders += filter(None, [os.environ.get("LD_LIBRARY_PATH")])
    if folders:
        os.environ["LD_LIBRARY_PATH"] = ":".join(folders)
    program = ROOT / "bin" / pathlib.Path(sys.argv[0]).name
    os.execv(program, [str(program), *sys.argv[1:]])
'''

MAIN = '''"""Prints where the library is: `cmake -DCMAKE_PREFIX_PATH=$(python -m dtrain --cmake-dir)`."""
import argparse

from dtrain import ROOT

parser = argparse.ArgumentParser(prog="python -m dtrain")
parser.add_argument("--cmake-dir", action="store_true", help="folder of the CMake package, for CMAKE_PREFIX_PATH")
parser.add_argument("--prefix", action="store_true", help="folder with bin, lib, include and share")
options = parser.parse_args()
if options.prefix:
    print(ROOT)
elif options.cmake_dir:
    print(ROOT / "lib" / "cmake" / "dtrain")
else:
    parser.print_help()
'''


def metadata(version):
    lines = ["Metadata-Version: 2.1", "Name: dtrain", f"Version: {version}",
             "Summary: Training engine for ResNet and Mask R-CNN", "Requires-Python: >=3.8",
             "Classifier: Operating System :: POSIX :: Linux", "Classifier: Programming Language :: C++"]
    for extra, requirements in EXTRAS.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {requirement}; extra == "{extra}"' for requirement in requirements]
    return "\n".join(lines) + "\n"


def contents(stage, version):
    """Paths in the wheel, with their bytes and permissions."""
    files = {"dtrain/__init__.py": (INIT.encode(), 0o644), "dtrain/__main__.py": (MAIN.encode(), 0o644)}
    for path in sorted(stage.rglob("*")):
        # Wheels have no links. CMake names the library by its SONAME and does not need the linker's name, lib*.so.
        if path.is_file() and not (path.is_symlink() and path.suffix == ".so"):
            files[f"dtrain/{path.relative_to(stage)}"] = (path.read_bytes(), path.stat().st_mode & 0o755)
    programs = sorted(path.name for path in (stage / "bin").iterdir())
    scripts = "[console_scripts]\n" + "".join(f"{name} = dtrain:run\n" for name in programs)
    info = f"dtrain-{version}.dist-info"
    licences = sorted(path for path in files if path.endswith(("/LICENSE", "/copyright")) or "/licences/" in path)
    files[f"{info}/METADATA"] = (metadata(version).encode(), 0o644)
    for licence in licences:
        files[f"{info}/licenses/{licence.rpartition('/')[2]}"] = files[licence]
    files[f"{info}/entry_points.txt"] = (scripts.encode(), 0o644)
    wheel = ["Wheel-Version: 1.0", "Generator: dtrain", "Root-Is-Purelib: false", f"Tag: {TAG}", ""]
    files[f"{info}/WHEEL"] = ("\n".join(wheel).encode(), 0o644)
    record = f"{info}/RECORD"
    rows = [f"{path},sha256={digest(data)},{len(data)}\n" for path, (data, _) in files.items()] + [f"{record},,\n"]
    files[record] = ("".join(rows).encode(), 0o644)
    return files


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", type=pathlib.Path)
    parser.add_argument("version")
    parser.add_argument("output", type=pathlib.Path, help="folder of the wheel")
    options = parser.parse_args()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
    moment = max(time.gmtime(epoch)[:6], (1980, 1, 1, 0, 0, 0))
    wheel = options.output / f"dtrain-{options.version}-{TAG}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, (data, mode) in contents(options.stage, options.version).items():
            entry = zipfile.ZipInfo(path, moment)
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system = 3
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
    print(wheel)


if __name__ == "__main__":
    main()
