"""Tests the command line of k8s/images/build.sh: it says what it builds before it starts."""

import pathlib
import shutil
import tempfile

import tools

CASES = (
    ([], "dtrain-cpu 9.8.7 from {root}/dist to {root}/dist; name cpu, cuda, cuda12 or efa to build others"),
    (["cpu"], "dtrain-cpu 9.8.7 from {root}/dist to {root}/dist"),
    (["--from", "packages", "cuda", "cuda12"], "dtrain-cuda dtrain-cuda12 9.8.7 from packages to packages"),
    (["--prebuilt", "tree", "--output", "image.tar", "cuda"], "dtrain-cuda 9.8.7 from tree to image.tar"),
    (["--push", "localhost:1/team", "efa"], "dtrain-efa 9.8.7 from {root}/dist to localhost:1/team"),
)


def test_says_what_it_builds():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        shutil.copytree(tools.K8S / "images", root / "k8s/images")
        (root / "CMakeLists.txt").write_text("project(dtrain VERSION 9.8.7 LANGUAGES CXX)\n", encoding="utf-8")
        (root / "bin").mkdir()
        for name in ("python3", "mmdebstrap", "dpkg-deb", "skopeo"):  # the line does not depend on tools
            (root / "bin" / name).write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
            (root / "bin" / name).chmod(0o755)
        for words, expected in CASES:
            result = tools.run("env", f"PATH={root}/bin:/usr/bin:/bin", root / "k8s/images/build.sh", *words, cwd=root)
            assert result.returncode != 0, f"{words}: there are no packages"
            first = result.stderr.splitlines()[0]
            assert first == f"build.sh: building {expected.format(root=root)}", (words, result.stderr)
        result = tools.run(root / "k8s/images/build.sh", "gpu")
        assert result.returncode == 1 and "building" not in result.stderr, result.stderr


if __name__ == "__main__":
    tools.main(globals())
