#!/usr/bin/env python3
"""Tests content and programs of an image: image_test.py FOLDER, the output of image_build.sh.

crun, an OCI runtime, runs the containers with a read-only root file system, no capabilities, user 54321, and a key with
mode 0640. A test's two containers have network namespaces connected by a veth pair.
"""

import contextlib
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

USER, FS_GROUP = 54321, 2000
KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----|PuTTY-User-Key-File")
FOLDER = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/k8s-image").resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def files(folder):
    return [path for path in pathlib.Path(folder).rglob("*") if not path.is_symlink()]


class Image(unittest.TestCase):
    def setUp(self):
        self.root = FOLDER / "rootfs"
        self.config = json.loads((FOLDER / "config.json").read_text())

    def test_is_small(self):
        sizes = {path: path.stat().st_size for path in files(self.root) if path.is_file()}
        programs = sum(size for path, size in sizes.items() if path.match("usr/bin/dtrain-*") or path.match("libdtrain_*"))
        total = sum(sizes.values())
        print(f"{total / 1e6:.1f} MB, {programs / 1e6:.1f} of them dtrain's programs", file=sys.stderr)
        self.assertLess(total - programs, 100e6)
        self.assertLess(total, 150e6)

    def test_has_no_keys_and_no_setuid_programs(self):
        for path in files(self.root):
            self.assertFalse(path.stat().st_mode & 0o6000, f"{path} is setuid or setgid")
            self.assertFalse(re.search(r"python|\.py$|^perl|^apt|^dpkg$|^ssh_host_|^id_[a-z0-9]+$|authorized_keys",
                                       path.name) and path.is_file() and "/status.d/" not in str(path), path)
            # Programs and libraries that parse keys contain these words legitimately.
            parsers = ("usr/bin/ssh", "openssh/sshd*", "libcrypto.so*", "libgnutls.so*", "libssh2.so*")
            if path.is_file() and not any(path.match(name) for name in parsers):
                self.assertIsNone(KEY.search(path.read_bytes()), f"there is a key in {path}")
        self.assertNotRegex((self.root / "etc/passwd").read_text(), r"(?m)^[^:]*:[^x]")
        self.assertFalse((self.root / "etc/shadow").exists())

    def test_detects_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/key")
            self.assertIsNotNone(KEY.search(pathlib.Path(f"{folder}/key").read_bytes()))

    def test_has_labels(self):
        labels = self.config["Labels"]
        version = re.search(r"VERSION (\d+\.\d+\.\d+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        self.assertEqual(labels["org.opencontainers.image.version"], version)
        for name in ("title", "description", "licenses", "created"):
            self.assertTrue(labels[f"org.opencontainers.image.{name}"], name)
        self.assertEqual(self.config["Entrypoint"], ["/usr/bin/dtrain-pod"])
        self.assertEqual(self.config["User"], "1000:1000")
        self.assertEqual(self.config["Healthcheck"]["Test"], ["CMD", "/usr/bin/dtrain-info"])

    def test_lists_its_packages(self):
        bill = json.loads((self.root / "usr/share/dtrain/sbom.spdx.json").read_text())
        names = {package["name"] for package in bill["packages"]}
        self.assertEqual(bill["spdxVersion"], "SPDX-2.3")
        self.assertLessEqual({"dtrain", "openssh-server", "openmpi-bin", "libc6", "bash"}, names)
        self.assertTrue(any(name.startswith("libdnnl") for name in names), names)
        listed = {path.name for path in (self.root / "var/lib/dpkg/status.d").iterdir()}
        wheels = {name for name in names if name.startswith("nvidia-")}
        self.assertEqual(names - wheels - {"dtrain"}, listed - {"dtrain"})
        for name in names:
            self.assertTrue((self.root / "usr/share/doc" / name / "copyright").is_file(), f"no licence of {name}")
        if syft := shutil.which("syft"):
            found = json.loads(run(syft, "-q", f"dir:{self.root}", "-o", "json"))["artifacts"]
            self.assertLessEqual(names - {"dtrain"}, {artifact["name"] for artifact in found})

    def test_is_attested(self):
        def blob(descriptor):
            text = (FOLDER / "layout/blobs/sha256" / descriptor["digest"].split(":")[1]).read_bytes()
            self.assertEqual(f"sha256:{hashlib.sha256(text).hexdigest()}", descriptor["digest"])
            self.assertEqual(len(text), descriptor["size"])
            return text

        [index] = json.loads((FOLDER / "layout/index.json").read_text())["manifests"]
        image, attestation = json.loads(blob(index))["manifests"]
        manifest = json.loads(blob(image))
        diff_ids = json.loads(blob(manifest["config"]))["rootfs"]["diff_ids"]
        for layer, diff_id in zip(manifest["layers"], diff_ids, strict=True):
            self.assertEqual(f"sha256:{hashlib.sha256(gzip.decompress(blob(layer))).hexdigest()}", diff_id)
        self.assertEqual(attestation["annotations"]["vnd.docker.reference.digest"], image["digest"])
        bill, provenance = (json.loads(blob(layer)) for layer in json.loads(blob(attestation))["layers"])
        for statement in (bill, provenance):
            self.assertEqual("sha256:" + statement["subject"][0]["digest"]["sha256"], image["digest"])
        packages = json.loads((self.root / "usr/share/dtrain/sbom.spdx.json").read_text())
        self.assertEqual(bill["predicate"], packages)
        self.assertEqual(provenance, json.loads((FOLDER / "image.provenance.json").read_text()))
        sources = {entry["name"] for entry in provenance["predicate"]["buildDefinition"]["resolvedDependencies"]}
        self.assertEqual({name for name in sources if not name.endswith("_InRelease")},
                         {package["name"] for package in packages["packages"]})

    def test_is_reproducible(self):
        with tempfile.TemporaryDirectory() as folder:
            run("tar", "-C", self.root, "--sort=name", "-cf", f"{folder}/layer.tar", "./usr/share/dtrain")
            images = []
            for name in ("one", "two"):
                run(SOURCE / "k8s/images/image.py", "cpu", f"{folder}/layer.tar", "--version=1.0.0", "--revision=",
                    "--epoch=1700000000", "--sbom", self.root / "usr/share/dtrain/sbom.spdx.json",
                    "--output", f"{folder}/{name}.tar")
                images.append(pathlib.Path(f"{folder}/{name}.tar").read_bytes())
        self.assertEqual(*images)


class Containers(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)
        key = self.place / "key"
        key.mkdir()
        run("ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-N", "", "-f", key / "id_rsa")
        shutil.copy(key / "id_rsa.pub", key / "authorized_keys")
        for path in key.iterdir():  # mode of a Secret with an fsGroup
            os.chown(path, 0, FS_GROUP)
            path.chmod(0o640)
        self.key = key

    def bundle(self, name, arguments, variables=(), space=None, user=USER, with_key=True):
        image = json.loads((FOLDER / "config.json").read_text())
        mounts = [("/proc", "proc", "proc", []), ("/dev", "tmpfs", "tmpfs", ["nosuid", "mode=755"]),
                  ("/dev/shm", "tmpfs", "tmpfs", ["mode=1777"]), ("/sys", "bind", "/sys", ["rbind", "ro"]),
                  ("/tmp", "tmpfs", "tmpfs", ["mode=1777"]), ("/run/dtrain", "tmpfs", "tmpfs", ["mode=2777"])]
        if with_key:
            mounts.append(("/etc/dtrain/ssh", "bind", str(self.key), ["rbind", "ro"]))
        if space:
            (self.place / "hosts").write_text("127.0.0.1 localhost\n10.9.0.1 launcher\n10.9.0.2 worker\n")
            (self.place / "hosts").chmod(0o644)
            mounts.append(("/etc/hosts", "bind", str(self.place / "hosts"), ["bind", "ro"]))
        names = [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]
        if space:
            names.append({"type": "network", "path": f"/run/netns/{space}"})
        folder = self.place / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({
            "ociVersion": "1.0.0", "hostname": space or name, "root": {"path": str(FOLDER / "rootfs"), "readonly": True},
            "process": {"args": image["Entrypoint"] + list(arguments), "cwd": image["WorkingDir"],
                        "env": image["Env"] + list(variables), "noNewPrivileges": True,
                        "user": {"uid": user, "gid": user, "additionalGids": [FS_GROUP]},
                        "capabilities": {kind: [] for kind in ("bounding", "effective", "permitted")}},
            "mounts": [dict(zip(("destination", "type", "source", "options"), mount)) for mount in mounts],
            "linux": {"namespaces": names}}))
        return ["crun", "--root", str(self.place / "state"), "--cgroup-manager=disabled", "run", "--bundle", str(folder),
                name]

    def contain(self, *arguments, **options):
        return subprocess.run(self.bundle(f"pod{time.monotonic_ns()}", arguments, **options), capture_output=True,
                              text=True, timeout=200, stdin=subprocess.DEVNULL)

    def check(self, *arguments, **options):
        result = self.contain(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_programs_run(self):
        self.assertIn("oneDNN:", self.check("dtrain-info"))
        self.assertRegex(self.check("mpirun", "--version"), r"Open MPI\) (4\.1|5\.0)\.")
        for program in sorted((FOLDER / "rootfs/usr/bin").glob("dtrain-*")):
            if program.name not in ("dtrain-pod", "dtrain-mpirun"):
                with self.subTest(program.name):
                    self.assertIn("usage", self.check(program.name, "--help"))
        text = self.check("dtrain-mpirun", "-np", "2", "--oversubscribe", "dtrain-allreduce-benchmark", "--device=cpu",
                          "--max_bytes=64K", variables=["OMP_NUM_THREADS=1"])
        self.assertRegex(text, r"65536 .* 0\n")

    def test_cuda_libraries_load(self):
        """Without a GPU, too: only kernels need one."""
        if not list((FOLDER / "rootfs/usr/lib").glob("*/libcudnn.so.9")):
            self.skipTest("not an image with CUDA libraries")
        text = self.check("dtrain-info")
        self.assertRegex(text, r"(?m)^GPU: +none")
        for name in ("cuBLASLt", "cuDNN", "nvJPEG", "NCCL"):
            self.assertRegex(text, rf"(?m)^{name}: .* /\S*lib/x86_64-linux-gnu/lib\S+$")

    def test_any_user_has_a_name_and_no_privileges(self):
        script = "id -un; id -gn; echo ~; stat -c %a ~/.ssh/id_rsa; grep -h Cap /proc/self/status; touch /x"
        result = self.contain("bash", "-c", script, variables=["USER_NAME=ada", "GROUP_NAME=staff"])
        self.assertEqual(result.stdout.split("\n")[:4], ["ada", "staff", "/run/dtrain/home", "600"])
        self.assertEqual(set(re.findall(r"Cap\w+:\t(\w+)", result.stdout)), {"0" * 16})
        self.assertIn("Read-only file system", result.stderr)
        for user in (1, 499, 500, 65534):
            self.assertRegex(self.check("bash", "-c", "getent passwd $UID", user=user), f"^[a-z0-9]+:x:{user}:{user}:")

    def test_errors_are_one_line(self):
        for arguments, options, code, line in (
                (["sshd"], {"with_key": False}, 1, "there is no /etc/dtrain/ssh/id_rsa: mount the job's secret there"),
                (["dtrain-nothing"], {}, 127, "there is no program 'dtrain-nothing'"),
                (["dtrain-info"], {"variables": ["USER_NAME=a b"]}, 1, "'a b': USER_NAME and GROUP_NAME are"),
                ([], {}, 1, "expected sshd, or a program")):
            result = self.contain(*arguments, **options)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertTrue(result.stderr.startswith(f"dtrain-pod: {line}"), result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    @contextlib.contextmanager
    def worker(self, *arguments, variables=()):
        spaces = ("launcher", "worker")
        for space in spaces:
            run("ip", "netns", "add", space)
        run("ip", "link", "add", "eth0", "netns", "launcher", "type", "veth", "peer", "name", "eth0", "netns", "worker")
        for number, space in enumerate(spaces, 1):
            run("ip", "-n", space, "address", "add", f"10.9.0.{number}/24", "dev", "eth0")
            for link in ("eth0", "lo"):
                run("ip", "-n", space, "link", "set", link, "up")
        with (self.place / "log").open("w") as log:
            process = subprocess.Popen(self.bundle("worker", arguments, variables, "worker"), stdout=log, stderr=log,
                                       stdin=subprocess.DEVNULL)
        try:
            yield process
        finally:
            subprocess.run(["crun", "--root", str(self.place / "state"), "delete", "--force", "worker"],
                           capture_output=True, check=False)
            process.wait(30)
            for space in spaces:
                run("ip", "netns", "delete", space)

    MPIRUN = ("dtrain-mpirun", "-np", "2", "-H", "launcher:1,worker:1", "--mca", "orte_keep_fqdn_hostnames", "true")

    def launch(self, *arguments, **options):
        deadline = time.monotonic() + 100
        options["space"] = "launcher"
        while self.contain("ssh", "worker", "true", **options).returncode:
            self.assertLess(time.monotonic(), deadline, "the worker accepts no login")
            time.sleep(0.2)
        return self.contain(*arguments, **options)

    def test_ranks_of_two_pods_connect(self):
        variables = ["USER_NAME=ada", "FROM_POD=a b", "MY_SECRET=hidden", "AWS_SESSION_TOKEN=hidden",
                     "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=/var/run/secrets/token"]
        # The operator's command for a worker.
        with self.worker("/usr/sbin/sshd", "-De", variables=variables):
            options = {"variables": ["USER_NAME=ada"], "space": "launcher"}
            text = self.launch("ssh", "worker", "env; stat -c %a .ssh/environment", **options)
            self.assertEqual(text.returncode, 0, text.stderr)
            self.assertIn("FROM_POD=a b\n", text.stdout)
            self.assertIn("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=/var/run/secrets/token\n", text.stdout)
            self.assertNotIn("hidden", text.stdout)
            self.assertIn("600", text.stdout.split("\n"))
            result = self.contain(*self.MPIRUN, "dtrain-allreduce-benchmark", "--device=cpu", "--max_bytes=64K", **options)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertRegex(result.stdout, r"65536 .* 0\n")

    def test_terminated_worker_lets_its_ranks_save(self):
        train = ["dtrain-cnn-benchmarks", "--device=cpu", "--model=small_cnn", "--data_name=cifar10", "--batch_size=4",
                 "--num_batches=1000000", "--num_warmup_batches=0", "--display_every=1", "--variable_update=horovod",
                 "--train_dir=/run/dtrain/home/run"]
        with self.worker("sshd") as worker:
            self.launch("ssh", "worker", "true")
            launcher = subprocess.Popen(self.bundle("launcher", [*self.MPIRUN, *train], ["OMP_NUM_THREADS=1"], "launcher"),
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        stdin=subprocess.DEVNULL)
            watchdog = threading.Timer(200, launcher.kill)
            watchdog.start()
            self.addCleanup(watchdog.cancel)
            for line in launcher.stdout:
                if re.search(r"^\d+\s+images/sec", line):
                    break
            run("crun", "--root", str(self.place / "state"), "kill", "worker", "TERM")
            rest = launcher.stdout.read()
            self.assertEqual(launcher.wait(60), 75, rest)
            self.assertEqual(worker.wait(30), 0, (self.place / "log").read_text())

    def test_has_a_client_for_object_storage(self):
        certificates = FOLDER / "rootfs/etc/ssl/certs/ca-certificates.crt"
        self.assertGreater(certificates.read_text().count("BEGIN CERTIFICATE"), 100)
        result = self.contain("dtrain-data", "inspect", "https://127.0.0.1:1/x", variables=["AWS_MAX_ATTEMPTS=1"])
        self.assertEqual(result.returncode, 6, result.stderr)
        self.assertRegex(result.stderr, "(?i)https://127.0.0.1:1/x: cannot be read: .*connect")

    def test_terminated_worker_without_sessions_exits_at_once(self):
        with self.worker("sshd") as worker:
            self.launch("ssh", "worker", "true")
            run("crun", "--root", str(self.place / "state"), "kill", "worker", "TERM")
            self.assertEqual(worker.wait(10), 0)


def main():
    for program in ("crun", "ip", "ssh-keygen"):
        if not shutil.which(program):
            print(f"SKIPPED: there is no {program}")
            return
    if os.geteuid() != 0 or not (FOLDER / "rootfs").is_dir():
        print(f"SKIPPED: there is no image in {FOLDER}, or this is not root")
        return
    if "DTRAIN_INSIDE" not in os.environ:  # networks and mounts end with the namespaces
        command = "ip link set lo up; umount -l /sys/fs/cgroup/unified 2>/dev/null; mount -t tmpfs tmpfs /run; " \
                  'mkdir /run/netns; exec "$@"'
        os.environ["DTRAIN_INSIDE"] = "yes"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", "bash", "-c", command, "_",
                              sys.executable, "-B", __file__, str(FOLDER), *sys.argv[1:]])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
