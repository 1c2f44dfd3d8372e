"""Runs k8s/ec2/run.sh and cluster-health-check.sh on two hosts in namespaces: a master, which trains, too, and a
worker, each with an sshd, an address and Docker's bridge. Logins use an ssh agent, and /run/efs is the shared disk.
ctest runs each test_* function separately, with the folder of the programs in DTRAIN_BIN_DIR.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "distributed"))
import cluster  # noqa: E402
from cluster import wait_until  # noqa: E402

EC2 = ROOT / "k8s" / "ec2"
BINARIES = pathlib.Path(os.environ.get("DTRAIN_BIN_DIR", ROOT / "build" / "bin"))
DATA = pathlib.Path(os.environ.get("DTRAIN_TEST_DATA", ROOT.parent / "shared" / "data")) / "coco_mini"
EFS = pathlib.Path("/run/efs")
# ssh configuration of cluster.yaml's user data, except for port and address range.
SSH_CONFIG = """\
Host 10.244.0.*
  StrictHostKeyChecking accept-new
  ForwardAgent yes
  Port {port}
  UserKnownHostsFile {folder}/known_hosts
"""
LOGGED_IN = """\
/usr/sbin/sshd -f {folder}/sshd_config
exec ssh-agent bash -c 'ssh-add -q {folder}/user_key && exec "$@"' login "$@"
"""
STEPS = 60  # of a training that is killed
TRAINING = ("--device=cpu", "--num_intra_threads=1", "--display_every=1", "--save_model_steps=2",
            f"--num_batches={STEPS}", "--collective_timeout=20", "BACKBONE.WEIGHTS=", "BACKBONE.BOTTLENECK=False",
            "BACKBONE.RESNET_NUM_BLOCKS=[1,1,1,1]", "FPN.NUM_CHANNEL=16", "FPN.FRCNN_FC_HEAD_DIM=32",
            "MRCNN.HEAD_DIM=16", "FRCNN.BATCH_PER_IM=16", "RPN.BATCH_PER_IM=32", "PREPROC.TRAIN_SHORT_EDGE_SIZE=64",
            "PREPROC.TEST_SHORT_EDGE_SIZE=64", "PREPROC.MAX_SIZE=96", "TRAIN.BASE_LR=0.001",
            "TEST.RESULT_SCORE_THRESH=0.9")


class Hosts(cluster.Cluster):
    """The master is the launcher. Programs are installed on both hosts, in /usr/local/bin."""

    def __init__(self):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/usr/local/bin"], check=True)
        for program in (*BINARIES.glob("dtrain-*"), ROOT / "scripts" / "dtrain-mpirun"):
            os.symlink(program, f"/usr/local/bin/{program.name}")
        EFS.mkdir()
        super().__init__(workers=1, slots=1)
        for host in (self.launcher, *self.workers):
            for words in (["link", "add", "docker0", "type", "bridge"], ["link", "set", "docker0", "up"],
                          ["address", "add", "172.17.0.1/16", "dev", "docker0"]):
                subprocess.run(["ip", "-n", host.name, *words], check=True)

    def _write_files(self):
        super()._write_files()
        (self.folder / "ssh_config").write_text(SSH_CONFIG.format(port=cluster.PORT, folder=self.folder))
        # Like the output of stack.sh.
        self.hostfile.write_text("".join(f"{host.address} slots=1\n" for host in (self.launcher, *self.workers)))

    def environment(self):
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "DTRAIN_"))}
        return {**mine, "PATH": f"/usr/local/bin:{os.environ['PATH']}",
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_orte_tmpdir_base": "/run/pod", "FS": str(EFS), "HOSTFILE": str(self.hostfile)}

    def log_in(self, *command, **environment):
        """Starts a command as a user who logged in to the master with `ssh -A`; wait() for it."""
        self.start("bash", "-c", LOGGED_IN.format(folder=self.folder), "master", *command, environment=environment)

    def wait_for(self, line):
        def printed():
            assert self.launcher.process.poll() is None, f"it exited before '{line}'; {self.launcher.written()}"
            return re.search(line, self.launcher.output(), re.MULTILINE)
        try:
            wait_until(printed, line, 60)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; {self.launcher.written()}") from None

    def on(self, host, *command):
        """Runs a command that changes a host's view of the file system."""
        subprocess.run(["nsenter", "-t", str(host.first_process()), "-m", "-r", *command], check=True)

    def expect(self, codes, *texts):
        found = self.wait(180)
        written = self.launcher.written()
        codes = codes if isinstance(codes, tuple) else (codes,)
        assert found in codes, f"exit code {found}, expected {codes}; {written}"
        for text in texts:
            assert re.search(text, self.launcher.output() + self.launcher.errors()), f"no '{text}'; {written}"
        self.wait_for_ranks(0)


def steps_of(hosts):
    return [int(step) for step in re.findall(rf"^step (\d+)/{STEPS} ", hosts.launcher.output(), re.MULTILINE)]


def runs():
    return sorted(EFS.glob("mask-rcnn-coco-*"))


def test_trains_and_resumes():
    if not DATA.exists():
        cluster.skip(f"there is no {DATA}")
    with Hosts() as hosts:
        (EFS / "data").symlink_to(DATA)
        hosts.log_in(EC2 / "run.sh", *TRAINING)
        hosts.wait_for("saved .*/step-2$")
        hosts.signal_rank(1, signal.SIGKILL)
        # The kill, or with Open MPI 5 the lost connection, if the other rank reports it first.
        hosts.expect((137, 4) if shutil.which("prterun") else 137, "run.sh: results in /run/efs/mask-rcnn-coco-2-efs-")
        [run] = runs()
        assert re.fullmatch(r"mask-rcnn-coco-2-efs-\d{4}(-\d\d){5}", run.name), run
        assert not (run / "done").exists()

        hosts.log_in(EC2 / "run.sh", *TRAINING)
        hosts.expect(0, f"run.sh: resuming {run}")
        steps = steps_of(hosts)
        assert steps[0] > 2 and steps[-1] == STEPS, steps
        assert runs() == [run] and (run / "done").exists()
        assert (run / f"train_log/maskrcnn/checkpoints/step-{STEPS}/model.safetensors").stat().st_size
        logs = sorted(path.relative_to(run / "logs").parts[1:] for path in run.glob("logs/*/*/rank.*/stdout"))
        assert logs == 2 * [("1", "rank.0", "stdout")] + 2 * [("1", "rank.1", "stdout")], logs
        key = (hosts.folder / "user_key").read_text().splitlines()[1]
        assert not [path for path in EFS.glob("mask*/**/*") if path.is_file() and key.encode() in path.read_bytes()]


def test_health():
    check = EC2 / "cluster-health-check.sh"
    with Hosts() as hosts:
        worker = hosts.workers[0]
        hosts.log_in(check, "--device=cpu", "--min_bandwidth=0.001")
        hosts.expect(0, r"2 ranks", r"rank 0 - rank 1: latency", r"67108864 .* 0\b")
        assert not [*EFS.iterdir()], "files were left over"
        hosts.log_in(check)
        hosts.expect(1, "no GPU")
        hosts.log_in(check, "--device=tpu")
        hosts.expect(1, "expected --device=gpu")

        hosts.on(worker, "mount", "-t", "tmpfs", "tmpfs", EFS)
        hosts.log_in(check, "--device=cpu")
        hosts.expect(6, f"{worker.address}: cannot read a file written to /run/efs on this host")
        hosts.on(worker, "umount", EFS)

        # Like a disk whose server is down: reads block.
        slow = hosts.folder / "cat"
        slow.write_text("#!/bin/sh\nexec sleep 1000\n")
        slow.chmod(0o755)
        hosts.on(worker, "mount", "--bind", slow, "/usr/bin/cat")
        hosts.log_in(check, "--device=cpu", TIMEOUT="10")  # includes the logins, which are slow on a busy machine
        hosts.expect(6, f"{worker.address}: cannot read a file written to /run/efs on this host within 10 s")

        os.kill(worker.first_process(), signal.SIGSTOP)
        hosts.log_in(check, "--device=cpu", TIMEOUT="2")
        hosts.expect(4, f"{worker.address}: no ssh login within 2 s")
        os.kill(worker.first_process(), signal.SIGCONT)

        worker.cut_off()
        hosts.log_in(check, "--device=cpu", TIMEOUT="2")
        hosts.expect(4, f"{worker.address}: no ssh login within 2 s")

        hosts.hostfile.write_text(f"{hosts.launcher.address} slots=2\n")
        hosts.log_in(check, "--device=cpu", "--min_bandwidth=100000")
        hosts.expect(4, r"all-reduce bandwidth is [0-9.]+ GB/s, less than 100000")


if __name__ == "__main__":
    cluster.main(globals())
