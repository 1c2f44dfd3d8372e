"""Attacks on installation: attacks.py BUILD_DIR. Runs `cmake --install` with prefixes that contain shell characters,
are links or files, on a full disk, twice in parallel and after a kill. Runs scripts/setup.sh with recorders instead of
apt, dpkg and sudo."""

import atexit
import filecmp
import os
import pathlib
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from attack_results import finish

BUILD = pathlib.Path(sys.argv[1]).resolve()
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
ATTACKS = []
reference = pathlib.Path()  # an undisturbed installation


def attack(function):
    ATTACKS.append(function)
    return function


def run(*words, before="", cwd=None, **environment):
    """Exit code and output of a command after a line of shell."""
    words = ["bash", "-c", f"{before}\nexec \"$@\"", "attack", *map(str, words)]
    done = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=120, check=False, env={**os.environ, **environment})
    return done.returncode, done.stdout


def command(prefix, component="programs"):
    return ["cmake", "--install", BUILD, "--component", component, "--prefix", prefix]


def install(prefix, component="programs", **options):
    return run(*command(prefix, component), **options)


def check(condition, told):
    if not condition:
        raise AssertionError(told)


def library(prefix):
    [path] = [path for path in prefix.glob("lib*/**/libdtrain_engine.so.*") if not path.is_symlink()]
    return path


def complete(prefix):
    """Whether all programs and libraries are there, as in the reference."""
    names = [path.relative_to(reference) for path in reference.rglob("*") if path.is_file()]
    return library(prefix).exists() and filecmp.cmpfiles(reference, prefix, names, shallow=False)[1:] == ([], [])


def entries(folder):
    return [folder, *folder.rglob("*")]


@attack
def prefix_of_shell_characters(place):
    prefix = place / "a b'\"$(touch canary)`touch canary`&*"
    code, output = install(prefix, cwd=place)
    check(code == 0 and complete(prefix), output)
    code, output = install(prefix, "development", cwd=place)
    check(code == 0, output)
    check(not (place / "canary").exists(), "a command ran")
    # Compilers get the folder as one argument; pkg-config itself takes no quotes.
    prefix = prefix.rename(place / "a b&*`touch canary`")
    [folder] = {path.parent for path in prefix.rglob("dtrain.pc")}
    code, output = run("pkg-config", "--cflags", "dtrain", PKG_CONFIG_PATH=str(folder))
    words = shlex.split(output)
    found = [pathlib.Path(word[2:]).resolve() for word in words if word.startswith("-I")]
    check(code == 0 and (prefix / "include").resolve() in found, (code, output))


@attack
def folder_before_the_prefix(place):
    code, output = install("/nowhere/at all", DESTDIR=str(place / "a b"))
    check(code == 0 and complete(place / "a b" / "nowhere" / "at all"), output)
    check(not pathlib.Path("/nowhere").exists(), "it was installed outside of DESTDIR")


@attack
def file_that_is_a_link(place):
    prefix = place / "prefix"
    check(install(prefix)[0] == 0, "it cannot be installed")
    path = library(prefix)
    path.unlink()
    (place / "victim").write_text("kept")
    path.symlink_to(place / "victim")
    code, output = install(prefix)
    check(code == 0 and complete(prefix) and not path.is_symlink(), output)
    check((place / "victim").read_text() == "kept", "it was written through a link")


@attack
def prefix_that_is_a_file(place):
    (place / "prefix").write_text("kept")
    code, output = install(place / "prefix")
    check(code != 0 and (place / "prefix").read_text() == "kept", (code, output[-500:]))


@attack
def folders_for_everybody(place):
    code, output = install(place / "prefix", before="umask 000")
    check(code == 0, output)
    for path in entries(place / "prefix"):
        mode = stat.S_IMODE(path.lstat().st_mode)
        check(path.is_symlink() or mode in (0o755, 0o644), f"{path} has the mode {mode:o}")


@attack
def programs_that_look_elsewhere(place):
    """Programs find libraries beside themselves or where the system has them, not where they were built, nor in the
    folder in which somebody starts them."""
    code, output = install(place / "prefix")
    check(code == 0, output)
    programs = [path for path in (place / "prefix/bin").iterdir() if path.read_bytes()[:4] == b"\x7fELF"]
    check(programs, "there are no programs")
    for program in programs:
        lines = [line for line in run("readelf", "-d", program)[1].splitlines() if "PATH)" in line]
        for folder in lines[0].partition("[")[2].rstrip("]").split(":") if lines else []:
            check(folder.startswith(("$ORIGIN/", "/usr/")), f"{program.name} looks for libraries in '{folder}'")
        check(program.stat().st_mode & 0o7022 == 0, f"{program.name} can be written by others, or has more rights")


@attack
def names_of_the_build(place):
    check(install(place / "prefix", "development")[0] == 0, "it cannot be installed")
    for path in entries(place / "prefix"):
        if path.suffix in (".cmake", ".pc"):
            check(str(BUILD) not in path.read_text(), f"{path.name} leads to where it was built")


@attack
def no_room(place):
    code, output = install(place / "prefix", before="ulimit -f 1000")
    check(code != 0, "what has no room is called installed")
    code, output = install(place / "prefix")
    check(code == 0 and complete(place / "prefix"), output)


@attack
def killed_and_started_again(place):
    process = subprocess.Popen(command(place / "prefix"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (place / "prefix").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    code, output = install(place / "prefix")
    check(code == 0 and complete(place / "prefix"), output)


@attack
def two_at_once(place):
    both = [subprocess.Popen(command(place / "prefix"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(2)]
    codes = [process.wait() for process in both]
    # One may find a file of the other half written: it says so, and the next run mends it.
    code, output = install(place / "prefix")
    check(0 in codes and code == 0 and complete(place / "prefix"), (codes, output[-500:]))


def recorders(place, **programs):
    """A folder with programs of these texts, and a PATH that finds them first."""
    bin = place / "bin"
    bin.mkdir()
    for name, text in programs.items():
        path = bin / name.replace("_", "-")
        path.write_text(f"#!/bin/bash\necho \"${{0##*/}} $*\" >>'{place}/calls'\n{text}\n")
        path.chmod(0o755)
    place.chmod(0o777)  # others than root write to it
    return f"{bin}:{os.environ['PATH']}"


def calls(place):
    path = place / "calls"
    return path.read_text() if path.exists() else ""


@attack
def setup_of_nothing(place):
    path = recorders(place, apt_get="", dpkg_query="", sudo="")
    for words in ((), ("",), ("build; reboot",), ("--help",), ("test ",)):
        code, output = run(SCRIPTS / "setup.sh", *words, PATH=path)
        check(code == 1 and "scripts/setup.sh build" in output, (words, code, output))
    check(calls(place) == "", calls(place))


@attack
def setup_without_rights(place):
    path = recorders(place, apt_get="exit 100", dpkg_query="exit 1", id="echo 1000")
    for program in ("bash", "sed", "cat"):
        (place / "bin" / program).symlink_to(f"/usr/bin/{program}")
    code, output = run(SCRIPTS / "setup.sh", "build", PATH=path.partition(":")[0])
    check(code == 1 and "needs root or sudo" in output and "apt-get" not in calls(place), (code, output))


@attack
def setup_that_fails(place):
    path = recorders(place, apt_get="[ \"$1\" = update ] || { echo 'E: no room' >&2; exit 100; }", dpkg_query="exit 1",
                     id="echo 0")
    code, output = run(SCRIPTS / "setup.sh", "build", PATH=path)
    check(code == 100 and "no room" in output and "are installed" not in output, (code, output))


@attack
def setup_of_what_was_removed(place):
    path = recorders(place, apt_get="cat", dpkg_query="echo config-files", id="echo 1000", sudo="cat; \"$@\"")
    code, output = run(SCRIPTS / "setup.sh", "build", PATH=path)
    check(code == 0 and "apt-get install -y" in calls(place) and "sudo apt-get update" in calls(place), (code, output))


def main():
    global reference
    problems = []
    reference = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, reference)
    code, output = install(reference)
    check(code == 0, output)
    for function in ATTACKS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                function(pathlib.Path(folder))
            except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as error:
                problems.append(f"{function.__name__.replace('_', ' ')}: {error}")
    finish(problems, len(ATTACKS))


if __name__ == "__main__":
    main()
