"""A job of a manifest and its pods, the input of lint rules."""

import copy
import re

# FRONT_ENDS take the flags of the programs that they replace, and dtrain's flags after `--`. TRAINERS train.
FRONT_ENDS = ("dtrain-train-imagenet", "dtrain-imagenet-main")
TRAINERS = ("dtrain-cnn-benchmarks", "dtrain-mask-rcnn", "dtrain-launch-benchmark", *FRONT_ENDS)
SSH_PATH = "/etc/dtrain/ssh"
SSH_PORT = 2222
WORKER_TIMEOUT = "1800"
LABELS = ("name", "instance", "component", "part-of", "managed-by")  # of objects, after app.kubernetes.io/


def adder(rules):
    """Decorator that registers a function that yields messages as a rule; hyphens replace underscores in its name."""
    def rule(function):
        rules[function.__name__.replace("_", "-")] = function
        return function
    return rule


def mapping(value):
    return value if isinstance(value, dict) else {}


def items(value):
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def missing_labels(metadata, names=LABELS):
    """The labels app.kubernetes.io/NAME that metadata lacks, as text."""
    given = mapping(mapping(metadata).get("labels"))
    return " ".join(name for name in names if not given.get("app.kubernetes.io/" + name))


def number(value):
    return isinstance(value, int) and not isinstance(value, bool)


# Jobs of Training Operator, for programs of other frameworks: path of the replicas, replica types, and the container
# name that the operator requires.
PEERS = {"PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker"), "pytorch"),
         "TFJob": ("tfReplicaSpecs", ("Chief", "Master", "PS", "Worker", "Evaluator"), "tensorflow")}


RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")  # of Kubeflow Trainer


class Pod:
    """A pod template of an object: `role` is launcher, worker, server or training."""

    def __init__(self, owner, role, template, replicas=1):
        self.owner = owner
        self.role = role
        self.replicas = replicas
        self.metadata = mapping(mapping(template).get("metadata"))
        self.spec = mapping(mapping(template).get("spec"))

    @property
    def containers(self):
        return items(self.spec.get("initContainers")) + items(self.spec.get("containers"))

    @property
    def main(self):
        return (items(self.spec.get("containers")) or [{}])[0]

    @property
    def environment(self):
        return {one.get("name"): one.get("value", "") for one in items(self.main.get("env"))}

    @property
    def args(self):
        return [str(argument) for argument in self.main.get("args") or []]

    def expanded(self, text):
        """A text with $(NAME) replaced by the container's variables, as Kubernetes does."""
        return re.sub(r"\$\(([A-Za-z_]\w*)\)", lambda found: self.environment.get(found[1], found[0]), text)

    def volume(self, name):
        return next((volume for volume in items(self.spec.get("volumes")) if volume.get("name") == name), {})

    @property
    def mounts(self):
        return items(self.main.get("volumeMounts"))

    def mount_of(self, path):
        """The innermost mount that contains a path."""
        above = [mount for mount in self.mounts if (path + "/").startswith(f"{mount.get('mountPath')}/")]
        return max(above, key=lambda mount: len(mount["mountPath"]), default=None)

    @property
    def limits(self):
        return mapping(mapping(self.main.get("resources")).get("limits"))

    @property
    def gpus(self):
        return self.limits.get("nvidia.com/gpu", 0)

    @property
    def on_spot(self):
        """True if the pod requires spot instances."""
        affinity = mapping(mapping(self.spec.get("affinity")).get("nodeAffinity"))
        terms = items(mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")).get("nodeSelectorTerms"))
        return any(one.get("operator") == "In" and one.get("values") in (["spot"], ["SPOT"])
                   for term in terms for one in items(term.get("matchExpressions")))

    @property
    def program(self):
        """The dtrain program that the pod runs, and its arguments."""
        for at, argument in enumerate(self.args):
            if re.fullmatch(r"dtrain-[a-z-]+", argument) and argument != "dtrain-mpirun":
                return argument, self.args[at + 1:]
        return None, []

    @property
    def is_launcher(self):
        return self.role == "launcher"

    def patch(self, template):
        """Adds labels, volumes and mounts, as a runtimePatch of a TrainJob does."""
        self.metadata.setdefault("labels", {}).update(mapping(mapping(template.get("metadata")).get("labels")))
        spec = mapping(template.get("spec"))
        self.spec["volumes"] = items(self.spec.get("volumes")) + items(spec.get("volumes"))
        for container in items(spec.get("containers")):
            self.main["volumeMounts"] = self.mounts + items(container.get("volumeMounts"))


class Job:
    """An object that runs pods."""

    def __init__(self, document, documents):
        self.document = document
        self.documents = documents
        self.kind = document.get("kind")
        self.name = str(mapping(document.get("metadata")).get("name"))
        self.spec = mapping(document.get("spec"))
        self.pods = list(self.find_pods())

    def find_pods(self):
        if self.kind == "MPIJob":
            for role, replica in self.replicas.items():
                yield Pod(self, role.lower(), replica.get("template"), replica.get("replicas"))
        elif self.kind in PEERS:
            for role, replica in self.replicas.items():
                yield Pod(self, {"PS": "server"}.get(role, "training"), replica.get("template"), replica.get("replicas"))
        elif self.kind in RUNTIMES:
            template = mapping(mapping(self.spec.get("template")).get("spec"))
            for replica in items(template.get("replicatedJobs")):
                role = {"node": "worker"}.get(replica.get("name"), replica.get("name"))
                inner = mapping(mapping(mapping(replica.get("template")).get("spec")).get("template"))
                yield self.with_trainer(Pod(self, role, inner, self.workers if role == "worker" else 1), replica.get("name"))
        elif self.kind == "StatefulSet":
            yield Pod(self, "worker", self.spec.get("template"), self.spec.get("replicas"))
        elif self.kind in ("Job", "Deployment"):
            labels = mapping(mapping(self.document.get("metadata")).get("labels"))
            yield Pod(self, labels.get("app.kubernetes.io/component", "training"), self.spec.get("template"))

    def of_train_job(self, key):
        """A setting of the trainer of the TrainJob of a runtime."""
        jobs = [mapping(other.get("spec")) for other in self.documents if other.get("kind") == "TrainJob"]
        return mapping(jobs[0].get("trainer")).get(key) if jobs else None

    def with_trainer(self, pod, name):
        """The pod of a runtime's replicated job with the overrides of its TrainJob."""
        pod.spec, pod.metadata = copy.deepcopy(pod.spec), copy.deepcopy(pod.metadata)
        if pod.is_launcher:
            pod.main.update({key: self.of_train_job(key) for key in ("image", "args") if self.of_train_job(key)})
            pod.main["env"] = items(pod.main.get("env")) + items(self.of_train_job("env"))
        patches = [patch for other in self.documents if other.get("kind") == "TrainJob"
                   for patch in items(mapping(other.get("spec")).get("runtimePatches"))]
        for patch in patches:
            spec = mapping(mapping(mapping(patch.get("trainingRuntimeSpec")).get("template")).get("spec"))
            for replica in items(spec.get("replicatedJobs")):
                if replica.get("name") == name:
                    pod.patch(mapping(mapping(mapping(replica.get("template")).get("spec")).get("template")))
        return pod

    @property
    def workers(self):
        if self.kind == "MPIJob":
            return mapping(mapping(self.spec.get("mpiReplicaSpecs")).get("Worker")).get("replicas")
        if self.kind in RUNTIMES:
            return self.of_train_job("numNodes")
        if self.kind == "StatefulSet":
            return self.spec.get("replicas")
        sets = [Job(one, []) for one in self.documents if one.get("kind") == "StatefulSet"]
        return sets[0].workers if sets else None

    @property
    def slots(self):
        if self.kind == "MPIJob":
            return self.spec.get("slotsPerWorker", 1)
        if self.kind in RUNTIMES:
            return self.of_train_job("numProcPerNode")
        launchers = [pod for pod in self.pods if pod.is_launcher]
        slots = launchers[0].environment.get("SLOTS", "") if launchers else ""
        return int(slots) if slots.isdigit() else None

    @property
    def is_elastic(self):
        return any("elastic.sh" in argument for pod in self.pods for argument in pod.args)

    @property
    def ranks(self):
        if not (number(self.workers) and number(self.slots)) or self.workers < 1:
            return None
        return (self.workers + bool(self.spec.get("runLauncherAsWorker"))) * self.slots

    @property
    def launcher(self):
        return next((pod for pod in self.pods if pod.is_launcher), None)

    @property
    def replicas(self):
        """Replica specifications of an operator's job, by type."""
        place = PEERS[self.kind][0] if self.kind in PEERS else "mpiReplicaSpecs"
        return {role: mapping(replica) for role, replica in mapping(self.spec.get(place)).items()}

    @property
    def run_policy(self):
        return mapping(self.spec.get("runPolicy"))
