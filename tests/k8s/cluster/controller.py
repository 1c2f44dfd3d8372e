"""An MPIJob controller for tests that acts like MPI Operator 0.8.2, with the objects of expand.py.

Kubernetes 1.20 has no suspended Jobs, so the launcher of a suspended MPIJob is deleted, and created again on resume.
"""

import threading
import time

import expand

GROUP = "/apis/kubeflow.org/v2beta1"
PATHS = {"Service": "/api/v1/namespaces/{}/services", "ConfigMap": "/api/v1/namespaces/{}/configmaps",
         "Secret": "/api/v1/namespaces/{}/secrets", "Pod": "/api/v1/namespaces/{}/pods",
         "Job": "/apis/batch/v1/namespaces/{}/jobs"}


def condition_of(found, kind):
    """True if an object has the condition with status True."""
    conditions = found.get("status", {}).get("conditions") or []
    return any(entry["type"] == kind and entry["status"] == "True" for entry in conditions)


class Controller:
    def __init__(self, api):
        self.api = api
        self.keys = {}  # by the job's uid
        self.failures = []
        self.open = True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while self.open:
            try:
                for manifest in (self.api.get(f"{GROUP}/mpijobs") or {}).get("items", []):
                    self.reconcile(manifest)
            except (OSError, RuntimeError) as error:
                self.failures.append(str(error))
            time.sleep(0.3)

    def close(self):
        self.open = False
        self.thread.join()

    def path(self, job, kind, name=""):
        return PATHS[kind].format(job.namespace) + (f"/{name}" if name else "")

    def create(self, job, owner, found):
        """Creates an object owned by a job."""
        metadata = {**found["metadata"], "ownerReferences": [owner]}
        self.api.create(self.path(job, found["kind"]), {**found, "metadata": metadata})

    def reconcile(self, manifest):
        job, metadata = expand.Job(manifest), manifest["metadata"]
        if metadata.get("deletionTimestamp"):
            return
        owner = {"apiVersion": manifest["apiVersion"], "kind": "MPIJob", "name": job.name, "uid": metadata["uid"],
                 "controller": True, "blockOwnerDeletion": True}
        selector = f"?labelSelector={expand.LABEL}job-name={job.name},{expand.LABEL}job-role=worker"
        workers = {pod["metadata"]["name"]: pod for pod in self.api.get(self.path(job, "Pod") + selector)["items"]}
        if any(condition_of(manifest, kind) for kind in ("Succeeded", "Failed")):
            if job.policy.get("cleanPodPolicy", "None") in ("Running", "All"):
                self.delete_workers(job, workers)
            return
        keys = self.keys.setdefault(metadata["uid"], None) or expand.key_pair()
        self.keys[metadata["uid"]] = keys
        launcher = self.api.get(self.path(job, "Job", f"{job.name}-launcher"))
        self.make_objects(job, owner, keys, workers)
        if job.suspended:
            self.suspend(job, launcher, workers)
        else:
            self.go_on(job, owner, launcher, workers)
        self.report(job, manifest, launcher)

    def make_objects(self, job, owner, keys, workers):
        running = [name for name, pod in workers.items() if pod["status"].get("phase") == "Running"
                   and not pod["metadata"].get("deletionTimestamp")]
        for found in (job.service(), job.secret(keys)):
            if not self.api.get(self.path(job, found["kind"], found["metadata"]["name"])):
                self.create(job, owner, found)
        wanted = job.config_map(running)
        there = self.api.get(self.path(job, "ConfigMap", wanted["metadata"]["name"]))
        if not there:
            self.create(job, owner, wanted)
        elif there["data"] != wanted["data"]:
            self.api.merge(self.path(job, "ConfigMap", wanted["metadata"]["name"]), {"data": wanted["data"]})

    def delete_workers(self, job, workers):
        for name, pod in workers.items():
            if not pod["metadata"].get("deletionTimestamp"):
                self.api.delete(self.path(job, "Pod", name))

    def suspend(self, job, launcher, workers):
        self.delete_workers(job, workers)
        if launcher and not launcher["metadata"].get("deletionTimestamp"):
            self.api.delete(self.path(job, "Job", f"{job.name}-launcher"))

    def go_on(self, job, owner, launcher, workers):
        for index in range(job.workers):
            if job.worker_name(index) not in workers:
                self.create(job, owner, job.worker(index))
        ready = sum(condition_of(pod, "Ready") for pod in workers.values())
        if not launcher and (not job.waits_for_workers or ready == job.workers):
            self.create(job, owner, job.launcher())

    def report(self, job, manifest, launcher):
        """Updates the conditions that users and scripts wait for."""
        found = {"Created": True, "Suspended": job.suspended,
                 "Running": bool(launcher and launcher["status"].get("active")) and not job.suspended,
                 "Succeeded": bool(launcher and condition_of(launcher, "Complete")),
                 "Failed": bool(launcher and condition_of(launcher, "Failed"))}
        if all(condition_of(manifest, kind) == value for kind, value in found.items()):
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        conditions = [{"type": kind, "status": str(value), "reason": f"MPIJob{kind}", "message": kind,
                       "lastUpdateTime": now, "lastTransitionTime": now} for kind, value in found.items()]
        self.api.merge(f"{GROUP}/namespaces/{job.namespace}/mpijobs/{job.name}/status",
                       {"status": {"conditions": conditions}})
