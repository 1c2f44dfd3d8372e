"""Tests the log that the images' entry point, k8s/images/dtrain-pod, keeps on the volume of the results."""

import pathlib
import signal
import subprocess
import tempfile

import tools

POD = tools.K8S / "images/dtrain-pod"
IN_POD = 'mount -t tmpfs tmpfs /run && exec "$@"'

# A worker's ssh sessions have the variables that it writes before it starts sshd, which is not there.
IN_WORKER = """mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /etc && mkdir -p /etc/dtrain/ssh &&
touch /etc/dtrain/ssh/id_rsa /etc/dtrain/ssh/authorized_keys && "$@"; cat /run/dtrain/home/.ssh/environment"""


class Pod:
    """The entry point with an empty /run and a folder for logs."""

    def __init__(self, folder, *command, **variables):
        self.log = folder / "out/job/logs/launcher-x.log"
        environment = {"PATH": "/usr/bin:/bin", "POD_NAME": "launcher-x", "DTRAIN_LOG_DIR": str(self.log.parent), **variables}
        self.process = subprocess.Popen(["unshare", "--mount", "bash", "-c", IN_POD, "pod", "bash", POD, *command],
                                        env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self):
        out, errors = self.process.communicate(timeout=100)
        return self.process.returncode, out, errors


def needs_namespaces(case):
    def test():
        if tools.run("unshare", "--mount", "bash", "-c", IN_POD, "pod", "true").returncode != 0:
            tools.skip("there is no right to create namespaces")
        with tempfile.TemporaryDirectory() as folder:
            case(pathlib.Path(folder))
    return test


@needs_namespaces
def test_keeps_the_log(folder):
    """All output, also the last lines of a failed program, and its exit code; a restart appends."""
    numbers = "".join(f"{n}\n" for n in range(1, 20001))
    before = 0
    for _ in range(2):
        pod = Pod(folder, "bash", "-c", "seq 1 20000; echo reason >&2; exit 7")
        assert pod.end() == (7, numbers, "reason\n")
        text = pod.log.read_text()[before:]
        before += len(text)
        first, _, rest = text.partition("\n")
        assert first.startswith("dtrain-pod: started at "), first
        # The two streams may be interleaved anywhere.
        rest, _, last = rest.replace("reason\n", "", 1).rpartition("dtrain-pod: ended with 7 at ")
        assert rest == numbers and last.endswith("Z\n"), (len(rest), last)


@needs_namespaces
def test_sessions_have_no_secrets(_):
    """Ranks find the credentials of EKS Pod Identity and web identity, but no secret is copied."""
    passed = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials",
              "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount/token",
              "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/secrets/eks.amazonaws.com/serviceaccount/token",
              "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/training", "AWS_REGION": "us-west-2", "FROM_POD": "a b"}
    kept = {name: "hidden" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                                        "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                        "MY_SECRET", "HF_TOKEN", "DB_PASSWORD")}
    result = tools.run("unshare", "--mount", "bash", "-c", IN_WORKER, "pod", "bash", POD, "sshd",
                       env={"PATH": "/usr/bin:/bin", "LINES_OF": "a\nb", **passed, **kept})
    found = dict(line.split("=", 1) for line in result.stdout.splitlines())
    assert found == {"PATH": "/usr/bin:/bin", **passed}, (found, result.stderr)


@needs_namespaces
def test_forwards_signals(folder):
    """The program gets the pod's signal once, and ends the pod with its exit code after its last line."""
    script = "trap 'echo saved; exit 75' TERM; echo ready; while :; do sleep 0.1; done"
    pod = Pod(folder, "bash", "-c", script)
    assert pod.process.stdout.readline() == "ready\n"
    pod.process.send_signal(signal.SIGTERM)
    code, out, _ = pod.end()
    assert (code, out) == (75, "saved\n"), (code, out)
    assert pod.log.read_text().splitlines()[1:3] == ["ready", "saved"]


@needs_namespaces
def test_runs_without_a_log(folder):
    """A folder that cannot be written is named, and the program runs; without DTRAIN_LOG_DIR nothing is written."""
    code, out, errors = Pod(folder, "bash", "-c", "echo out; exit 3", DTRAIN_LOG_DIR="/proc/none").end()
    assert (code, out) == (3, "out\n") and "/proc/none/launcher-x.log cannot be written" in errors, (code, out, errors)
    pod = Pod(folder, "bash", "-c", "echo out", DTRAIN_LOG_DIR="")
    assert pod.end() == (0, "out\n", "") and not pod.log.exists()


if __name__ == "__main__":
    tools.main(globals())
