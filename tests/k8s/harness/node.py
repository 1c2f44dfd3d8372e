"""A single-node cluster without an API server: emulates controllers and the kubelet for the objects of a manifest.

MPIJobs are expanded by expand.py and have the life cycle of MPI Operator: replacement of workers, a launcher that waits
for them, suspension, clean-up. Supported core kinds: Jobs with one pod, and StatefulSets. Nothing runs in the
background: callers call step(), as wait() does.
"""

import base64
import contextlib
import os
import pathlib
import subprocess
import sys
import time

import expand
from harness import policy
from harness.dns import Server
from harness.pod import Pod
from harness.spaces import DNS_SERVER, ControlGroups


class Node:
    def __init__(self, image, shares=None, enforce_policies=True, held=(), unknown=()):
        """`held`: names of pods that are not started for now, like pods of a missing node. `unknown`: pods without DNS
        records yet. `shares`: folders of this machine by claim name, NFS SERVER/PATH or host path."""
        self.image, self.shares, self.enforce_policies = image, shares or {}, enforce_policies
        self.objects = {}  # by kind and name; a namespace per test
        self.pods = {}
        self.past = []  # pods that have been deleted
        self.controllers = []
        self.held, self.unknown = set(held), set(unknown)
        self.control_groups = ControlGroups()
        self.dns = Server(DNS_SERVER, self.look_up)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pod in self.pods.values():
            pod.close()
        self.dns.close()
        self.control_groups.close()

    def text_of(self, kind, name, key):
        found = self.objects[kind, name]
        if key in found.get("stringData", {}):
            return found["stringData"][key]
        value = found["data"][key]
        return base64.b64decode(value).decode() if kind == "Secret" else value

    def apply(self, documents):
        """Like `kubectl apply`: adds objects and starts the controllers of workloads."""
        for document in filter(None, documents):
            self.objects[document["kind"], document["metadata"]["name"]] = document
        for document in filter(None, documents):
            if make := CONTROLLERS.get(document["kind"]):
                self.controllers.append(make(self, document))

    def look_up(self, name):
        """Addresses of a DNS name: a pod of a headless Service, or all of its pods."""
        endpoints = {}
        for pod in list(self.pods.values()):
            service = self.objects.get(("Service", pod.spec.get("subdomain")), {}).get("spec", {})
            published = service.get("publishNotReadyAddresses", False)
            if service and pod.name not in self.unknown and not pod.closed and (pod.ready or published):
                service_name = pod.full_name.partition(".")[2]
                endpoints.setdefault(pod.full_name, []).append(pod.address)
                endpoints.setdefault(service_name, []).append(pod.address)
        return endpoints.get(name)

    def start(self, manifest):
        """Starts a pod unless it is held."""
        name = manifest["metadata"]["name"]
        if name not in self.held:
            self.pods[name] = Pod(self, manifest)

    def may_restart(self, pod):
        """True if the kubelet may restart a container: bounded by a Job's backoffLimit."""
        return pod.owner is None or pod.restarts < pod.owner.backoff_limit

    def job(self):
        """The controller of the MPIJob, or of the Job whose name contains launcher or training."""
        mpi_jobs = [found for found in self.controllers if isinstance(found, MpiJob)]
        [job] = mpi_jobs or [found for found in self.controllers if isinstance(found, PlainJob)]
        return job

    def living(self, name):
        """Process ids, in this namespace, of the pods' processes with that name, in order."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (process / "comm").read_text().strip() == name[:15]:
                    found.append(int(process.name))
        return sorted(found)

    def signal_rank(self, rank, number):
        """Sends a signal to a rank of mpirun, in any pod."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                variables = (process / "environ").read_bytes().split(b"\0")
                if f"OMPI_COMM_WORLD_RANK={rank}".encode() in variables:
                    os.kill(int(process.name), number)

    @staticmethod
    def connects(pod, address, port):
        """True if a pod connects to a port within two seconds."""
        probe = f"import socket; socket.create_connection(('{address}', {port}), 2)"
        return subprocess.run(["nsenter", f"--net=/run/netns/{pod.space}", sys.executable, "-I", "-c", probe],
                              capture_output=True).returncode == 0

    def step(self):
        for pod in list(self.pods.values()):
            pod.step()
            if pod.terminating and pod.process.poll() is not None:
                pod.close()
                self.past.append(self.pods.pop(pod.name))
        for controller in self.controllers:
            controller.step()
        if self.enforce_policies:
            policy.enforce(self)

    def wait(self, condition, what, timeout=100):
        """Calls step() until `condition` returns a true value, and returns it; a TimeoutError has the pods' logs."""
        deadline = time.monotonic() + timeout
        while True:
            self.step()
            if value := condition():
                return value
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {timeout} s\n{self.logs()}")
            time.sleep(0.05)

    def logs(self):
        pods = [*self.past, *self.pods.values()]
        return "\n".join(f"--- {pod.name} {pod.phase} {pod.codes}\n{pod.log()[-4000:]}" for pod in pods)


class PlainJob:
    """A batch/v1 Job with one pod at a time."""

    def __init__(self, node, manifest):
        self.node, self.spec, self.name = node, manifest["spec"], manifest["metadata"]["name"]
        self.namespace = manifest["metadata"].get("namespace", "default")
        self.backoff_limit = self.spec.get("backoffLimit", 6)
        self.suspended = self.spec.get("suspend", False)
        self.failures = 0  # failed pods, and restarts within a pod
        self.result = None  # "Complete" or "Failed"
        self.made = 0

    @property
    def pod(self):
        return next((pod for pod in self.node.pods.values() if pod.owner is self), None)

    def manifest(self):
        template = self.spec["template"]
        self.made += 1
        metadata = {**template.get("metadata", {}), "namespace": self.namespace, "name": f"{self.name}-{self.made:05}"}
        metadata["labels"] = {**metadata.get("labels", {}), "job-name": self.name}
        return {"metadata": metadata, "spec": template["spec"], "owner": self}

    def step(self):
        pod = self.pod
        if self.result:
            return
        if self.suspended:
            if pod:
                pod.delete()
            return
        if pod is None:
            self.node.start(self.manifest())
        elif pod.terminating or pod.process.poll() is None or len(pod.codes) == pod.restarts:
            return
        elif pod.codes[-1] == 0:
            self.result = "Complete"
        elif pod.spec["restartPolicy"] == "OnFailure" or self.failures >= self.backoff_limit:
            self.result = "Failed"
        else:
            self.failures += 1
            pod.delete(grace=0)


class StatefulSet:
    """Pods with ordinal numbers; a missing pod is replaced. Starts all at once (podManagementPolicy Parallel)."""

    def __init__(self, node, manifest):
        self.node, self.spec, self.name = node, manifest["spec"], manifest["metadata"]["name"]
        self.namespace = manifest["metadata"].get("namespace", "default")

    def step(self):
        template = self.spec["template"]
        for index in range(self.spec.get("replicas", 1)):
            name = f"{self.name}-{index}"
            if name not in self.node.pods:
                metadata = {**template.get("metadata", {}), "name": name, "namespace": self.namespace}
                spec = {**template["spec"], "hostname": name, "subdomain": self.spec["serviceName"]}
                self.node.start({"metadata": metadata, "spec": spec})


class MpiJob:
    """Life cycle of an MPIJob under mpi-operator 0.8.2."""

    def __init__(self, node, manifest):
        self.node, self.manifest = node, manifest
        self.keys = expand.key_pair()
        self.launcher = None
        self.running = None
        self.read()
        objects = (self.job.service(), self.job.config_map(), self.job.secret(self.keys))
        for found in objects:
            node.objects[found["kind"], found["metadata"]["name"]] = found

    def read(self):
        self.job = expand.Job(self.manifest)

    def suspend(self, value=True):
        """Like a patch of runPolicy.suspend."""
        self.manifest["spec"].setdefault("runPolicy", {})["suspend"] = value
        self.read()

    @property
    def result(self):
        return self.launcher and self.launcher.result

    @property
    def workers(self):
        """Existing worker pods, in order."""
        names = (self.job.worker_name(index) for index in range(self.job.workers))
        return [self.node.pods[name] for name in names if name in self.node.pods]

    @property
    def pod(self):
        """The launcher's pod, or None."""
        return self.launcher and self.launcher.pod

    def step(self):
        if self.result:
            if self.job.policy.get("cleanPodPolicy", "None") in ("Running", "All"):
                self.delete_workers()
            return
        if self.job.suspended:
            self.delete_workers()
        else:
            for index in range(self.job.workers):
                if self.job.worker_name(index) not in self.node.pods:
                    self.node.start(self.job.worker(index))
        self.update_hosts()
        ready = sum(pod.ready for pod in self.workers)
        # Suspended: the controller does not wait for workers and creates the launcher's Job at once.
        at_once = self.job.suspended or not self.job.waits_for_workers
        if self.launcher is None and (at_once or ready == self.job.workers):
            self.launcher = PlainJob(self.node, self.job.launcher())
        if self.launcher:
            self.launcher.suspended = self.job.suspended
            self.launcher.step()

    def delete_workers(self):
        for pod in self.workers:
            pod.delete()

    def update_hosts(self):
        """discover_hosts.sh lists the running workers; the kubelet updates it in the launcher's volume."""
        running = [pod.name for pod in self.workers if pod.phase == "Running" and not pod.terminating]
        if running != self.running:
            self.running = running
            made = self.job.config_map(running)
            self.node.objects["ConfigMap", made["metadata"]["name"]] = made
            if self.pod:
                self.pod.volumes.update()


CONTROLLERS = {"MPIJob": MpiJob, "Job": PlainJob, "StatefulSet": StatefulSet}
