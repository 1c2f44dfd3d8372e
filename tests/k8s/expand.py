#!/usr/bin/env python3
"""Expands an MPIJob like the controller of MPI Operator 0.8.2: the launcher's Job, the workers' pods, the ConfigMap
with the hostfile and discover_hosts.sh, the Secret with the job's keys, and the headless Service. Other objects of the
input are not changed.

    expand.py [--cluster-domain DOMAIN] [FILE]      prints all objects as YAML

Names, labels, variables and volumes are as in mpi_job_controller.go. Defaults of the API server (restart policies,
replicas) are filled in; validation is not repeated here.
"""

import argparse
import base64
import copy
import pathlib
import subprocess
import sys
import tempfile

import yaml

LABEL = "training.kubeflow.org/"
OPERATOR = "mpi-operator"
ROOT_SSH_PATH = "/root/.ssh"
CONFIG_PATH = "/etc/mpi"


def key_pair():
    """A key pair of a job, as in the Secret: ECDSA on P-521, the private key in PEM."""
    with tempfile.TemporaryDirectory() as folder:
        key = pathlib.Path(folder) / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-m", "PEM", "-N", "", "-C", "", "-f", key],
                       check=True)
        return key.read_text(), key.with_suffix(".pub").read_text()


def environment(**variables):
    return [{"name": name, "value": value} for name, value in variables.items()]


class Job:
    """An MPIJob with defaults, and the objects that the controller creates for it."""

    def __init__(self, manifest, cluster_domain=""):
        self.spec = manifest["spec"]
        self.name = manifest["metadata"]["name"]
        self.namespace = manifest["metadata"].get("namespace", "default")
        self.domain = f".{cluster_domain}" if cluster_domain else ""
        self.replicas = self.spec["mpiReplicaSpecs"]
        self.workers = self.replicas.get("Worker", {}).get("replicas", 0)
        self.slots = self.spec.get("slotsPerWorker", 1)
        self.implementation = self.spec.get("mpiImplementation", "OpenMPI")
        self.launcher_works = self.spec.get("runLauncherAsWorker", False)
        self.policy = self.spec.get("runPolicy", {})
        self.suspended = self.policy.get("suspend", False)
        self.waits_for_workers = self.spec.get("launcherCreationPolicy", "AtStartup") == "WaitForWorkersReady"

    def metadata(self, name, labels=None):
        return {"name": name, "namespace": self.namespace, "labels": labels or {"app": self.name}}

    def labels(self, role):
        return {LABEL + "operator-name": OPERATOR, LABEL + "job-name": self.name, LABEL + "job-role": role}

    def worker_name(self, index):
        return f"{self.name}-worker-{index}"

    def host(self, pod):
        return f"{pod}.{self.name}.{self.namespace}.svc{self.domain}"

    def hostfile(self):
        pods = [f"{self.name}-launcher"] * self.launcher_works + [self.worker_name(i) for i in range(self.workers)]
        line = "{} slots={}\n" if self.implementation == "OpenMPI" else "{}:{}\n"
        return "".join(line.format(self.host(pod), self.slots) for pod in pods)

    def discover_hosts(self, running):
        """Script that lists the running workers. `running`: names of their pods."""
        pods = [f"{self.name}-launcher"] * self.launcher_works + sorted(running)
        return "#!/bin/sh\n" + "".join(f"echo {self.host(pod)}\n" for pod in pods)

    def service(self):
        selector = {LABEL + "operator-name": OPERATOR, LABEL + "job-name": self.name}
        return {"apiVersion": "v1", "kind": "Service", "metadata": self.metadata(self.name),
                "spec": {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": self.launcher_works}}

    def config_map(self, running=()):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": self.metadata(f"{self.name}-config"),
                "data": {"hostfile": self.hostfile(), "discover_hosts.sh": self.discover_hosts(running)}}

    def secret(self, keys):
        private, public = (base64.b64encode(key.encode()).decode() for key in keys)
        return {"apiVersion": "v1", "kind": "Secret", "metadata": self.metadata(f"{self.name}-ssh"),
                "type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": private, "ssh-publickey": public}}

    def mount_keys(self, pod):
        path = self.spec.get("sshAuthMountPath", ROOT_SSH_PATH)
        items = [{"key": "ssh-privatekey", "path": "id_rsa"}, {"key": "ssh-publickey", "path": "id_rsa.pub"},
                 {"key": "ssh-publickey", "path": "authorized_keys"}]
        mode = {"defaultMode": 0o600} if path == ROOT_SSH_PATH else {}
        secret = {"secretName": f"{self.name}-ssh", **mode, "items": items}
        self.mount(pod, {"name": "ssh-auth", "secret": secret}, path)

    @staticmethod
    def mount(pod, volume, path):
        pod.setdefault("volumes", []).append(volume)
        pod["containers"][0].setdefault("volumeMounts", []).append({"name": volume["name"], "mountPath": path})

    def template(self, role, name, restart_policy):
        """Pod template of a role, with the common parts of launcher and workers."""
        replica = self.replicas["Launcher" if role == "launcher" else "Worker"]
        template = copy.deepcopy(replica["template"])
        template["metadata"] = {**template.get("metadata", {})}
        template["metadata"]["labels"] = {**template["metadata"].get("labels", {}), **self.labels(role)}
        pod = template["spec"]
        pod.update(hostname=name, subdomain=self.name, restartPolicy=replica.get("restartPolicy", restart_policy))
        if pod.get("hostNetwork"):
            pod["dnsPolicy"] = "ClusterFirstWithHostNet"
        pod["containers"][0].setdefault("env", []).extend(environment(K_MPI_JOB_ROLE=role))
        return template

    def worker(self, index):
        name = self.worker_name(index)
        template = self.template("worker", name, "Never")
        template["metadata"]["labels"][LABEL + "replica-index"] = str(index + self.launcher_works)
        pod = template["spec"]
        searches = pod.setdefault("dnsConfig", {}).setdefault("searches", [])
        searches.append(f"{self.name}.{self.namespace}.svc.cluster.local")
        container = pod["containers"][0]
        if not container.get("command") and not container.get("args"):
            container.update(command=["/usr/sbin/sshd"], args=["-De"])
        self.mount_keys(pod)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": name,
                "namespace": self.namespace}, "spec": pod}

    def launcher_environment(self):
        slots, hostfile, ssh = str(self.slots), f"{CONFIG_PATH}/hostfile", "-o ConnectionAttempts=10"
        implementations = {
            "OpenMPI": environment(OMPI_MCA_orte_keep_fqdn_hostnames="true", OMPI_MCA_orte_default_hostfile=hostfile,
                                   OMPI_MCA_plm_rsh_args=ssh, OMPI_MCA_orte_set_default_slots=slots),
            "Intel": environment(I_MPI_HYDRA_HOST_FILE=hostfile, I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=ssh,
                                 I_MPI_PERHOST=slots),
            "MPICH": environment(HYDRA_HOST_FILE=hostfile, HYDRA_LAUNCH_EXTRA_ARGS=ssh),
        }
        no_gpus = environment(NVIDIA_VISIBLE_DEVICES="", NVIDIA_DRIVER_CAPABILITIES="")
        return implementations[self.implementation] + ([] if self.launcher_works else no_gpus)

    def launcher(self):
        name = f"{self.name}-launcher"
        template = self.template("launcher", name, "OnFailure")
        if self.launcher_works:
            template["metadata"]["labels"][LABEL + "replica-index"] = "0"
        template["spec"]["containers"][0]["env"].extend(self.launcher_environment())
        self.mount_keys(template["spec"])
        items = [{"key": "hostfile", "path": "hostfile", "mode": 0o444},
                 {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555}]
        volume = {"name": "mpi-job-config", "configMap": {"name": f"{self.name}-config", "items": items}}
        self.mount(template["spec"], volume, CONFIG_PATH)
        kept = {key: self.policy[key] for key in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
                if key in self.policy}
        suspend = {"suspend": True} if self.suspended else {}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": self.metadata(name),
                "spec": {**kept, **suspend, "podReplacementPolicy": "Failed", "template": template}}

    def objects(self, keys):
        """All objects after the workers have started; a suspended job has no workers."""
        running = [] if self.suspended else [self.worker_name(i) for i in range(self.workers)]
        workers = [] if self.suspended else [self.worker(i) for i in range(self.workers)]
        return [self.service(), self.config_map(running), self.secret(keys), *workers, self.launcher()]


def expand(documents, keys=None, cluster_domain=""):
    """The objects of a manifest, with each MPIJob replaced by the objects of its expansion."""
    made = []
    for document in filter(None, documents):
        is_job = document["kind"] == "MPIJob"
        made += Job(document, cluster_domain).objects(keys or key_pair()) if is_job else [document]
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cluster-domain", default="", help="as the operator's flag: suffix of host names")
    parser.add_argument("file", nargs="?", type=argparse.FileType("r"), default=sys.stdin)
    arguments = parser.parse_args()
    made = expand(yaml.safe_load_all(arguments.file), cluster_domain=arguments.cluster_domain)
    yaml.safe_dump_all(made, sys.stdout, sort_keys=False, width=120)


if __name__ == "__main__":
    main()
