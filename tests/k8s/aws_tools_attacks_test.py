"""Attacks on k8s/tools/install.sh with malicious folders, downloads, servers and environments: downloads that do not
match versions.txt are neither installed nor reported as installed, nothing is written elsewhere, and a second run
repairs the leftovers of a killed one."""

import contextlib
import hashlib
import io
import os
import pathlib
import signal
import stat
import subprocess
import tarfile
import tempfile
import time

import aws_tools_test
import tools
from aws_tools_test import DOWNLOADS, Mirror, mirror, script, tar_of


class Hostile(Mirror):
    """Responds with the attack `way` to requests for the given paths."""

    def do_GET(self):
        way = getattr(self.server, "way", None)
        if not way:
            super().do_GET()
        elif way == "truncated":
            self.answer(200, {"Content-Length": "100000"}, b"x" * 100)
        elif way == "huge":
            self.answer(200, {"Content-Length": str(1 << 40)}, b"x" * 100)
        elif way == "file":
            self.answer(302, {"Location": "file:///etc/passwd"}, b"")
        elif way == "page":
            self.answer(200, {"Content-Type": "text/html"}, b"<html>Please log in</html>")
        elif way == "stalls":
            self.answer(200, {"Content-Length": "100000"}, b"x" * 100)
            self.server.stalled = True
            with contextlib.suppress(OSError):
                self.connection.recv(1)

    def answer(self, code, fields, body):
        self.send_response(code)
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


aws_tools_test.Mirror = Hostile


class Place:
    """A mirror, the script with its versions.txt, and a folder for attacks."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        self.environment = {**os.environ, "DTRAIN_TOOLS_MIRROR": f"http://127.0.0.1:{server.server_port}/",
                            "HOME": str(folder)}
        self.program = folder / "tools" / "install.sh"

    def start(self, *words, before="", cwd=None, **environment):
        command = ["bash", "-c", f"{before}\nexec \"$@\"", "attack", self.program, *words]
        return subprocess.Popen([str(word) for word in command], cwd=cwd or self.folder, text=True, errors="replace",
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env={**self.environment, **environment}, start_new_session=True)

    def run(self, *words, **options):
        process = self.start(*words, **options)
        try:
            output, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, output

    def serve(self, tool, data):
        """Serves another download, with its digest."""
        files = [path for path in self.folder.glob("www/**/*") if path.is_file()]
        [path] = [path for path in files if path.read_bytes() == DOWNLOADS[tool]]
        path.write_bytes(data)
        versions = self.folder / "versions.txt"
        versions.write_text(versions.read_text().replace(hashlib.sha256(DOWNLOADS[tool]).hexdigest(),
                                                         hashlib.sha256(data).hexdigest()))

    def check(self, result, code, phrase, tool="kubectl", bin=None):
        """Checks exit code and message, and that the tool is installed if and only if the exit code is 0."""
        assert result[0] == code and phrase in result[1], result
        bin = pathlib.Path(bin or self.folder / "bin")
        there = (bin / tool).is_file() and not (bin / tool).is_symlink()
        assert there == (code == 0), f"{tool} is {'' if there else 'not '}installed: {result}"
        assert (bin / f".{tool}.sha256").is_file() == (code == 0), result
        if code == 0:
            ran = subprocess.run([bin / tool], capture_output=True, text=True, check=True).stdout
            assert ran == f"{tool}\n", ran
        assert not list(bin.glob(".install.*")) if bin.is_dir() else True
        assert not (self.folder / "canary").exists(), "it executed a command or wrote outside of its folder"


ATTACKS = {}


def attack(function):
    ATTACKS[function.__name__.replace("_", " ")] = function
    return function


@attack
def folder_of_shell_characters(place):
    bin = place.folder / "a b'\"$(touch canary)`touch canary`\n;*"
    place.check(place.run("--to", bin, "kubectl"), 0, "installed in", bin=bin)


@attack
def folder_that_is_an_option(place):
    place.check(place.run("--to", "-x", "kubectl"), 0, "installed in", bin=place.folder / "-x")


@attack
def folder_that_is_the_last_one(place):
    place.check(place.run("--to", "-", "kubectl", OLDPWD="/tmp"), 0, "installed in", bin=place.folder / "-")


@attack
def path_of_cd(place):
    (place.folder / "elsewhere" / "bin").mkdir(parents=True)
    place.check(place.run("--to", "bin", "kubectl", CDPATH=str(place.folder / "elsewhere")), 0, "installed in")


@attack
def folder_that_is_a_file(place):
    (place.folder / "bin").write_text("kept")
    assert place.run("--to", "bin", "kubectl")[0] == 6 and (place.folder / "bin").read_text() == "kept"


@attack
def folder_that_leads_nowhere(place):
    (place.folder / "bin").symlink_to("nowhere/at/all")
    place.check(place.run("--to", "bin", "kubectl"), 6, "cannot be created")


@attack
def tool_that_is_a_link(place):
    (place.folder / "bin").mkdir()
    (place.folder / "victim").write_text("kept")
    (place.folder / "bin" / "kubectl").symlink_to("../victim")
    place.check(place.run("--to", "bin", "kubectl"), 0, "installed in")
    assert (place.folder / "victim").read_text() == "kept"


@attack
def tool_that_is_a_folder(place):
    (place.folder / "bin" / "kubectl").mkdir(parents=True)
    place.check(place.run("--to", "bin", "kubectl"), 6, "cannot be written")
    assert not list((place.folder / "bin" / "kubectl").iterdir())


@attack
def tool_that_leads_to_a_folder(place):
    (place.folder / "bin").mkdir()
    (place.folder / "other").mkdir()
    (place.folder / "bin" / "kubectl").symlink_to("../other")
    place.check(place.run("--to", "bin", "kubectl"), 0, "installed in")
    assert not list((place.folder / "other").iterdir())


@attack
def digest_that_is_a_link(place):
    (place.folder / "bin").mkdir()
    (place.folder / "victim").write_text("kept")
    (place.folder / "bin" / ".kubectl.sha256").symlink_to("../victim")
    place.check(place.run("--to", "bin", "kubectl"), 0, "installed in")
    assert (place.folder / "victim").read_text() == "kept"


@attack
def no_room_to_unpack(place):
    place.serve("helm", tar_of("linux-amd64/helm", script("echo helm") + bytes(1 << 20)))
    place.check(place.run("--to", "bin", "helm", before="ulimit -f 64"), 6, "is not installed", tool="helm")


@attack
def no_room_to_download(place):
    place.serve("kubectl", script("echo kubectl") + b"#" * (1 << 20))
    place.check(place.run("--to", "bin", "kubectl", before="ulimit -f 64"), 4, "could not be fetched")


@attack
def archive_of_something_else(place):
    place.serve("helm", tar_of("linux-amd64/other", b"x"))
    place.check(place.run("--to", "bin", "helm"), 6, "is not installed", tool="helm")


@attack
def archive_that_is_none(place):
    place.serve("eksctl", b"\x1f\x8b not gzip")
    place.check(place.run("--to", "bin", "eksctl"), 6, "is not installed", tool="eksctl")


@attack
def archive_of_links(place):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, target in (("../../canary", ""), ("/tmp/canary", ""), ("linux-amd64/helm", "/etc/passwd")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = (tarfile.SYMTYPE, target) if target else (tarfile.REGTYPE, "")
            archive.addfile(member)
    place.serve("helm", stream.getvalue())
    place.check(place.run("--to", "bin", "helm"), 6, "is not installed", tool="helm")


@attack
def archive_with_set_user_id(place):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo("linux-amd64/helm")
        member.mode, data = 0o6777, script("echo helm")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    place.serve("helm", stream.getvalue())
    place.check(place.run("--to", "bin", "helm"), 0, "installed in", tool="helm")
    assert stat.S_IMODE((place.folder / "bin" / "helm").stat().st_mode) == 0o755


@attack
def page_in_its_place(place):
    place.server.way = "page"
    place.check(place.run("--to", "bin", "kubectl"), 5, "has the SHA-256")


@attack
def download_that_is_cut_off(place):
    place.server.way = "truncated"
    place.check(place.run("--to", "bin", "kubectl"), 4, "could not be fetched")


@attack
def download_of_a_terabyte(place):
    place.server.way = "huge"
    place.check(place.run("--to", "bin", "kubectl"), 4, "could not be fetched")


@attack
def way_to_a_file(place):
    place.server.way = "file"
    place.check(place.run("--to", "bin", "kubectl"), 4, "could not be fetched")


@attack
def mirror_that_is_an_option(place):
    """curl's replacement checks that the URL is passed as a URL; this machine's DNS is not used."""
    curl = place.folder / "fake" / "curl"
    curl.parent.mkdir()
    curl.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"${0%/*}/words"\nexit 6\n')
    curl.chmod(0o755)
    result = place.run("--to", "bin", "kubectl", DTRAIN_TOOLS_MIRROR=f"-o{place.folder}/canary",
                       PATH=f"{curl.parent}:{os.environ['PATH']}")
    place.check(result, 4, "could not be")
    words = (curl.parent / "words").read_text().splitlines()
    assert [words[i - 1] for i, word in enumerate(words) if word.startswith("-o/")] == ["--url"], words


def modes(place, umask):
    place.check(place.run("--to", "bin", "kubectl", "aws", before=f"umask {umask}"), 0, "installed in")
    found = {name: stat.S_IMODE((place.folder / "bin" / name).stat().st_mode)
             for name in (".", "kubectl", ".kubectl.sha256")}
    assert found == {".": 0o755, "kubectl": 0o755, ".kubectl.sha256": 0o644}, found


@attack
def files_for_nobody_else(place):
    modes(place, "077")


@attack
def files_for_everybody(place):
    modes(place, "000")


@attack
def options_for_tar_and_unzip(place):
    options = {"TAR_OPTIONS": f"--to-command='touch {place.folder}/canary'", "UNZIP": "-x *", "UNZIPOPT": "-x *"}
    place.check(place.run("--to", "bin", "helm", "terraform", **options), 0, "installed in", tool="helm")
    place.check((0, ""), 0, "", tool="terraform")


@attack
def no_place_for_temporary_files(place):
    place.check(place.run("--to", "bin", "kubectl", TMPDIR="/proc/no where"), 0, "installed in")


@attack
def names_of_tools(place):
    for name in ("kubectl helm", "*", "../kubectl", "-x", ""):
        code, output = place.run("--to", "bin", name)
        assert code == 1 or name == "kubectl helm", (name, code, output)


@attack
def path_without_programs(place):
    (place.folder / "empty").mkdir()
    for program in ("bash", "grep", "uname", "dirname", "curl", "tar"):
        (place.folder / "empty" / program).symlink_to(f"/usr/bin/{program}")
    code, output = place.run("--to", "bin", "kubectl", before=f"export PATH={place.folder}/empty")
    assert code == 6 and "flock is not installed" in output, output


@attack
def killed_and_started_again(place):
    place.server.way = "stalls"
    first = place.start("--to", "bin", "kubectl")
    deadline = time.monotonic() + 60
    while not getattr(place.server, "stalled", False) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert list((place.folder / "bin").glob(".install.*")), "it was killed too late"
    place.server.way = None
    place.check(place.run("--to", "bin", "kubectl"), 0, "installed in")


@attack
def two_at_once(place):
    both = [place.start("--to", "bin", "kubectl") for _ in range(2)]
    results = [(one.communicate(timeout=60)[0], one.returncode) for one in both]
    assert sorted(code for _, code in results) == [0, 0], results
    assert sum("installed in" in text for text, _ in results) == 1, results
    place.check((0, ""), 0, "")


def test_attacks():
    problems = []
    for name, function in ATTACKS.items():
        with tempfile.TemporaryDirectory() as folder, mirror(pathlib.Path(folder)) as (server, _):
            try:
                function(Place(pathlib.Path(folder), server))
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                problems.append(f"{name}: {error!r}")
    for problem in problems:
        print("FAILED", problem)
    print(f"{len(ATTACKS) - len(problems)} of {len(ATTACKS)} attacks were handled")
    assert not problems


if __name__ == "__main__":
    tools.main(globals())
