"""Tests what platforms add to jobs: the optional parameters of k8s/set.sh and the components metrics, kueue, topology,
spot and istio. platform_charts_test.py tests the same values of the charts."""

import pathlib
import re
import tempfile

import lint
import tools
import validate
import yaml
from expand import Job as ExpandedJob
from lint_job import TRAINERS
from tree import Tree

# Parameter, value, and the fields of each pod template that it sets. A dict is a part of the found one.
POD_SETTINGS = {
    "PRIORITY_CLASS": ("high", {"spec.priorityClassName": "high"}),
    "IMAGE_PULL_SECRETS": ("first,second", {"spec.imagePullSecrets": [{"name": "first"}, {"name": "second"}]}),
    "SERVICE_ACCOUNT": ("trainer", {"spec.serviceAccountName": "trainer"}),
    "TOLERATIONS": ("team=ml:NoSchedule,example.com/busy:NoExecute,any", {"spec.tolerations": [
        {"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
        {"key": "example.com/busy", "operator": "Exists", "effect": "NoExecute"}, {"key": "any", "operator": "Exists"}]}),
    "AFFINITY": ("topology.kubernetes.io/zone=us-west-2a:us-west-2b,disk=ssd", {"spec.affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2a", "us-west-2b"]},
            {"key": "disk", "operator": "In", "values": ["ssd"]}]}]}}}}),
    "TOPOLOGY_SPREAD": ("topology.kubernetes.io/zone,kubernetes.io/hostname:DoNotSchedule", {
        "spec.topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action,
             "labelSelector": {"matchLabels": {"app.kubernetes.io/part-of": "dtrain"}},
             "matchLabelKeys": ["app.kubernetes.io/instance", "app.kubernetes.io/component"]}
            for key, action in (("topology.kubernetes.io/zone", "ScheduleAnyway"),
                                ("kubernetes.io/hostname", "DoNotSchedule"))]}),
    "LABELS": ("team=ml,example.com/cost-center=0042", {
        "metadata.labels": {"team": "ml", "example.com/cost-center": "0042"}}),
    "ANNOTATIONS": ("example.com/owner=Ada, Lovelace,note=it's: {here}", {
        "metadata.annotations": {"example.com/owner": "Ada, Lovelace", "note": "it's: {here}"}}),
    "ENV": ("HTTPS_PROXY=http://proxy:3128,NO_PROXY=.svc,10.0.0.0/8", {"env": [
        {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}, {"name": "NO_PROXY", "value": ".svc,10.0.0.0/8"}]}),
    "EPHEMERAL_STORAGE": ("10Gi", {"resources.requests": {"ephemeral-storage": "10Gi"},
                                   "resources.limits": {"ephemeral-storage": "10Gi"}}),
}
OVERLAYS = ("mask-rcnn", "resnet50-cpu-single-pvc", "no-operator", "trainjob", "data-prep-s3", "resnet50-s3",
            "tensorboard")
SETTINGS = [f"{name}={value}" for name, (value, _) in POD_SETTINGS.items()]
# Overlay, argument, and a part of the message.
REFUSED = (
    ("smoke", "PRIORITY_CLASS=High", "a PriorityClass name"),
    ("smoke", "IMAGE_PULL_SECRETS=a,", "names of Secrets"),
    ("smoke", "TOLERATIONS=a=b:Never", "as for kubectl taint"),
    ("smoke", "AFFINITY=zone", "node labels KEY=VALUE"),
    ("smoke", "TOPOLOGY_SPREAD=zone:Soon", "node labels KEY"),
    ("smoke", "LABELS=team=a b", "labels KEY=VALUE"),
    ("smoke", 'ANNOTATIONS=a="b"', "without quotes"),
    ("smoke", "ENV=1A=b", "variables NAME=VALUE"),
    ("smoke", "ENV=RANKS=3", "RANKS is set by the manifests"),
    ("mask-rcnn", "ENV=NCCL_DEBUG=WARN", "NCCL_DEBUG is set by the manifests"),
    ("smoke", "ENV=A=1,A=2", "A is given twice"),
    ("smoke", "ENV=AWS_SECRET_ACCESS_KEY=x", "would be readable"),
    ("smoke", "EPHEMERAL_STORAGE=10GB", "bytes, such as 10Gi"),
    ("smoke", "QUEUE=Training", "a queue name"),
    ("smoke", "TOPOLOGY=rack", "TOPOLOGY needs QUEUE"),
    ("smoke", "EFA=4", "has no GPUs"),
    ("test-gpu", "EFA=4", "single pod"),
    ("smoke", "MONITORING=monitoring", "has no live metrics"),
    ("smoke", "SPOT=no", "yes, or nothing"),
    ("attach", "SPOT=yes", "needs an MPIJob"),
    ("trainjob", "QUEUE=training", "does not support QUEUE"),
    ("trainjob-gpu", "PRIORITY_CLASS=high", "those of its ClusterTrainingRuntime"),
    ("no-operator", "QUEUE=training", "cannot start the objects"),
    ("storage/nfs", "LABELS=a=b", "has no pods"),
)


def templates(documents):
    """(name, pod template) of all pods."""
    for document in documents:
        for pod in lint.Job(document, []).pods:
            yield f"{document['kind']} {pod.role}", {"metadata": pod.metadata, "spec": pod.spec}


def contains(found, wanted):
    """True if `found` has the parts of `wanted`; lists may have other items."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(contains(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and all(any(contains(one, item) for one in found) for item in wanted)
    return found == wanted


def field(template, path):
    if not path.startswith(("spec.", "metadata.")):
        path = f"spec.containers.0.{path}"
    value = template
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value.get(part)
        if value is None:
            return None
    return value


def check_valid(documents, where, exceptions=()):
    schemas = validate.Schemas(tools.SCHEMAS)
    faults = [f"{where}: {document['kind']}: {error}" for document in documents if schemas.files
              for error in validate.errors(document, schemas)]
    faults += [f"{where}: {': '.join(fault)}" for fault in lint.faults(documents) if fault[1] not in exceptions]
    assert not faults, "\n".join(faults)


def changed(tree, overlay, *arguments):
    done = tree.set(overlay, *arguments)
    assert done.returncode == 0, f"{overlay}: {done.stderr}"
    return tree.render(overlay)


def with_tree(case):
    def test():
        if tools.run("kubectl", "kustomize", tools.K8S / "base").returncode != 0:
            tools.skip("there is no kubectl that knows components")
        with tempfile.TemporaryDirectory() as folder:
            case(Tree(folder))
    return test


@with_tree
def test_settings_of_all_pods(tree):
    for overlay in OVERLAYS:
        before = tree.text(overlay)
        documents = changed(tree, overlay, *SETTINGS)
        count = 0
        for where, template in templates(documents):
            count += 1
            for name, (_, wanted) in POD_SETTINGS.items():
                for path, value in wanted.items():
                    assert contains(field(template, path), value), f"{overlay}: {where}: {name}: {field(template, path)}"
        assert count, overlay
        check_valid(documents, overlay)
        listed = tools.run(tree.root / "set.sh", overlay).stdout
        assert all(f"{name}={value}\n" in listed for name, (value, _) in POD_SETTINGS.items()), listed
        own = ["SERVICE_ACCOUNT"] if overlay in ("data-prep-s3", "mask-rcnn-s3", "resnet50-s3", "tensorboard") else []
        changed(tree, overlay, *(f"{name}=" for name in POD_SETTINGS if name not in own))
        after = tree.text(overlay)
        assert {name: text for name, text in after.items() if not own or name != "parameters.yaml"} == {
            name: text for name, text in before.items() if not own or name != "parameters.yaml"}, overlay


@with_tree
def test_refused(tree):
    for overlay, argument, message in REFUSED:
        folder = tree.root / ("" if overlay.startswith("storage/") else "overlays") / overlay
        before = {path: path.read_text() for path in folder.iterdir()}
        done = tree.set(overlay, argument)
        assert done.returncode == 1 and message in done.stderr, f"{overlay} {argument}: {done.returncode} {done.stderr}"
        assert {path: path.read_text() for path in folder.iterdir()} == before, f"{overlay} {argument}"


@with_tree
def test_efa_and_queue(tree):
    """Training with EFA, queue and storage by one overlay."""
    before = tree.text("mask-rcnn")
    documents = changed(tree, "mask-rcnn", "EFA=4", "QUEUE=ml", "TOPOLOGY=topology.k8s.aws/network-node-layer-3",
                        "PVC_NAME=pv-fsx")
    check_valid(documents, "mask-rcnn", ["efa-devices"])
    [job] = [one for one in documents if one["kind"] == "MPIJob"]
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    limits = field(worker, "resources.limits")
    assert limits["vpc.amazonaws.com/efa"] == 4 and limits["hugepages-2Mi"] and limits["nvidia.com/gpu"] == 8, limits
    assert field(worker, "image") == "dtrain-efa:0.2.0"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "ml"
    level = "topology.k8s.aws/network-node-layer-3"
    assert worker["metadata"]["annotations"]["kueue.x-k8s.io/podset-preferred-topology"] == level
    levels = [one for one in lint.read(tools.K8S / "cluster/kueue-topology.yaml") if one["kind"] == "Topology"]
    assert level in [one["nodeLabel"] for one in levels[0]["spec"]["levels"]]
    changed(tree, "mask-rcnn", "TOPOLOGY=", "QUEUE=", "EFA=")
    assert {name: text.replace('"dtrain-cuda:0.2.0"', "dtrain-cuda:0.2.0").replace('"pv-fsx"', "pv-fsx")
            for name, text in tree.text("mask-rcnn").items()} == before


@with_tree
def test_spot(tree):
    """Spot instances of either autoscaler; a notice evicts the workers, and the launcher stays."""
    for settings in ([], ["AFFINITY=disk=ssd"]):
        documents = changed(tree, tree.copy("mask-rcnn"), "SPOT=yes", *settings)
        check_valid(documents, "mask-rcnn")
        pods = {pod.role: pod for one in documents for pod in lint.Job(one, documents).pods}
        assert pods["worker"].on_spot and not pods["launcher"].on_spot
        assert "karpenter.sh/do-not-disrupt" not in pods["worker"].metadata["annotations"]
        assert 60 <= pods["worker"].spec["terminationGracePeriodSeconds"] < 120
        terms = pods["worker"].spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert all(len(term["matchExpressions"]) == 1 + len(settings) for term in terms["nodeSelectorTerms"]), terms
        [budget] = [one for one in documents if one["kind"] == "PodDisruptionBudget"]
        chosen = budget["spec"]["selector"]["matchLabels"]
        for role, pod in pods.items():
            assert (chosen.items() <= pod.metadata["labels"].items()) == (role == "launcher"), role


@with_tree
def test_istio(tree):
    for overlay in ("mask-rcnn", "resnet50-cpu-single-pvc", "no-operator"):
        documents = changed(tree, overlay, "ISTIO=no")
        check_valid(documents, overlay)
        for where, template in templates(documents):
            labels = template["metadata"]["labels"]
            assert (labels["sidecar.istio.io/inject"], labels["istio.io/dataplane-mode"]) == ("false", "none"), where


def kept(monitor, labels):
    """True if Prometheus scrapes a pod: the labels of its discovery, and the relabelings of the PodMonitor."""
    meta = {"__meta_kubernetes_pod_label_" + re.sub(r"[^A-Za-z0-9_]", "_", name): value for name, value in labels.items()}
    for rule in monitor["spec"]["podMetricsEndpoints"][0]["relabelings"]:
        text = rule.get("separator", ";").join(meta.get(name, "") for name in rule["sourceLabels"])
        matches = re.fullmatch(rule.get("regex", "(.*)"), text) is not None
        if {"keep": not matches, "drop": matches}.get(rule.get("action"), False):
            return False
    return True


def pods_of(documents):
    """(name, pod template with all labels) of the pods that controllers make."""
    for document in documents:
        spec = document.get("spec", {})
        if document["kind"] == "MPIJob":
            job = ExpandedJob(document)
            yield "launcher", job.launcher()["spec"]["template"]
            for index in range(job.workers):
                yield f"worker-{index}", job.worker(index)
        elif document["kind"] == "StatefulSet":
            for index in range(spec["replicas"]):
                labels = {**spec["template"]["metadata"]["labels"], "apps.kubernetes.io/pod-index": str(index)}
                yield f"worker-{index}", {**spec["template"], "metadata": {"labels": labels}}
        elif document["kind"] == "Job":
            yield document["metadata"]["name"], spec["template"]


def scraped(monitor, template):
    """True if Prometheus scrapes a pod: it has the labels and a port of this name, and no relabeling drops it."""
    labels = template["metadata"]["labels"]
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    return (monitor["spec"]["selector"]["matchLabels"].items() <= labels.items() and kept(monitor, labels)
            and contains(template["spec"]["containers"][0].get("ports"), [{"name": endpoint["port"], "containerPort": 9400}]))


# Overlay, and the pod with the first rank.
MONITORED = (("mask-rcnn", "worker-0"), ("resnet50-fsx", "worker-0"), ("no-operator", "worker-0"),
             ("tf-cnn-ps", "tf-cnn-ps-training"),
             ("elastic", "worker-0"), ("resnet50-cpu-multi-nfs", "worker-0"))


@with_tree
def test_metrics(tree):
    """Prometheus scrapes exactly the pod of the first rank, which its policy admits, with the flags for it."""
    for overlay, expected in MONITORED:
        before = tree.text(overlay)
        documents = changed(tree, overlay, "MONITORING=prometheus")
        check_valid(documents, overlay)
        [monitor] = [one for one in documents if one["kind"] == "PodMonitor"]
        found = [name for name, template in pods_of(documents) if scraped(monitor, template)]
        assert found == [expected], f"{overlay}: {found}"
        policies = {one["metadata"]["name"]: one["spec"] for one in documents if one["kind"] == "NetworkPolicy"}
        name = monitor["metadata"]["name"]
        assert set(policies) == {name, f"{name}-metrics"}, policies
        [entry] = policies[f"{name}-metrics"]["ingress"]
        assert entry == {"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "prometheus"}}}],
                         "ports": [{"port": 9400, "protocol": "TCP"}]}, entry
        words = [pod for one in documents for pod in lint.Job(one, documents).pods if pod.program[0] in TRAINERS]
        flags = [word for pod in words for word in pod.args if word.startswith("--metrics_")]
        assert flags == ["--metrics_port=9400", "--metrics_address=0.0.0.0"], flags
        changed(tree, overlay, "MONITORING=")
        assert tree.text(overlay) == before, overlay


@with_tree
def test_gpu_train_job(tree):
    """A TrainJob with the ClusterTrainingRuntime that it names: one rank per GPU, and the claim in all pods."""
    runtime = lint.read(tools.K8S / "cluster/training-runtime.yaml")
    documents = changed(tree, "trainjob-gpu", "WORKERS=4", "NAME=other", "PVC_NAME=data", "PVC_PATH=/results",
                        "NAMESPACE=team") + runtime
    check_valid(documents, "trainjob-gpu", ["one-namespace"])
    [job] = [one for one in documents if one["kind"] == "TrainJob"]
    assert job["spec"]["runtimeRef"]["name"] == runtime[0]["metadata"]["name"]
    assert "resourcesPerNode" not in job["spec"]["trainer"], "Trainer would apply it to the launcher"
    pods = {pod.role: pod for pod in lint.Job(runtime[0], documents).pods}
    assert pods["worker"].gpus == job["spec"]["trainer"]["numProcPerNode"] == 8 and not pods["launcher"].gpus
    assert pods["launcher"].environment["RANKS"] == "32" and pods["launcher"].environment["OUTPUT_DIR"] == "/results"
    for role, pod in pods.items():
        assert pod.volume(pod.mount_of("/results")["name"]) == {
            "name": "output", "persistentVolumeClaim": {"claimName": "data"}}, role
        assert pod.metadata["labels"]["app.kubernetes.io/instance"] == "other", role


if __name__ == "__main__":
    tools.main(globals())
