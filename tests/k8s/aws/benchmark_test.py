"""Tests k8s/benchmark/run.sh with recorders for eksctl, kubectl and called scripts, and a mock of S3: created resources
are deleted and results copied, whichever step fails or is interrupted."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import mock
import warm_aws

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAN = """\
name = trial
region = us-west-2
cluster = k8s/cluster.yaml
nodes = system,gpu
storage = k8s/claim.yaml
data = coco
data_path = bucket/data
result_path = bucket/results
image = registry.test/dtrain-cpu:9
[experiment first]
manifest = k8s/job.yaml
timeout = 1
[experiment second]
manifest = k8s/job.yaml
metric = speed ([0-9]+)
"""
JOB = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: job, namespace: training}
spec:
  template:
    containers:
      - image: "dtrain-cpu:0.2.0"
"""
# Records its call, then hangs, fails or answers as a cluster would. Answers about an object depend on whether it was
# applied.
RECORDER = """\
#!/bin/bash
call="$(basename "$0") $*"
echo "$call" >>"$CALLS"
[[ -z ${HANG:-} || ! $call =~ $HANG ]] || { touch "$CALLS.hangs"; exec sleep 60; }
[[ -z ${FAIL:-} || ! $call =~ $FAIL ]] || { echo "refused: $call" >&2; exit 1; }
case "$call" in
  "eksctl get cluster"*) [ -n "${THERE:-}" ] ;;
  *"get -f"*"-o name") [ -z "${OBJECTS:-}" ] || echo mpijob/job ;;
  *"get -f"*custom-columns*) echo "MPIJob training job ${STATE:-Created,Running,Succeeded}" ;;
  "kubectl kustomize"*) exec "$KUBECTL" "${@}" ;;
  *"get -f"*go-template*) echo "pvc-1 ${VOLUMES:-}" ;;
  "kubectl get pv pvc-1"*) echo Retain fs-1 fsx.csi.aws.com ;;
  "kubectl get pv pvc-2"*) echo Delete fs-2 fsx.csi.aws.com ;;
  "kubectl logs"*) printf "step 1\\ntotal images/sec: 12.5\\nspeed 7${LOG:-}\\ntotal images/sec: 123.4\\n" ;;
esac
"""


class Trial:
    def __init__(self, folder, server):
        self.folder, self.tree = folder, folder / "tree"
        for name in ("benchmark", "data", "lib"):
            shutil.copytree(ROOT / "k8s" / name, self.tree / "k8s" / name)
        shutil.copy(ROOT / "k8s/instance-prices.csv", self.tree / "k8s")
        (self.tree / "k8s/cluster").mkdir()
        (self.tree / "k8s/cluster.yaml").write_text("metadata:\n  name: trial\n  region: us-west-2\n")
        (self.tree / "k8s/claim.yaml").write_text("kind: PersistentVolumeClaim\n")
        (self.tree / "k8s/job.yaml").write_text(JOB)
        (self.tree / "plan").write_text(PLAN)
        self.calls_file = folder / "calls"
        (folder / "bin").mkdir()
        for path in (folder / "bin/eksctl", folder / "bin/kubectl", self.tree / "k8s/cluster/install.sh",
                     self.tree / "k8s/data/stage.sh"):
            path.write_text(RECORDER)
            path.chmod(0o755)
        self.environment = server.environment(CALLS=str(self.calls_file), DTRAIN_POLL_SECONDS="0.1", AWS_MAX_ATTEMPTS="2",
                                              DTRAIN_RETRY_SECONDS="0")
        self.environment["KUBECTL"] = shutil.which("kubectl") or "false"
        self.environment["PATH"] = f"{folder / 'bin'}:{folder / 'warm'}:{self.environment['PATH']}"
        self.environment.pop("KUBECONFIG", None)
        self.server = server
        server.ask("PUT", "/bucket")
        self.results = folder / "results"

    def start(self, *arguments, **variables):
        self.calls_file.write_text("")
        self.results = self.folder / f"results{len(list(self.folder.glob('results*')))}"
        return subprocess.Popen([self.tree / "k8s/benchmark/run.sh", *(arguments or [self.tree / "plan", self.results])],
                                env={**self.environment, **variables}, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, *arguments, code=0, **variables):
        process = self.start(*arguments, **variables)
        output = process.communicate(timeout=200)[0]
        assert process.returncode == code, f"{process.returncode}, not {code}: {output}"
        for secret in (mock.ACCESS_KEY, mock.SECRET_KEY):
            assert secret not in output
        return output

    def calls(self):
        return self.calls_file.read_text().splitlines()

    def called(self, begin):
        return [call for call in self.calls() if call.startswith(begin)]

    def saved(self):
        """Names of the results of the last call on S3."""
        return self.server.keys("bucket", f"results/{self.results.name}/")


@contextlib.contextmanager
def trial():
    with tempfile.TemporaryDirectory() as name, mock.Mock() as server, warm_aws.Warm(f"{name}/warm"):
        yield Trial(pathlib.Path(name), server)


def assert_torn_down(one, cluster=True):
    deleted = one.called("eksctl delete cluster")
    assert len(deleted) == cluster, one.calls()
    if cluster:
        assert one.calls()[-1] == deleted[0], "the cluster has to go last"


def test_complete_run():
    with trial() as one:
        output = one.run()
        steps = ["eksctl create cluster", "eksctl create nodegroup", "install.sh", "kubectl apply -f " + str(one.results / "claim.yaml"),
                 "stage.sh coco bucket/data", "kubectl apply -f " + str(one.results / "first"),
                 "kubectl apply -f " + str(one.results / "second"), "kubectl delete -f " + str(one.results / "claim.yaml"),
                 "eksctl delete cluster"]
        places = [next(i for i, call in enumerate(one.calls()) if call.startswith(step)) for step in steps]
        assert places == sorted(places), one.calls()
        rows = {line.split()[0]: line.split()[1:] for line in output.splitlines() if line.startswith(("first ", "second "))}
        assert rows["first"][0] == "succeeded" and rows["first"][2] == "123.4", output
        assert rows["second"][2] == "7", output
        assert "image: registry.test/dtrain-cpu:9" in (one.results / "first/manifest.yaml").read_text()
        saved = one.saved()
        for name in ("plan", "cluster.yaml", "claim.yaml", "table.txt", "cluster.log", "first/manifest.yaml",
                     "first/MPIJob-job.log", "first/objects.yaml", "second/MPIJob-job.log", "SHA256SUMS"):
            assert name in saved, f"{name} is not among {saved}"
        assert "kubeconfig" not in str(saved)
        # The mock has no log group of the cluster.
        assert "calling the DeleteLogGroup operation" in (one.results / "tear-down.log").read_text()
        assert_torn_down(one)


def test_data_is_where_experiments_read_it():
    """plan.example stages ImageNet to the folder that its experiments read. Other folders are refused before anything is
    created."""
    if not shutil.which("kubectl"):
        print("SKIPPED: there is no kubectl")
        sys.exit(77)
    with trial() as one:
        shutil.rmtree(one.tree / "k8s")
        shutil.copytree(ROOT / "k8s", one.tree / "k8s")
        for name in ("cluster/install.sh", "data/stage.sh"):
            (one.tree / "k8s" / name).write_text(RECORDER)
        cluster = one.tree / "k8s/cluster/eksctl/cluster.yaml"
        cluster.write_text(cluster.read_text().replace("203.0.113.7/32", "198.51.100.7/32"))  # not the example
        bucket = ["S3_IMPORT_PATH=s3://bucket/ml-platform", "S3_EXPORT_PATH=s3://bucket/ml-platform"]
        network = ["SUBNET_ID=subnet-01234567", "SECURITY_GROUP_IDS=sg-01234567"]

        def set_parameters(*arguments):
            subprocess.run([one.tree / "k8s/set.sh", *arguments], check=True)

        set_parameters("storage/fsx-s3", *network, *bucket)
        plan = (ROOT / "k8s/benchmark/plan.example").read_text().replace("my-bucket/", "bucket/")
        (one.tree / "plan").write_text(plan)
        one.run()
        assert one.called("stage.sh imagenet bucket/ml-platform"), one.calls()
        for change, reason in (
                (lambda: set_parameters("resnet50-fsx", "DATASET_DIR=/data/imagenet/train"),
                 "experiment resnet50-fsx: it reads /data/imagenet/train of the claim fsx-claim, but the data is staged to "
                 "/data/imagenet"),
                (lambda: (one.tree / "plan").write_text(plan.replace("data_path = bucket/ml-platform",
                                                                     "data_path = bucket/other")),
                 "the claim fsx-claim shows s3://bucket/ml-platform, but the data is staged to s3://bucket/other/imagenet")):
            change()
            assert reason in one.run(code=1)
            assert not one.called("eksctl create") and not one.called("kubectl apply") and not one.results.exists()


def test_metric_is_data():
    """No part of a metric is run, and no control character of a log is printed."""
    with trial() as one:
        metric = r"speed ([^ ]+)|/e;touch evil;#|$(touch evil)|`touch evil`|']] && touch evil"
        (one.tree / "plan").write_text(PLAN.replace("speed ([0-9]+)", metric))
        output = one.run(LOG=r"\033]0;evil\007\xc2\x9b1m\t8")
        assert " 7]0;evil1m8\n" in output and not set("\x1b\x9b") & set(output), output
        assert not list(one.folder.rglob("evil"))
        # A pattern that exhausts grep's memory costs only the metric, and is reported.
        grep = one.folder / "bin/grep"
        grep.write_text('#!/bin/sh\n[ "$1" != -ahoE ] || exit 2\nexec /bin/grep "$@"\n')
        grep.chmod(0o755)
        output = one.run()
        assert "second: searching its logs for the metric exceeded 60 s or 1 GB" in output, output


FAILURES = {  # what fails: exit code, and whether both experiments were tried
    "eksctl create cluster": (4, False), "eksctl create nodegroup": (4, False), "^install.sh": (4, False),
    "apply -f .*/claim": (4, False), "^stage.sh": (4, False), "apply -f .*/first/": (3, True),
    "kubectl logs": (0, True),
}


def test_failures():
    with trial() as one:
        for pattern, (code, tried) in FAILURES.items():
            output = one.run(code=code, FAIL=pattern)
            assert bool([call for call in one.calls() if "/second/" in call]) == tried, (pattern, one.calls())
            assert {"plan", "table.txt"} <= one.saved(), (pattern, output)
            assert_torn_down(one)


def test_interrupted():
    with trial() as one:
        for pattern in ("eksctl create cluster", "eksctl create nodegroup", "^install.sh", "apply -f .*/claim",
                        "^stage.sh", "custom-columns"):
            for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
                hangs = pathlib.Path(f"{one.calls_file}.hangs")
                hangs.unlink(missing_ok=True)
                process = one.start(HANG="" if pattern == "custom-columns" else pattern, STATE="Created,Running")
                while not (hangs.exists() or pattern == "custom-columns" and one.called("kubectl get -f " + str(
                        one.results / "first/manifest.yaml") + " --no-headers")):
                    assert process.poll() is None, process.communicate()[0]
                    time.sleep(0.05)
                os.killpg(process.pid, number)  # as a terminal does
                output = process.communicate(timeout=200)[0]
                assert process.returncode == code, (pattern, process.returncode, output)
                assert {"plan", "table.txt"} <= one.saved(), (pattern, output)
                if pattern == "custom-columns":
                    assert "interrupted" in output, output
                assert_torn_down(one)
    

# The clock advances by an hour with each reading.
CLOCK = """\
#!/bin/bash
[ "$*" = +%s ] || exec /bin/date "$@"
echo x >>"$CALLS.clock"
echo $((3600 * $(wc -l <"$CALLS.clock")))
"""


def test_outcomes():
    with trial() as one:
        output = one.run(code=3, STATE="Created,Failed")
        assert output.count(" failed ") == 2, output
        clock = one.folder / "bin/date"
        clock.write_text(CLOCK)
        clock.chmod(0o755)
        output = one.run(code=3, STATE="Created,Running")
        assert output.count(" timeout ") == 2, output
        assert_torn_down(one)


def test_existing_resources_are_kept():
    with trial() as one:
        assert "use it with 'cluster = existing'" in one.run(code=1, THERE="yes")
        assert not one.called("eksctl delete") and not one.called("eksctl create")
        plan = one.tree / "plan"
        plan.write_text(PLAN.replace("cluster = k8s/cluster.yaml\nnodes = system,gpu\n", "cluster = existing\n"))
        output = one.run(code=3, OBJECTS="yes")
        assert "are not changed" in output and not one.called("kubectl delete") and not one.called("eksctl"), one.calls()
        one.run()
        assert one.called(f"kubectl delete -f {one.results / 'claim.yaml'}") and not one.called("eksctl")


def test_storage():
    """Storages are rendered first, applied, and deleted; waits for file systems that are deleted with their claim."""
    with trial() as one:
        if one.environment["KUBECTL"] == "false":
            print("SKIPPED: there is no kubectl")
            sys.exit(77)
        for name in ("storage", "components"):
            shutil.copytree(ROOT / "k8s" / name, one.tree / "k8s" / name)
        (one.tree / "plan").write_text(PLAN.replace("k8s/claim.yaml", "k8s/storage/nfs k8s/storage/fsx-s3"))
        output = one.run(code=1)
        assert "data.NFS_SERVER` is missing" in output and "storage k8s/storage/nfs cannot be rendered" in output, output
        assert not one.called("eksctl") and not one.called("kubectl apply") and not one.results.exists(), one.calls()
        for name in ("nfs", "fsx-s3"):
            path = one.tree / "k8s/storage" / name / "parameters.yaml"
            path.write_text(path.read_text().replace("  # ", "  "))
        output = one.run(code=7, VOLUMES="pvc-2", FAIL="kubectl wait")
        nfs, fsx = one.results / "nfs.yaml", one.results / "fsx-s3.yaml"
        assert "kind: PersistentVolume\n" in nfs.read_text() and "kind: StorageClass\n" in fsx.read_text()
        steps = [f"kubectl apply -f {nfs}", f"kubectl apply -f {fsx}", "stage.sh", f"kubectl delete -f {fsx}",
                 "kubectl wait --for=delete pv/pvc-2 --timeout", f"kubectl delete -f {nfs}", "eksctl delete cluster"]
        places = [next(i for i, call in enumerate(one.calls()) if call.startswith(step)) for step in steps]
        assert places == sorted(places), one.calls()
        assert not [call for call in one.called("kubectl wait") if "pvc-1" in call], one.calls()
        assert {"nfs.yaml", "fsx-s3.yaml"} <= one.saved()
        assert f"not deleted: storage {fsx}" in output, output
        assert "kept, and costs money until you delete it: fs-1 of fsx.csi.aws.com" in output and "fs-2" not in output, output


def test_copy_failure():
    with trial() as one:
        (one.tree / "plan").write_text(PLAN.replace("bucket/results", "missing-bucket/results"))
        output = one.run(code=7)
        assert f"the results are still in {one.results}" in output, output
        assert_torn_down(one)
    with trial() as one:
        output = one.run(code=7, FAIL="eksctl delete")
        assert "not deleted: cluster k8s/cluster.yaml" in output, output


def test_plans():
    cases = {  # a change of the plan: the message
        ("region = us-west-2", "region = us-west-3"): "plan: region is us-west-3, but k8s/cluster.yaml has us-west-2",
        ("name = trial", "nam = trial"): "plan:1: unknown key 'nam'",
        ("nodes = ", "nodes "): "plan:4: expected 'NAME = VALUE'",
        ("data = coco", "data = $(touch evil)"): "plan:6: data is '$(touch evil)', expected imagenet, coco or code",
        ("data_path = bucket/data\n", ""): "plan: data needs data_path",
        ("result_path = bucket/results", "result_path = bucket/.. /x"): "plan:8: result_path is",
        ("[experiment second]", "[experiment first]"): "plan:13: duplicate experiment first",
        ("timeout = 1", "timeout = 0"): "plan:12: timeout is '0', expected minutes",
        ("timeout = 1", "timeout = 1\ntimeout = 2"): "plan:13: duplicate timeout",
        ("manifest = k8s/job.yaml\ntimeout", "timeout"): "plan: first has no manifest",
        ("k8s/claim.yaml", "k8s/none.yaml"): "plan:5: storage is 'k8s/none.yaml'",
        ("metric = speed ([0-9]+)", "metric = speed"): "plan:15: metric is 'speed'",
        ("metric = speed ([0-9]+)", "metric = speed ([0-9]+"): "plan:15: metric is 'speed ([0-9]+'",
        ("metric = speed", "metric = ((x?){200}){200}"): "plan:15: metric is '((x?){200}){200}",
        ("metric = speed ([0-9]+)", "metric = a)|(b"): "plan:15: metric is 'a)|(b'",
        ("metric = speed", f"metric = {'s' * 200}"): "of at most 200 characters",
        ("[experiment second]", "[experiment plan]"): "plan:13: an experiment cannot be called plan",
        ("([0-9]+)\n", "([0-9]+)\x01\\1\x01p;e touch evil #\n"): "plan:15: a control character",
        ("name = trial", "name = \x1b[31mtrial"): "plan:1: a control character",
        ("name = trial", "name = \x9b31mtrial"): "plan:1: a control character",
        ("manifest = k8s/job.yaml\nmetric", "manifest = -k8s/job.yaml\nmetric"): "plan:14: manifest is '-k8s/job.yaml'",
        ("manifest = k8s/job.yaml\nmetric", "manifest = ../outside.yaml\nmetric"): "plan:14: manifest is '../outside.yaml'",
        ("manifest = k8s/job.yaml\nmetric", "manifest = k8s/link.yaml\nmetric"): "plan:14: manifest is 'k8s/link.yaml'",
        ("k8s/claim.yaml", "k8s/*.yaml"): "plan:5: storage is 'k8s/*.yaml'",
        ("cluster = k8s/cluster.yaml", "cluster = k8s/link.yaml"): "plan:3: cluster is 'k8s/link.yaml'",
    }
    with trial() as one:
        plan = one.tree / "plan"
        (one.folder / "outside.yaml").write_text(JOB)
        (one.tree / "k8s/link.yaml").symlink_to(one.folder / "outside.yaml")
        (one.tree / "-k8s").symlink_to("k8s")
        for (old, new), line in cases.items():
            assert old in PLAN
            plan.write_text(PLAN.replace(old, new, 1))
            output = one.run(code=1, LC_ALL="C")
            assert line in output and len(output.splitlines()) == 1, (line, output)
            assert not one.calls() and not one.results.exists()
        assert not list(one.folder.rglob("evil"))
        plan.write_text(PLAN.replace("\n", "\r\n"))
        assert one.run("--check", plan).startswith(f"{plan}: 2 experiments: first second\ncost, if ")
        shutil.copy(one.tree / "k8s/job.yaml", one.tree / "k8s/a+b@c, d.yaml")
        honest = PLAN.replace("k8s/cluster.yaml", f"{one.tree}/k8s/cluster.yaml").replace("speed (", r"sp(e)\1d (")
        honest = honest.replace("k8s/job.yaml", "./k8s/job.yaml", 1).replace("= k8s/job.yaml", "= k8s/a+b@c, d.yaml")
        plan.write_text("# é \u201c\n" + honest)
        assert "2 experiments" in one.run("--check", plan)
        example = ROOT / "k8s/benchmark/plan.example"
        checked = subprocess.run([ROOT / "k8s/benchmark/run.sh", "--check", example], text=True, capture_output=True,
                                 check=True).stdout
        assert checked.startswith(f"{example}: 2 experiments: resnet50-fsx resnet50-synthetic\ncost, if "), checked
        assert "no such file" in one.run(one.tree / "none", code=1)
        cluster = one.tree / "k8s/cluster.yaml"
        before = cluster.read_text()
        cluster.write_text(f"{before}vpc:\n  publicAccessCIDRs: [203.0.113.7/32]\n")
        assert "publicAccessCIDRs is the example 203.0.113.7/32" in one.run(code=1) and not one.calls(), one.calls()
        assert "note: " in one.run("--check", plan)
        cluster.write_text(before)
        one.results.mkdir()
        process = subprocess.run([one.tree / "k8s/benchmark/run.sh", plan, one.results], env=one.environment, text=True,
                                 capture_output=True, check=False)
        assert process.returncode == 1 and "exists: " in process.stderr


if __name__ == "__main__":
    for name in sys.argv[1:] or [name for name in list(globals()) if name.startswith("test_")]:
        globals()[name]()
        print(f"{name}: passed")
