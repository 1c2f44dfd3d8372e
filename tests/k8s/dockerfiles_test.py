#!/usr/bin/env python3
"""Checks that hadolint reports nothing for the Dockerfiles."""

import tools


def test_dockerfiles():
    hadolint = tools.TOOLS / "hadolint/bin/hadolint"
    if not hadolint.exists():
        tools.skip("there is no hadolint: tests/k8s/tools.sh fetches it")
    files = sorted((tools.K8S / "images").glob("*/Dockerfile"))
    assert len(files) == 3, files
    tools.check_run(hadolint, *files)


if __name__ == "__main__":
    tools.main(globals())
