"""A single-node Kubernetes in private namespaces and cgroups: started by cluster.sh, with a DNS server for pods and the
MPIJob controller; leaves nothing behind."""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import uuid

from cluster.api import Api
from cluster.controller import Controller
from harness.dns import Server
from harness.spaces import CONTROL_GROUPS, run, skip

HERE = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path(os.environ.get("DTRAIN_K8S_CACHE") or pathlib.Path.home() / ".cache/dtrain/kubernetes")
INSIDE = "DTRAIN_TEST_KUBERNETES"
NODE = "10.98.0.1"


def hierarchies():
    """Names of the cgroup v1 hierarchies."""
    return sorted(path.name for path in CONTROL_GROUPS.glob("*/") if not path.is_symlink()
                  and (path / "cgroup.procs").exists() and path.name != "unified")


@contextlib.contextmanager
def control_groups():
    """Creates a cgroup in each hierarchy for the cluster, and removes it with its descendants."""
    name = f"dtrain-k8s-test-{uuid.uuid4().hex[:8]}"
    folders = [CONTROL_GROUPS / hierarchy / name for hierarchy in hierarchies()]
    try:
        for folder in folders:
            folder.mkdir()
            for setting in ("cpuset.cpus", "cpuset.mems"):
                if (folder / setting).exists():
                    (folder / setting).write_text((folder.parent / setting).read_text())
        yield folders
    finally:
        for folder in folders:
            for path, _, _ in os.walk(folder, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)


def isolate():
    """Restarts this program as process 1 of new namespaces and exits with its code; skips with a reason if that is not
    permitted."""
    if os.environ.get(INSIDE) == "1":
        os.environ[INSIDE] = "made"
        run("mount", "-t", "tmpfs", "tmpfs", "/run")
        names = hierarchies()
        run("umount", "--recursive", CONTROL_GROUPS)
        run("mount", "-t", "tmpfs", "tmpfs", CONTROL_GROUPS)
        for name in names:
            (CONTROL_GROUPS / name).mkdir()
            run("mount", "-t", "cgroup", "-o", "none,name=systemd" if name == "systemd" else name, "cgroup",
                CONTROL_GROUPS / name)
        return
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if not (CACHE / "complete").exists():
        skip(f"there is no Kubernetes in {CACHE}: build it with tests/k8s/cluster.sh build (15 minutes)")
    if os.geteuid():
        skip("a cluster cannot be emulated: namespaces and mounts need root")
    if not hierarchies():
        skip("a cluster cannot be emulated: Kubernetes 1.20 needs cgroup v1")
    with control_groups() as folders:
        def join():
            for folder in folders:
                (folder / "cgroup.procs").write_text("0")

        command = ["unshare", "--net", "--mount", "--pid", "--ipc", "--cgroup", "--fork", "--kill-child",
                   "--mount-proc", sys.executable, "-B", *sys.argv]
        code = subprocess.run(command, preexec_fn=join, env={**os.environ, INSIDE: "1"}).returncode
    sys.exit(code)


def write_image(path, name, root, config):
    """Writes an image archive with one layer, like `docker save`."""
    layer = path.with_suffix(".layer")
    with tarfile.open(layer, "w") as archive:
        archive.add(root, ".")
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    described = json.dumps({"architecture": "amd64", "os": "linux", "config": config,
                            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode()
    listing = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as archive:
        for file, content in (("config.json", described), ("manifest.json", listing)):
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        archive.add(layer, "layer.tar")
    layer.unlink()


class Cluster:
    """A context manager; `share` is a folder with the same path on the node."""

    def __init__(self, image, name):
        """`image`: an unpacked image, see harness.image; `name`: its name in manifests."""
        self.folder = pathlib.Path("/run/kubernetes")
        self.share = self.folder / "share"
        (self.share / "images").mkdir(parents=True)
        self.kubeconfig = self.folder / "kubeconfig"
        self.environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        pause = self.folder / "pause"
        pause.mkdir()
        shutil.copy(CACHE / "bin/pause", pause / "pause")
        write_image(self.share / "images/pause.tar", "localhost/pause:1", pause, {"Entrypoint": ["/pause"]})
        config = json.loads((image / "config.json").read_text())
        write_image(self.share / "images/engine.tar", name, image / "rootfs", config)

    def __enter__(self):
        try:
            run(HERE / "cluster.sh", "up", self.folder)
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{self.logs()}") from None
        self.api = Api(self.kubeconfig)
        self.names = Server(NODE, self.look_up)
        self.controller = Controller(self.api)
        return self

    def __exit__(self, *_):
        self.controller.close()
        self.names.close()

    def look_up(self, name):
        """Addresses of a DNS name: a pod of a headless Service, or all ready pods of a Service."""
        found = []
        for pod in self.api.get("/api/v1/pods")["items"]:
            address, spec = pod["status"].get("podIP"), pod["spec"]
            full = f"{spec.get('hostname')}.{spec.get('subdomain')}.{pod['metadata']['namespace']}.svc.cluster.local"
            if address and spec.get("subdomain") and name in (full, full.partition(".")[2]):
                found.append(address)
        return found or None

    def logs(self, lines=15):
        return "\n".join(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
                         for path in sorted([*self.folder.glob("*.log"), *self.share.glob("*.log")]))

    def kubectl(self, *arguments, **options):
        return run("kubectl", *arguments, env=self.environment, **options)
