"""Tests k8s/ec2/install.sh in a mount namespace with another os-release, attach-fsx.sh with a recorder for ssh, and the
file systems that run.sh detects. tests/k8s/ec2_release.sh installs the files of a release."""

import contextlib
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

import tools

EC2 = tools.K8S / "ec2"
UBUNTU = 'ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\n'
DEBIAN = 'ID=debian\nVERSION_ID="{}"\nPRETTY_NAME="Debian GNU/Linux {}"\n'
INFO = """\
#!/bin/bash
[ "$1" != --selftest ] || [ -e /etc/ld.so.conf.d/dtrain-cuda.conf ] || {{ echo "error: {}"; exit 1; }}
"""
ARCHIVE = "dtrain-0.2.0-linux-x86_64"
DEBS = [f"{name}_0.2.0-1~deb{release}u1_amd64.deb" for release in (12, 13) for name in ("dtrain", "libdtrain0")]
# Installs by apt what the archive has.
APT = """\
#!/bin/bash
echo "$*" >>"$CALLS"
[[ $* != *python3-venv ]] || exit 0
[ -z "${NO_APT:-}" ] && cp "$INFO" /usr/local/bin/dtrain-info
"""
# Stands for `python3 -m venv FOLDER`, whose pip installs a library.
PYTHON = """\
#!/bin/bash
mkdir -p "$3/bin"
cat >"$3/bin/pip" <<'PIP'
#!/bin/bash
echo "pip $*" >>"$CALLS"
mkdir -p "${0%/bin/pip}/lib/python3.12/site-packages/nvidia/cudnn/lib"
[ -z "${NO_PIP:-}" ]
PIP
chmod +x "$3/bin/pip"
"""
NAMESPACE = """\
mount -t tmpfs tmpfs /etc/ld.so.conf.d && mount -t tmpfs tmpfs /opt &&
  mount -t tmpfs tmpfs /usr/local/bin && mount --bind "$1" /etc/os-release || exit 99
bash "$2" "${@:3}"
code=$?
ls -l /usr/local/bin /opt
exit $code
"""


def write(path, text, mode=0o755):
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def archive(text):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name in ("dtrain-info", "dtrain-mpirun"):
            member = tarfile.TarInfo(f"{ARCHIVE}/bin/{name}")
            member.size, member.mode = len(text), 0o755
            tar.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


class Host:
    """A host with a folder of a release's files."""

    def __init__(self, folder):
        self.folder, self.files = folder, folder / "packages"
        (folder / "bin").mkdir()
        self.files.mkdir()
        write(folder / "bin/apt-get", APT)
        write(folder / "bin/ldconfig", '#!/bin/bash\necho ldconfig >>"$CALLS"\n')
        write(folder / "info", INFO.format("built without CUDA"))
        shutil.copy(EC2 / "install.sh", self.files)
        self.unpack()

    def unpack(self):
        """Puts all files of a release into the folder."""
        (self.files / f"{ARCHIVE}.tar.gz").write_bytes(archive(INFO.format("built without CUDA")))
        for name in DEBS:
            (self.files / name).write_text(name)

    def sums(self):
        lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()} *{path.name}\n" for path in self.files.iterdir()]
        (self.files / "SHA256SUMS").write_text("".join(lines))

    def install(self, release, code, *words, **variables):
        system = write(self.folder / "os-release", release)
        (self.folder / "calls").write_text("")
        environment = {"PATH": f"{self.folder / 'bin'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                       "CALLS": str(self.folder / "calls"), "INFO": str(self.folder / "info"), **variables}
        done = subprocess.run(["unshare", "--mount", "--map-root-user", "bash", "-c", NAMESPACE, "host", system,
                               self.files / "install.sh", *words], env=environment, text=True, capture_output=True)
        if done.returncode == 99:
            tools.skip("the right to mount")
        assert done.returncode == code, (release, done)
        return done.stdout + done.stderr

    def apt(self):
        return (self.folder / "calls").read_text()


@contextlib.contextmanager
def host():
    with tempfile.TemporaryDirectory() as name:
        yield Host(pathlib.Path(name))


def test_selects_files():
    with host() as one:
        one.sums()
        output = one.install(UBUNTU, 0)
        assert f"install.sh: {ARCHIVE}.tar.gz on Ubuntu 24.04.3 LTS" in output and not one.apt(), output
        assert f"dtrain-mpirun -> /opt/{ARCHIVE}/bin/dtrain-mpirun" in output and ".new" not in output, output
        for release in (12, 13):
            output = one.install(DEBIAN.format(release, release), 0)
            packages = [str(one.files / name) for name in DEBS if f"deb{release}" in name]
            assert f" {packages[1]} {packages[0]} openmpi-bin\n" in one.apt(), (one.apt(), output)
            assert "->" not in output, output
        # A release for another Debian has no packages.
        assert f"{ARCHIVE}.tar.gz on Debian" in one.install(DEBIAN.format(11, 11), 0) and not one.apt()
        assert f"{ARCHIVE}.tar.gz on" in one.install(UBUNTU, 0, str(one.files))


REFUSED = (  # a change of the files: exit code, system, message
    (lambda files: (files / DEBS[3]).unlink(), 1, DEBIAN.format(13, 13),
     "expected libdtrain0 and dtrain of one version for Debian 13"),
    (lambda files: (files / DEBS[0].replace("0.2.0", "0.3.0")).touch(), 1, DEBIAN.format(12, 12),
     "of one version for Debian 12"),
    (lambda files: (files / f"{ARCHIVE}.tar.gz").unlink(), 1, UBUNTU,
     "neither packages for Ubuntu 24.04.3 LTS nor the archive"),
    (lambda files: (files / "dtrain-0.3.0-linux-x86_64.tar.gz").touch(), 1, UBUNTU,
     "expected one archive, found dtrain-0.2.0"),
    (lambda files: (files / f"{ARCHIVE}.tar.gz").write_bytes(b"x"), 2, UBUNTU, "SHA256SUMS has another digest"),
    (lambda files: (files / DEBS[2]).write_text("x"), 2, DEBIAN.format(13, 13), "SHA256SUMS has another digest"),
)


def test_refuses_files():
    for change, code, system, text in REFUSED:
        with host() as one:
            one.sums()
            change(one.files)
            output = one.install(system, code)
            assert text in output and output.count("install.sh: ") == 1 and not one.apt(), (text, output)
            assert "->" not in output, output
    with host() as one:
        cut = (one.files / f"{ARCHIVE}.tar.gz").read_bytes()[:60]
        (one.files / f"{ARCHIVE}.tar.gz").write_bytes(cut)
        assert "cannot be unpacked" in one.install(UBUNTU, 2)
        assert "apt could not install" in one.install(DEBIAN.format(13, 13), 5, NO_APT="yes")
        assert "none is not a folder" in one.install(UBUNTU, 1, "/none")
        assert "usage" in one.install(UBUNTU, 1, "a", "b")


def test_checks_gpu():
    with host() as one:
        smi = write(one.folder / "bin/nvidia-smi", "#!/bin/sh\nexit 9\n")
        one.install(UBUNTU, 0)
        write(smi, "#!/bin/sh\necho GPU 0: L40S\n")
        output = one.install(UBUNTU, 7)
        assert "the GPU cannot be used: error: built without CUDA. Needs a release made with CUDA" in output, output
        assert not one.apt(), one.apt()
        # Libraries that are missing come from the wheel's extra.
        (one.files / f"{ARCHIVE}.tar.gz").write_bytes(archive(INFO.format("cuDNN: cuDNN cannot be loaded: no file")))
        assert "cuDNN cannot be loaded: no file. Needs" in one.install(UBUNTU, 7) and not one.apt()
        wheel = one.files / "dtrain-0.2.0-py3-none-manylinux_2_31_x86_64.whl"
        wheel.touch()
        write(one.folder / "bin/python3", PYTHON)
        one.install(UBUNTU, 0)
        assert f"pip install --quiet {wheel}[cuda13]\n" in one.apt() and one.apt().endswith("ldconfig\n"), one.apt()
        assert "pip could not install" in one.install(UBUNTU, 5, NO_PIP="yes")
        (one.files / f"{ARCHIVE}.tar.gz").write_bytes(archive("#!/bin/bash\n"))
        one.install(UBUNTU, 0)
        assert not one.apt(), one.apt()


# ssh runs its command here; the host's programs record their calls.
PROGRAMS = {
    "ssh": 'host=${*: -2:1}\necho "ssh $host" >>"$CALLS"\n'
           '[ "$host" != "${SILENT:-}" ] || { echo "timed out" >&2; exit 255; }\nexec bash -c "${!#}"\n',
    "sudo": 'echo "$*" >>"$CALLS"\n[ "$1" != mount ] || [ -z "${FAULT:-}" ] || { echo "$FAULT" >&2; exit 5; }\n'
            '[ "$1" != tee ] || cat >>"$CALLS"\n',
    "mountpoint": '[ -n "${MOUNTED:-}" ]\n', "findmnt": 'echo "$MOUNTED"\n', "mount.lustre": "exit 0\n",
}
DNS = "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com"


def test_attaches_fsx():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program, text in PROGRAMS.items():
            write(folder / program, f"#!/bin/bash\n{text}")
        hosts = write(folder / "hosts", "10.0.0.4 slots=8 # master\n10.0.64.5 slots=8\n")

        def attach(code, *words, **variables):
            (folder / "calls").write_text("")
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(folder / "calls"),
                           "HOSTFILE": str(hosts), **variables}
            done = tools.run(EC2 / "attach-fsx.sh", *words, env=environment)
            assert done.returncode == code, (words, done)
            return done.stdout + done.stderr

        calls = folder / "calls"
        assert f"{DNS} is mounted at /fsx on 2 hosts" in attach(0, DNS, "abcdefgh")
        lines = calls.read_text().splitlines()
        assert [line for line in lines if line.startswith("ssh")] == ["ssh 10.0.0.4", "ssh 10.0.64.5"], lines
        assert lines.count(f"mount -t lustre -o noatime,flock {DNS}@tcp:/abcdefgh /fsx") == 2, lines
        assert lines.count(f"{DNS}@tcp:/abcdefgh /fsx lustre noatime,flock,_netdev,x-systemd.automount 0 0") == 2, lines
        attach(0, DNS, "abcdefgh", MOUNTED=f"{DNS}@tcp:/abcdefgh")
        assert "mount" not in calls.read_text(), calls.read_text()
        assert "10.0.64.5: /fsx could not be mounted: /fsx is fs-2" in attach(5, DNS, "abcdefgh", MOUNTED="fs-2")
        assert "10.0.0.4: /fsx could not be mounted: no route" in attach(5, DNS, "abcdefgh", FAULT="no route")
        output = attach(4, DNS, "abcdefgh", SILENT="10.0.0.4")
        assert "10.0.0.4: no response over ssh within 120 s: timed out" in output, output
        assert "ssh 10.0.64.5" in calls.read_text()
        (folder / "mount.lustre").unlink()
        if not os.path.exists("/sbin/mount.lustre"):
            assert "10.0.64.5: there is no Lustre client" in attach(6, DNS, "abcdefgh")
        for words in ((), (DNS,), ("host;reboot", "abcdefgh"), (DNS, "a b"), (DNS, "$(reboot)")):
            output = attach(1, *words)
            assert output.count("\n") == 1 and not calls.read_text(), output
        hosts.write_text("-oProxyCommand=reboot\n")
        assert "is not a host name" in attach(1, DNS, "abcdefgh") and not calls.read_text()


def test_detects_file_system():
    """The data set is on FSx, else on EFS, else on each host's EBS volume."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        fsx, efs, home = (folder / part for part in ("fsx", "efs", "home"))
        for path in (fsx, efs, home, folder / "bin"):
            path.mkdir()
        write(folder / "bin/dtrain-mpirun", '#!/bin/bash\nprintf "%s\\n" "$@" >"$COMMAND"\n')
        write(folder / "bin/mountpoint", '#!/bin/bash\n[[ " $MOUNTS " == *" $2 "* ]]\n')

        def train(code=0, hosts=2, **variables):
            (home / "hostfile").write_text("".join(f"10.0.0.{n + 4} slots=8\n" for n in range(hosts)))
            environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(home),
                           "FSX": str(fsx), "EFS": str(efs), "MOUNTS": str(efs), "COMMAND": str(folder / "command"),
                           "NEW": "1", **variables}
            for lacking in ("FS", "DATA", "HOSTFILE"):
                if lacking not in variables:
                    environment.pop(lacking, None)
            done = tools.run(EC2 / "run.sh", env=environment)
            assert done.returncode == code, (variables, done)
            if code:
                return done.stderr
            run = pathlib.Path(done.stdout.split()[-1])
            [data] = [line for line in (folder / "command").read_text().splitlines() if line.startswith("--data_dir=")]
            shutil.rmtree(run)
            return str(run.parent), run.name.split("-")[4], data.partition("=")[2]

        assert f"there is no {fsx}/data, {efs}/data or {home}/data" in train(1)
        (home / "data").mkdir()
        assert train() == (str(efs), "ebs", f"{home}/data")
        assert train(hosts=1, MOUNTS="") == (str(home), "ebs", f"{home}/data")
        assert "results of 2 hosts need a shared file system" in train(1, MOUNTS="")
        assert train(MOUNTS=f"{efs} {fsx}") == (str(fsx), "ebs", f"{home}/data")
        (efs / "data").mkdir()
        assert train() == (str(efs), "efs", f"{efs}/data")
        (fsx / "data").mkdir()
        assert train() == (str(fsx), "fsx", f"{fsx}/data")
        assert train(FS=str(efs)) == (str(efs), "efs", f"{efs}/data")
        assert train(DATA=f"{home}/data") == (str(fsx), "fsx", f"{home}/data")


if __name__ == "__main__":
    tools.main(globals())
