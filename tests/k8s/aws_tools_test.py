"""Tests k8s/tools: installation from a local mirror, Terraform's S3 backend, and the preflight of an AWS account."""

import contextlib
import functools
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile

import tools

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port  # noqa: E402

SECRET = "wJalrXUtnFEMI-not-a-real-key"


def script(text):
    return f"#!/bin/sh\n{text}\n".encode()


def tar_of(name, data):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def zip_of(name, data):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        member = zipfile.ZipInfo(name)
        member.external_attr = 0o755 << 16
        archive.writestr(member, data)
    return stream.getvalue()


# Like the AWS CLI's installer, takes its folders as options.
AWS = script('shift 2\nmkdir -p "$1/v2"\nprintf "#!/bin/sh\\necho aws\\n" >"$1/v2/aws"\nchmod +x "$1/v2/aws"\n'
             'ln -sf "$1/v2/aws" "$3/aws"')
DOWNLOADS = {"kubectl": script("echo kubectl"), "helm": tar_of("linux-amd64/helm", script("echo helm")),
             "terraform": zip_of("terraform", script("echo terraform")),
             "eksctl": tar_of("eksctl", script("echo eksctl")),
             "aws": zip_of("aws/install", AWS)}


class Mirror(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        self.server.requests += 1


@contextlib.contextmanager
def mirror(folder):
    """A web server on this machine, and a copy of the tools with the digests of its downloads."""
    (folder / "tools").mkdir()
    shutil.copy(tools.K8S / "tools" / "install.sh", folder / "tools")
    rows = []
    for line in (tools.K8S / "versions.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("tool "):
            rows.append(line)
            continue
        _, name, version, date, address, _ = line.split()
        path = folder / "www" / address.removeprefix("https://")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(DOWNLOADS[name])
        rows.append(f"tool {name} {version} {date} {address} {hashlib.sha256(DOWNLOADS[name]).hexdigest()}")
    (folder / "versions.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Mirror, directory=folder / "www"))
    server.requests = 0
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    environment = dict(os.environ, DTRAIN_TOOLS_MIRROR=f"http://127.0.0.1:{server.server_port}/", HOME=str(folder))
    try:
        yield server, lambda *words: tools.run(folder / "tools" / "install.sh", *words, env=environment)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_installs_verified_downloads():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with mirror(folder) as (server, install):
            result = install("--to", folder / "bin")
            assert result.returncode == 0, result.stderr
            for tool in DOWNLOADS:
                assert tools.check_run(folder / "bin" / tool).strip() == tool
                assert stat.S_IMODE((folder / "bin" / tool).stat().st_mode) & 0o111
            fetched = server.requests
            assert fetched == 5
            assert install("--to", folder / "bin").stdout.count("installed already") == 5
            assert server.requests == fetched, "installed tools were downloaded again"
            assert install("helm").returncode == 0 and (folder / ".local/bin/helm").is_file()
            assert not (folder / ".local/bin/kubectl").exists()
            assert install("ksonnet").returncode == 1


def test_rejects_wrong_digest():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with mirror(folder) as (_, install):
            assert install("--to", folder / "bin", "kubectl").returncode == 0
            versions = folder / "versions.txt"
            text = versions.read_text(encoding="utf-8")
            digest = hashlib.sha256(DOWNLOADS["kubectl"]).hexdigest()
            versions.write_text(text.replace(digest, "0" * 64), encoding="utf-8")
            before = (folder / "bin" / "kubectl").read_bytes()
            result = install("--to", folder / "bin", "kubectl")
            assert result.returncode == 5 and "0" * 64 in result.stderr, result
            assert (folder / "bin" / "kubectl").read_bytes() == before
            (path,) = folder.glob("www/get.helm.sh/*")
            path.write_bytes(path.read_bytes()[:-7])  # truncated download
            result = install("--to", folder / "bin", "helm")
            assert result.returncode == 5, result
            path.unlink()
            result = install("--to", folder / "bin", "helm")
            assert result.returncode == 4 and "could not be fetched" in result.stderr, result
            assert sorted(os.listdir(folder / "bin")) == [".kubectl.sha256", "kubectl"]


# An AWS CLI that answers from files named after service and operation, and records its calls.
RECORDER = r"""#!/bin/bash
printf '%s\n' "$*" >>"$FAKE/calls"
file=$FAKE/$1-$2
case "$*" in *--quota-code*) file=$file-$(sed 's/.*--quota-code \([^ ]*\).*/\1/' <<<"$*") ;; esac
[ -f "$file" ] && cat "$file"
"""


@contextlib.contextmanager
def account():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "bin").mkdir()
        (folder / "bin/aws").write_text(RECORDER, encoding="utf-8")
        (folder / "bin/aws").chmod(0o755)
        environment = dict(os.environ, FAKE=name, PATH=f"{folder / 'bin'}:{os.environ['PATH']}", AWS_REGION="us-west-2",
                           AWS_SECRET_ACCESS_KEY=SECRET)

        def answer(operation, text):
            (folder / operation).write_text(text + "\n", encoding="utf-8")

        answer("sts-get-caller-identity", "arn:aws:sts::123456789012:assumed-role/builder/me")
        answer("iam-get-role", "arn:aws:iam::123456789012:role/team/builder")
        answer("iam-simulate-principal-policy", "None")
        answer("ec2-describe-instance-types", "96")
        answer("ec2-describe-instance-type-offerings", "us-west-2b\tus-west-2c")
        answer("service-quotas-get-service-quota-L-417A185B", "192.0")
        answer("service-quotas-get-service-quota-L-7212CCBC", "0.0")

        def run(program, *words, **changes):
            result = tools.run(tools.K8S / program, *words, env={**environment, **changes})
            assert SECRET not in result.stdout + result.stderr
            return result

        yield folder, answer, run
        calls = folder / "calls"
        assert not calls.exists() or SECRET not in calls.read_text(encoding="utf-8")


def test_account_preflight():
    with account() as (folder, answer, run):
        def expect(code, text, *words, **changes):
            result = run("preflight.sh", "--aws", *words, **changes)
            assert result.returncode == code and text in result.stderr, (result.returncode, result.stderr)

        expect(0, "nothing is missing")
        expect(0, "96 vCPUs, in the zones us-west-2b us-west-2c", "p4d.24xlarge=2")
        expect(0, "cost of an hour: 43.92 USD for 2 h of p4d.24xlarge", "p4d.24xlarge=2")
        calls = (folder / "calls").read_text(encoding="utf-8")
        assert "--policy-source-arn arn:aws:iam::123456789012:role/team/builder --action-names eks:Create" in calls
        expect(22, "allows 192 vCPUs for 3 x p4d.24xlarge (on-demand), which need 288", "p4d.24xlarge=3")
        expect(22, "1 x p4d.24xlarge (on-demand), 2 x p3.16xlarge (on-demand)", "p4d.24xlarge=1", "p3.16xlarge=2")
        expect(22, "--quota-code L-7212CCBC --desired-value 96", "--spot", "p4d.24xlarge=1")
        expect(22, "cannot be read", "g5.xlarge=1")
        expect(1, "usage", "p4d.24xlarge")
        expect(1, "usage", "p4d=0")
        answer("iam-simulate-principal-policy", "eks:CreateCluster\tiam:PassRole")
        expect(21, "lacks the permission eks:CreateCluster")
        expect(21, "lacks the permission iam:PassRole")
        (folder / "iam-simulate-principal-policy").unlink()
        expect(21, "may not simulate its permissions")
        answer("sts-get-caller-identity", "arn:aws:iam::123456789012:root")
        expect(0, "root user")
        answer("ec2-describe-instance-types", "None")
        expect(23, "does not offer p9.24xlarge", "p9.24xlarge=1")
        expect(20, "no region", AWS_REGION="", AWS_DEFAULT_REGION="")
        (folder / "sts-get-caller-identity").unlink()
        expect(20, "no valid credentials")


def test_state_backend():
    with account() as (folder, answer, run):
        target = folder / "terraform"
        target.mkdir()
        result = run("tools/s3-backend.sh", "bucket", "us-west-2", target)
        assert result.returncode == 4 and "does not respond" in result.stderr and not list(target.iterdir()), result
        answer("s3api-head-bucket", "{}")
        answer("s3api-get-bucket-versioning", "None")
        for _ in range(2):
            result = run("tools/s3-backend.sh", "bucket", "us-west-2", target)
            assert result.returncode == 0 and "has no versioning" in result.stderr, result
        text = (target / "backend.tf").read_text(encoding="utf-8")
        assert 'bucket       = "bucket"' in text and "use_lockfile = true" in text, text
        result = run("tools/s3-backend.sh", "other", "us-west-2", target)
        assert result.returncode == 6 and "names another state" in result.stderr, result
        assert (target / "backend.tf").read_text(encoding="utf-8") == text
        for words in ([], ["Bad_Bucket"], ["bucket", "nowhere"], ["bucket", "us-west-2", target / "none"]):
            assert run("tools/s3-backend.sh", *words).returncode == 1, words
        if shutil.which("terraform"):
            environment = dict(os.environ, CHECKPOINT_DISABLE="1")
            tools.check_run("terraform", f"-chdir={target}", "fmt", "-check", env=environment)


def test_state_is_in_bucket():
    """Real Terraform and AWS CLI, with a mock of S3."""
    path = f"{tools.CACHE / 'dtrain/aws-tools/bin'}:{os.environ['PATH']}"
    for program in ("aws", "terraform", "moto_server"):
        if not shutil.which(program, path=path):
            tools.skip(f"there is no {program}")
    port = free_port()
    environment = dict(os.environ, PATH=path, AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", AWS_ACCESS_KEY_ID="key",
                       AWS_SECRET_ACCESS_KEY=SECRET, AWS_REGION="us-west-2", AWS_PAGER="", CHECKPOINT_DISABLE="1")
    with tempfile.TemporaryDirectory() as name, open(pathlib.Path(name) / "log", "wb") as log:
        server = subprocess.Popen(["moto_server", "-H", "127.0.0.1", "-p", str(port)], env=environment, stdout=log,
                                  stderr=log)
        try:
            wait_for(port, server)
            target = pathlib.Path(name) / "root"
            target.mkdir()
            (target / "main.tf").write_text('output "answer" { value = 42 }\n', encoding="utf-8")
            for bucket in ("first-state", "second-state"):
                tools.check_run("aws", "s3", "mb", f"s3://{bucket}", env=environment)
            tools.check_run("aws", "s3api", "put-bucket-versioning", "--bucket", "first-state",
                            "--versioning-configuration", "Status=Enabled", env=environment)
            backend = tools.K8S / "tools" / "s3-backend.sh"
            result = tools.run(backend, "first-state", "us-west-2", target, env=environment)
            assert result.returncode == 0 and not result.stderr, result
            result = tools.run(backend, "no-state", "us-west-2", target, env=environment)
            assert result.returncode == 4 and "does not respond" in result.stderr, result
            tools.check_run("terraform", f"-chdir={target}", "init", "-backend-config=use_path_style=true",
                            "-backend-config=skip_credentials_validation=true",
                            "-backend-config=skip_requesting_account_id=true", env=environment)
            tools.check_run("terraform", f"-chdir={target}", "apply", "-auto-approve", env=environment)
            assert not list(target.glob("terraform.tfstate*")), "the state is on this machine"
            state = tools.check_run("aws", "s3", "cp", "s3://first-state/dtrain/terraform.tfstate", "-", env=environment)
            assert json.loads(state)["outputs"]["answer"]["value"] == 42, state
        finally:
            server.terminate()
            server.wait()


def wait_for(port, server):
    """Waits until a server listens."""
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server ended")


if __name__ == "__main__":
    tools.main(globals())
