#!/usr/bin/env python3
"""Tests the layer of CUDA libraries with synthetic wheels: which files it has, and that pip checks their digests."""

import hashlib
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

IMAGES = pathlib.Path(__file__).resolve().parents[2] / "k8s/images"


class CudaLibraries(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = pathlib.Path(folder.name)
        (self.place / "wheels").mkdir()

    def wheel(self, name, version, files):
        """Makes a wheel and returns its line of a requirements file."""
        path = self.place / "wheels" / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        information = f"{name.replace('-', '_')}-{version}.dist-info"
        with zipfile.ZipFile(path, "w") as archive:
            for file in files:
                archive.writestr(file, f"content of {file}")
            archive.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{information}/RECORD", "")
            archive.writestr(f"{information}/licenses/License.txt", f"licence of {name}\n")
        self.sum = hashlib.sha256(path.read_bytes()).hexdigest()
        return f"{name}=={version} --hash=sha256:{self.sum}\n"

    def run_script(self, requirements, folder="out"):
        (self.place / "requirements.txt").write_text(requirements)
        script = IMAGES / "common/cuda-libraries.sh"
        return subprocess.run([script, self.place / "requirements.txt", self.place / folder],
                              env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.place / "wheels")},
                              capture_output=True, text=True, check=False)

    def test_layer(self):
        # cuDNN of a later version has a sub-library that earlier ones lack.
        cudnn = self.wheel("nvidia-cudnn-cu99", "9.99.0", [
            "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cudnn/lib/libcudnn_new.so.9", "nvidia/cudnn/lib/libcudnn_adv.so.9",
            "nvidia/cudnn/include/cudnn.h"])
        cudnn_sum = self.sum
        cublas = self.wheel("nvidia-cublas", "99.1", [
            "nvidia/cu99/lib/libcublas.so.99", "nvidia/cu99/lib/libcublasLt.so.99", "nvidia/cu99/lib/libnvblas.so.99"])
        for folder in ("out", "again"):
            result = self.run_script(cudnn + cublas, folder)
            self.assertEqual(result.returncode, 0, result.stderr)
        libraries = {"libcudnn.so.9", "libcudnn_new.so.9", "libcublasLt.so.99"}
        self.assertEqual({path.name for path in (self.place / "out/lib").iterdir()}, libraries)
        self.assertEqual((self.place / "out/packages").read_text().splitlines(), [
            f"nvidia-cublas 99.1 pkg:pypi/nvidia-cublas@99.1 {self.sum}",
            f"nvidia-cudnn-cu99 9.99.0 pkg:pypi/nvidia-cudnn-cu99@9.99.0 {cudnn_sum}"])
        with tarfile.open(self.place / "out/layer.tar") as layer:
            members = {member.name: member for member in layer if member.isfile()}
            self.assertEqual({(member.uid, member.mode, member.mtime) for member in members.values()}, {(0, 0o644, 0)})
            text = layer.extractfile("./usr/share/doc/nvidia-cublas/copyright").read()
        self.assertEqual(text, b"licence of nvidia-cublas\n")
        self.assertEqual({name.split("/")[-1] for name in members}, libraries | {"copyright"})
        self.assertEqual(*((self.place / folder / "layer.tar").read_bytes() for folder in ("out", "again")))

    def test_other_content_is_refused(self):
        line = self.wheel("nvidia-cublas", "99.1", ["nvidia/cu99/lib/libcublasLt.so.99"])
        self.wheel("nvidia-cublas", "99.1", ["nvidia/cu99/lib/libcublasLt.so.99", "nvidia/cu99/lib/libextra.so.1"])
        result = self.run_script(line)
        self.assertEqual(result.returncode, 6)
        self.assertIn("cuda-libraries.sh: pip cannot download the wheels", result.stderr)

    def test_requirements_have_digests(self):
        for name in ("cuda", "cuda12"):
            lines = [line for line in (IMAGES / name / "requirements.txt").read_text().splitlines() if line[0] != "#"]
            for line in lines:
                self.assertRegex(line, r"^nvidia-[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}$")
            for library in ("cublas", "cudnn", "nccl", "nvjpeg", "cuda-nvrtc"):
                self.assertEqual(sum(line.startswith(f"nvidia-{library}") for line in lines), 1, f"{name}: {library}")


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        print("SKIPPED: there is no pip")
        sys.exit(0)
    unittest.main(verbosity=2)
