"""Makes the packages importable that tests/python_packages.sh installs, in any Python of the same version."""

import contextlib
import filecmp
import os
import pathlib
import sys

FOLDER = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "dtrain", "python")
PYTHON = FOLDER / "bin" / "python3"
INSTALL = "tests/python_packages.sh installs it"


def installed():
    """Whether the environment is complete and has the packages of requirements.txt."""
    stamp = FOLDER / "requirements.txt"
    return stamp.is_file() and filecmp.cmp(stamp, pathlib.Path(__file__).with_name("requirements.txt"), shallow=False)


@contextlib.contextmanager
def required():
    """Around imports: ends the test as skipped where one of the modules is not installed."""
    if installed():
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        sys.path.insert(1, str(FOLDER / "lib" / version / "site-packages"))  # before Debian's, as in the environment
    try:
        yield
    except ModuleNotFoundError as error:
        print(f"SKIPPED: {sys.executable} has no {error.name}: scripts/setup.sh test or {INSTALL}")
        sys.exit(0)
