#!/usr/bin/env python3
"""Applies overlays and charts to a single-node Kubernetes with API server, kubelet and containerd, started for the
test.

    cluster_test.py [test_NAME]       with the image in DTRAIN_K8S_IMAGE and the programs of cluster/build.sh

Beyond run_test.py it tests validation by the API server, kubectl and Helm, the life cycle of objects, and a container
runtime. Its network does not enforce NetworkPolicies. Changes of overlays are arguments of k8s/set.sh.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from cluster import start
from cluster.controller import condition_of
from harness.spaces import skip, wait_until
from tools import K8S, SCHEMAS, helms

CRD = SCHEMAS / "kubeflow.org_mpijobs.v0.8.2.yaml"
VERSION = re.search(r"project\(\w+\s+VERSION ([0-9.]+)", (K8S.parent / "CMakeLists.txt").read_text())[1]
SMALL = ("CPU=500m", "MEMORY=512Mi", "SHM=256Mi")
TRAINING = (*SMALL, "--batch_size=2", "--num_intra_threads=1", "--display_every=1", "--num_warmup_batches=0",
            "--save_model_secs=0", "--init_learning_rate=0.001")
CLAIM = """
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {name}}}
spec:
  capacity: {{storage: 1Gi}}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  claimRef: {{name: {name}, namespace: default}}
  hostPath: {{path: {folder}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, namespace: default}}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: {name}
  resources: {{requests: {{storage: 1Gi}}}}
"""
OPERATOR = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: mpi-operator, namespace: default}
spec:
  selector: {matchLabels: {app: mpi-operator}}
  template:
    metadata: {labels: {app: mpi-operator}}
    spec: {containers: [{name: operator, image: "localhost/pause:1", imagePullPolicy: Never}]}
"""


class Tested(start.Cluster):
    """A cluster with a modifiable copy of k8s/."""

    def __init__(self):
        image = os.environ.get("DTRAIN_K8S_IMAGE", "")
        if not image or not pathlib.Path(image, "rootfs").is_dir():
            skip(f"there is no unpacked image in DTRAIN_K8S_IMAGE='{image}'")
        if not CRD.exists():
            skip(f"there is no {CRD}")
        super().__init__(pathlib.Path(image), f"dtrain-cpu:{VERSION}")
        self.k8s = self.folder / "k8s"
        shutil.copytree(K8S, self.k8s)

    def install_operator(self):
        self.kubectl("apply", "--server-side", "-f", CRD)
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mpijobs.kubeflow.org"
        self.wait(lambda: condition_of(self.api.get(path), "Established"), "the kind MPIJob")

    def script(self, name, *arguments):
        """Runs a script of k8s/; returns exit code and stderr."""
        done = subprocess.run([self.k8s / name, *arguments], env=self.environment, capture_output=True, text=True)
        return done.returncode, done.stderr

    def set(self, *arguments):
        code, errors = self.script("set.sh", *arguments)
        self.expect(code == 0, f"set.sh: {errors}")

    def apply(self, name):
        self.kubectl("apply", "-k", self.k8s / "overlays" / name)

    def make_claim(self, name):
        folder = self.share / name
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        self.kubectl("apply", "-f", "-", input=CLAIM.format(name=name, folder=folder))
        return folder

    def pods(self):
        found = self.kubectl("get", "pods", "-o", "jsonpath={range .items[*]}{.metadata.name} {end}")
        return found.split()

    def log(self, job):
        """Output of a job's launcher so far; empty if there is none."""
        try:
            return self.kubectl("logs", f"job/{job}-launcher")
        except RuntimeError:
            return ""

    def expect(self, condition, what):
        if not condition:
            raise AssertionError(f"{what}\n{self.state()}")

    def wait(self, condition, what, timeout=90):
        try:
            return wait_until(condition, what, timeout)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.state()}") from None

    def wait_for(self, job, condition, timeout=90):
        def reached():
            found = self.api.get(f"/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/{job}")
            return found and condition_of(found, condition)

        self.wait(reached, f"{condition} of {job}", timeout)

    def state(self):
        pods = self.kubectl("get", "pods,jobs,mpijobs", "-o", "wide")
        events = self.kubectl("get", "events", "--sort-by=.lastTimestamp")
        logs = "\n".join(f"--- {pod}\n" + subprocess.run(["kubectl", "logs", "--tail=30", pod], env=self.environment,
                                                        capture_output=True, text=True).stdout for pod in self.pods())
        return f"{pods}\n{events}\n{logs}\n{self.controller.failures[-3:]}\n{self.logs(5)}"


def test_jobs():
    """Apply, complete, resubmit with other arguments, suspend, resume, delete; and a job without the operator."""
    with Tested() as cluster:
        cluster.install_operator()
        cluster.set("smoke", *SMALL)
        run_and_run_again(cluster)
        suspend_and_resume(cluster, cluster.make_claim("workdisk"))
        run_without_operator(cluster)


def run_and_run_again(cluster):
    cluster.apply("smoke")
    cluster.wait_for("smoke", "Succeeded")
    cluster.expect("16777216" in cluster.log("smoke"), "no all-reduce results")
    cluster.wait(lambda: not [pod for pod in cluster.pods() if "worker" in pod], "the end of the workers")
    code, errors = cluster.script("run.sh", "--no-preflight", "smoke", "--max_bytes=64K")
    cluster.expect(code == 0, f"run.sh: {errors}")
    cluster.wait_for("smoke", "Succeeded")
    text = cluster.log("smoke")
    cluster.expect("16777216" not in text and "65536" in text, "the previous arguments were used")
    cluster.kubectl("delete", "-k", cluster.k8s / "overlays/smoke", "--cascade=foreground")
    left = ("get", "pods,jobs,services,configmaps,secrets,networkpolicies", "-o", "name")
    cluster.wait(lambda: "smoke" not in cluster.kubectl(*left), "the end of all that belongs to the job")


def suspend_and_resume(cluster, folder):
    def suspend(value):
        cluster.kubectl("patch", "mpijob", "suspended", "--type=merge",
                        "-p", f'{{"spec":{{"runPolicy":{{"suspend":{value}}}}}}}')

    cluster.set("suspended", *TRAINING, "--num_batches=400")
    cluster.apply("suspended")
    cluster.wait_for("suspended", "Suspended")
    cluster.expect(not cluster.pods(), "a suspended job has pods")
    suspend("false")
    cluster.wait(lambda: re.search(r"\t.*\n.*\b\d\d\timages/sec", cluster.log("suspended")), "steps")
    suspend("true")
    cluster.wait(lambda: not cluster.pods(), "the end of the pods", 130)
    saved = sorted(path.name for path in folder.glob("suspended/checkpoints/step-*"))
    cluster.expect(saved, "there is no checkpoint")
    suspend("false")
    cluster.wait_for("suspended", "Succeeded", 150)
    cluster.expect("Restored step" in cluster.log("suspended"), "the training did not resume")
    cluster.kubectl("delete", "mpijob", "suspended")


def run_without_operator(cluster):
    cluster.set("no-operator", *SMALL, "--batch_size=2", "--num_batches=3", "--num_warmup_batches=0",
                "--num_intra_threads=1")
    code, errors = cluster.script("preflight.sh", "no-operator")
    cluster.expect(code == 18, f"preflight.sh: {code} {errors}")
    code, errors = cluster.script("ssh-secret.sh", "no-operator")
    cluster.expect(code == 0, f"ssh-secret.sh: {errors}")
    cluster.apply("no-operator")
    cluster.kubectl("wait", "--for=condition=complete", "job/no-operator-launcher", "--timeout=90s")
    cluster.expect("total images/sec: " in cluster.log("no-operator"), "there is no result")
    cluster.kubectl("delete", "-k", cluster.k8s / "overlays/no-operator")


def test_preflight():
    """Each missing prerequisite is detected, and a complete cluster passes."""
    with Tested() as cluster:
        def finds(code, *arguments):
            result, errors = cluster.script("preflight.sh", *arguments)
            cluster.expect(result == code, f"preflight.sh {arguments}: {result}, expected {code}\n{errors}")

        finds(10, "smoke")
        cluster.install_operator()
        finds(11, "smoke")
        cluster.kubectl("apply", "-f", "-", input=OPERATOR)
        cluster.kubectl("wait", "--for=condition=available", "deployment/mpi-operator", "--timeout=60s")
        finds(0, "smoke")
        finds(12, "gpu-1node")
        cluster.set("smoke", "NAMESPACE=nowhere")
        finds(13, "smoke")
        cluster.set("smoke", "NAMESPACE=default", *SMALL)
        finds(14, "suspended")
        cluster.make_claim("workdisk")
        cluster.wait(lambda: "Bound" in cluster.kubectl("get", "pvc", "workdisk"), "a claim that is Bound")
        finds(0, "suspended")
        cluster.kubectl("create", "quota", "small", "--hard=requests.cpu=1")
        cluster.wait(lambda: "0/1" in cluster.kubectl("get", "quota", "small"), "the quota's state")
        finds(16, "suspended")


def test_helm():
    """The generic chart with each Helm: install, complete, uninstall."""
    with Tested() as cluster:
        cluster.install_operator()
        for number, helm in enumerate(helms()):
            install_chart(cluster, helm, f"chart{number}")


def install_chart(cluster, helm, name):
    def helm_with(*arguments):
        return start.run(helm, *arguments, env=cluster.environment)

    chart, job = cluster.k8s / "charts/mpijob", name
    values = {"image": f"dtrain-cpu:{VERSION}", "global.namespace": "default", "resources.gpu_nodes": 2, "resources.gpus_per_node": 0,
              "job.cpu": "200m", "job.memory": "512Mi", "job.shm": "256Mi"}
    settings = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
    helm_with("install", name, chart, *settings)
    cluster.wait_for(job, "Succeeded")
    cluster.expect("16777216" in cluster.log(job), "no all-reduce results")
    helm_with("uninstall", name)
    cluster.wait(lambda: job not in cluster.kubectl("get", "mpijobs,jobs,pods", "-o", "name"), "the end of the job")


def main(functions):
    if len(sys.argv) > 1:
        start.isolate()
        functions[sys.argv[1]]()
        return
    codes = {name: subprocess.run([sys.executable, "-B", sys.argv[0], name]).returncode
             for name in functions if name.startswith("test_")}
    print("\n".join(f"{name}: {code or 'passed'}" for name, code in codes.items()))
    sys.exit(max(codes.values()))


if __name__ == "__main__":
    main(globals())
