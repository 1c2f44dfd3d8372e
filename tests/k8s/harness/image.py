"""Root file system of the pods, and the configuration of its image."""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import tempfile

from harness.spaces import run, skip


@dataclasses.dataclass
class Image:
    layers: list  # folders, the uppermost first
    environment: dict
    entry_point: list
    arguments: list = dataclasses.field(default_factory=list)
    user: int = 0
    group: int = 0
    folder: str = "/"


def from_folder(folder):
    """An unpacked image: `rootfs`, and `config.json` with the image's configuration under `config`."""
    folder = pathlib.Path(folder)
    config = json.loads((folder / "config.json").read_text())
    user, _, group = (config.get("User") or "0").partition(":")
    variables = dict(entry.split("=", 1) for entry in config.get("Env") or [])
    return Image([folder / "rootfs"], variables, config.get("Entrypoint") or [], config.get("Cmd") or [], int(user),
                 int(group or 0), config.get("WorkingDir") or "/")


def engine():
    """The CPU image of the build, in the folder DTRAIN_K8S_IMAGE."""
    folder = os.environ.get("DTRAIN_K8S_IMAGE", "")
    if not folder or not (pathlib.Path(folder) / "rootfs").is_dir():
        skip(f"there is no unpacked image in DTRAIN_K8S_IMAGE='{folder}'")
    return from_folder(folder)


def programs(folder, *names):
    """Creates a layer with programs of this machine and their libraries. Programs that are not installed are extracted
    from the packages beside the image, if present."""
    unpacked = pathlib.Path(tempfile.mkdtemp(dir=folder))
    if not all(map(shutil.which, names)):
        for package in pathlib.Path(os.environ["DTRAIN_K8S_IMAGE"], "packages").glob("*.deb"):
            run("dpkg", "-x", package, unpacked)
    path = f"{os.environ['PATH']}:{unpacked}/usr/bin"
    missing = [name for name in names if not shutil.which(name, path=path)]
    if missing:
        skip(f"there is no {', '.join(missing)}")
    files = {shutil.which(name, path=path): f"usr/bin/{name}" for name in names}
    libraries = f"{unpacked}/usr/lib/x86_64-linux-gnu"
    for library in re.findall(r"=> (/\S+)", run("env", f"LD_LIBRARY_PATH={libraries}", "ldd", *files)):
        files[library] = f"usr/lib/x86_64-linux-gnu/{os.path.basename(library)}"
    for source, target in files.items():
        (pathlib.Path(folder) / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, pathlib.Path(folder) / target)
    shutil.rmtree(unpacked)
    for path in (pathlib.Path(folder), *pathlib.Path(folder).rglob("*")):
        path.chmod(path.stat().st_mode | 0o555)
    return folder
