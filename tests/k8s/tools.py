"""Shared functions of the tests of k8s/: paths of files and tools, and skipping of tests."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
K8S = ROOT / "k8s"
HERE = ROOT / "tests" / "k8s"
DATA = pathlib.Path(os.environ.get("DTRAIN_TEST_DATA", ROOT.parent / "shared" / "data"))
SCHEMAS = DATA.parent / "schemas"
PROGRAMS = pathlib.Path(os.environ.get("DTRAIN_BIN_DIR", ROOT / "build" / "bin"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
TOOLS = pathlib.Path(os.environ.get("DTRAIN_K8S_TOOLS", CACHE / "dtrain" / "k8s-tools"))
TRAINING_MODELS = TOOLS / "kubeflow-training" / "kubeflow" / "training" / "models"
sys.path.insert(0, str(K8S))

import check_versions
import yaml

# libyaml's parser, which yaml.safe_load then also uses, takes a tenth of the time.
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def pinned_version(component):
    """The version of a component in k8s/versions.txt."""
    return check_versions.read_pins()[component].version


def skip(reason):
    """Skips a test with a reason."""
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def helms():
    """The Helm programs that tests/k8s/tools.sh downloaded, the oldest first, else the one in PATH."""
    found = [str(path) for path in sorted(TOOLS.glob("helm-*/helm"))]
    on_path = shutil.which("helm")
    if not found and on_path:
        found = [on_path]
    return found or skip("there is no Helm: tests/k8s/tools.sh fetches it")


def run(*command, **options):
    """Runs a command and returns its result with text output."""
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)


def check_run(*command, **options):
    """Runs a command that must succeed, and returns its output."""
    result = run(*command, **options)
    assert result.returncode == 0, f"{' '.join(map(str, command))}: {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout


def check_manifests(paths, exceptions=None):
    """Validates and lints manifest files. `exceptions` maps prefixes of file names to rules that they may violate."""
    environment = dict(os.environ, PYTHONPATH=str(TOOLS / "python")) if (TOOLS / "python").is_dir() else None
    check_run(sys.executable, HERE / "validate.py", "--schemas", SCHEMAS, *paths, env=environment)
    faults = run(sys.executable, HERE / "lint.py", *paths)
    expected = [f"/{word}-[0-9]+[.]yaml: [^ ]+: {rule}:" for word, rule in (exceptions or {}).items()]
    faults = [line for line in (faults.stdout + faults.stderr).splitlines()
              if not any(re.search(pattern, line) for pattern in expected)]
    assert not faults, "\n".join(faults)


def main(cases):
    """Runs the tests named on the command line, by default all functions test_* of a module."""
    for name in sys.argv[1:] or [name for name in cases if name.startswith("test_")]:
        cases[name]()
        print(f"{name}: passed")
