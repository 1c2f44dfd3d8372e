"""Tests the rules of k8s/preflight.sh about nodes, autoscalers, queues and images with the real kubectl and a fake API. The
autoscalers' objects are those of k8s/cluster; each path from zero nodes is refused without one of its tags or resources."""

import copy
import json
import os
import pathlib
import re
import shutil
import tempfile

import tools
import yaml
from fake_api import FakeApi
from instance_types import TYPES

CLUSTER = tools.K8S / "cluster"
TAG = "k8s.io/cluster-autoscaler/node-template/resources/"
# Answers with the file of the first words, and fails if its name ends in .error.
PROGRAM = """#!/usr/bin/env bash
name=${0##*/}-$1-$2
[[ $1 == -* ]] && name=${0##*/}
if [ -f "$ANSWERS/$name.error" ]; then cat "$ANSWERS/$name.error" >&2; exit 1; fi
cat "$ANSWERS/$name" 2>/dev/null || { echo "no answer for $*" >&2; exit 1; }
"""


def deployment(name, *arguments, **variables):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"template": {"spec": {"containers": [
                {"name": name, "image": f"{name}:1", "command": [f"./{name}", *arguments],
                 "env": [{"name": key, "value": value} for key, value in variables.items()]}]}}},
            "status": {"readyReplicas": 1}}


def node(kind, images=("dtrain-cpu", "dtrain-cuda", "dtrain-efa"), taints=(), labels=None, **changes):
    row = TYPES[kind]
    resources = {"cpu": str(row["vcpus"]), "memory": f"{row['memory_gib'] * 15 // 16}Gi", "nvidia.com/gpu": str(row["gpus"]),
                 "vpc.amazonaws.com/efa": str(row["efa"]), "hugepages-2Mi": "10256Mi" if row["efa"] else "0"}
    for name, amount in changes.items():
        resources[{"gpu": "nvidia.com/gpu", "efa": "vpc.amazonaws.com/efa", "pages": "hugepages-2Mi"}.get(name, name)] = amount
    return {"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": f"ip-{kind}", "labels": {"node.kubernetes.io/instance-type": kind, **(labels or {})}},
            "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}, *taints]},
            "status": {"allocatable": resources, "images": [{"names": [f"docker.io/library/{name}:0.2.0"]} for name in images]}}


def base(*more):
    """A cluster with all that a job needs except nodes with GPUs."""
    fields = ("launcherCreationPolicy", "mpiImplementation", "runLauncherAsWorker", "runPolicy", "slotsPerWorker",
              "sshAuthMountPath")
    plain = node("g6e.xlarge", gpu="0")
    plain["spec"] = {}
    return [
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
         "metadata": {"name": "mpijobs.kubeflow.org"},
         "spec": {"versions": [{"name": "v2beta1", "served": True, "schema": {"openAPIV3Schema": {"properties": {
             "spec": {"properties": {name: {} for name in fields}}}}}}]}},
        deployment("mpi-operator"), plain,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        *({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "kube-system"}}
          for name in ("nvidia-device-plugin-daemonset", "aws-efa-k8s-device-plugin")), *more]


def documents(path):
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def changed_copy(*changes):
    """A copy of k8s/ with an overlay that set.sh has changed, and the folder to clean up."""
    folder = tempfile.TemporaryDirectory()
    copied = pathlib.Path(folder.name, "k8s")
    shutil.copytree(tools.K8S, copied, ignore=shutil.ignore_patterns("charts", "images", "cluster", "rendered"))
    tools.check_run(copied / "set.sh", *changes)
    return folder, copied


class Case:
    """Runs preflight.sh against objects and answers of aws and skopeo."""

    def __init__(self):
        if not shutil.which("kubectl"):
            tools.skip("there is no kubectl")
        self.folder = tempfile.TemporaryDirectory()
        self.answers = pathlib.Path(self.folder.name)
        (self.answers / "bin").mkdir()
        for name in ("aws", "skopeo"):
            path = self.answers / "bin" / name
            path.write_text(PROGRAM, encoding="utf-8")
            path.chmod(0o755)

    def answer(self, name, content):
        for path in self.answers.glob(f"{name}*"):
            path.unlink()
        text = content if isinstance(content, str) else json.dumps(content, indent=4)
        (self.answers / name).write_text(text, encoding="utf-8")

    def run(self, objects, overlay, k8s=tools.K8S):
        rendered = k8s / "rendered" / f"{overlay}.yaml"  # saves a rendering; changed copies have none
        with FakeApi(objects) as api:
            environment = dict(os.environ, ANSWERS=str(self.answers), **api.environment,
                               PATH=f"{self.answers / 'bin'}:{os.environ['PATH']}")
            result = tools.run(k8s / "preflight.sh", rendered if rendered.exists() else overlay, env=environment)
        return result.returncode, result.stderr

    def expect(self, code, objects, overlay, *texts, **options):
        found, said = self.run(objects, overlay, **options)
        assert found == code and all(text in said for text in texts), f"{found}, expected {code} and {texts}:\n{said}"


def test_nodes():
    case = Case()
    case.expect(0, base(node("p5.48xlarge")), "p5", "nothing is missing", "driver was not checked")
    case.expect(12, base(node("p5.48xlarge", pages="0")), "p5", "hugepages-2Mi: 5Gi requested, 0 available")
    case.expect(12, base(node("p5.48xlarge", efa="16")), "p5", "vpc.amazonaws.com/efa: 32 requested, 16 available",
                "no autoscaler with node groups was found")
    case.expect(12, base(node("p5en.48xlarge")), "p5", "its label node.kubernetes.io/instance-type is not p5.48xlarge")
    reserved = {"key": "team", "value": "other", "effect": "NoSchedule"}
    case.expect(12, base(node("p5.48xlarge", taints=[reserved])), "p5", "does not tolerate its taint team")
    # Each resource is on some node, but not on one node.
    case.expect(12, base(node("p5.48xlarge", gpu="4"), node("p5.48xlarge", efa="0")), "p5", "requested")
    without = [one for one in base() if one["kind"] != "DaemonSet"]
    case.expect(12, without, "g6e", "no node has nvidia.com/gpu, and there is no device plugin")
    efa = [one for one in base() if one["metadata"]["name"] != "aws-efa-k8s-device-plugin"]
    case.expect(12, efa, "p5", "no node has vpc.amazonaws.com/efa, and there is no device plugin")


def test_drivers():
    case = Case()
    for label in ("nvidia.com/cuda.driver-version.major", "nvidia.com/cuda.driver.major"):
        case.expect(0, base(node("p5.48xlarge", labels={label: "580"})), "p5", "nothing is missing")
        case.expect(12, base(node("p5.48xlarge", labels={label: "570"})), "p5",
                    "the NVIDIA driver of the node ip-p5.48xlarge has version 570; the image needs 580 or later")
    text = (tools.K8S / "lib/preflight-nodes.sh").read_text(encoding="utf-8")
    stated = dict(re.findall(r"^(?:drivers=')?(dtrain-\w+) (\d+)'?$", text, re.MULTILINE))
    page = (tools.K8S / "images/README.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `(dtrain-\w+)` \|.*drivers from (\d+)", page, re.MULTILINE))
    assert stated == documented | {"dtrain-efa": documented["dtrain-cuda"]}, (stated, documented)


def groups_of_eksctl():
    """What AWS answers about the node groups of eksctl/cluster.yaml."""
    [config] = documents(CLUSTER / "eksctl/cluster.yaml")
    groups = []
    for one in config["managedNodeGroups"]:
        tags = {**one.get("tags", {}), "eks:cluster-name": "dtrain", "eks:nodegroup-name": one["name"]}
        groups.append({
            "AutoScalingGroupName": f"eks-{one['name']}-0123", "MaxSize": one["maxSize"],
            "MixedInstancesPolicy": {"LaunchTemplate": {"Overrides": [
                {"InstanceType": kind} for kind in one.get("instanceTypes", [one.get("instanceType")])]}},
            "Tags": [{"ResourceId": "a", "Key": key, "Value": value} for key, value in tags.items()]})
    return groups


DISCOVERY = "--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/dtrain"
AUTOSCALER = deployment("cluster-autoscaler-aws-cluster-autoscaler", "--cloud-provider=aws", DISCOVERY, AWS_REGION="us-west-2")


def test_cluster_autoscaler():
    case = Case()
    cluster = base(AUTOSCALER)
    groups = groups_of_eksctl()
    case.answer("aws-eks-describe-nodegroup", {"nodegroup": {"tags": {}}})

    def answer(change=lambda tags: None):
        changed = copy.deepcopy(groups)
        for group in changed:
            change(group)
        case.answer("aws-autoscaling-describe-auto-scaling-groups", {"AutoScalingGroups": changed})

    answer()
    case.expect(0, cluster, "p5", "the autoscaler must add one (node group p5)")
    case.expect(0, cluster, "p4d", "the autoscaler must add one (node group p4d)")
    case.expect(0, cluster, "g6e", "the autoscaler must add one (node group g6e)")
    for resource in ("vpc.amazonaws.com/efa", "hugepages-2Mi"):
        def remove(group, key=TAG + resource):
            group["Tags"] = [tag for tag in group["Tags"] if tag["Key"] != key]
        answer(remove)
        case.expect(12, cluster, "p5", f"no autoscaler can add one; nearest is node group p5: {resource}: ", "0 available")
        # The autoscaler also reads tags of the EKS node group.
        value = "32" if "/" in resource else "10256Mi"
        case.answer("aws-eks-describe-nodegroup", {"nodegroup": {"tags": {TAG + resource: value}}})
        case.expect(0, cluster, "p5", "node group p5")
        case.answer("aws-eks-describe-nodegroup", {"nodegroup": {"tags": {}}})
    answer(lambda group: group.update(MaxSize=1))
    case.expect(12, cluster, "p5", "16 for all pods, 8 on at most 1 nodes")
    case.answer("aws-autoscaling-describe-auto-scaling-groups", {"AutoScalingGroups": groups[:2]})
    case.expect(12, cluster, "p5", "its label node.kubernetes.io/instance-type is not p5.48xlarge")
    # Without its node groups, jobs with EFA are refused; others are not.
    case.answer("aws-autoscaling-describe-auto-scaling-groups.error", "\nAn error occurred (AccessDenied): not authorized\n")
    case.expect(12, cluster, "p5", "could not be checked: the node groups of the cluster autoscaler cannot be read: An error")
    case.expect(0, cluster, "g6e", "was not checked: the node groups")


def test_karpenter():
    case = Case()
    objects = [one for one in documents(CLUSTER / "karpenter.yaml") if one["kind"] in ("NodePool", "NodeOverlay")]
    enabled = deployment("karpenter", FEATURE_GATES="ReservedCapacity=true,NodeOverlay=true")
    case.expect(0, base(enabled, *objects), "p5", "the autoscaler must add one (NodePool gpu, p5.48xlarge)")
    case.expect(0, base(enabled, *objects), "g6e", "(NodePool gpu, g6e.48xlarge)")
    lacking = "no autoscaler can add one; nearest is NodePool gpu, p5.48xlarge: hugepages-2Mi: 5Gi requested, 0 available"
    disabled = deployment("karpenter", FEATURE_GATES="NodeOverlay=false")
    case.expect(12, base(disabled, *objects), "p5", lacking)
    [pool, overlay] = objects
    case.expect(12, base(enabled, pool), "p5", lacking)
    case.expect(0, base(disabled, pool), "g6e", "NodePool gpu")
    conflicting = dict(overlay, status={"conditions": [{"type": "Ready", "status": "False"}]})
    case.expect(12, base(enabled, pool, conflicting), "p5", lacking)

    def changed(**requirements):
        other = copy.deepcopy(pool)
        other["spec"]["template"]["spec"]["requirements"] = [
            {"key": key.replace("__", "/").replace("_", "-"), "operator": operator, "values": values}
            for key, (operator, values) in requirements.items()]
        return base(enabled, other, overlay)

    family = "karpenter.k8s.aws__instance_family"
    case.expect(0, changed(**{family: ("In", ["p5", "p5en"])}), "p5", "NodePool gpu, p5.48xlarge")
    case.expect(12, changed(**{family: ("NotIn", ["p5"])}), "p5", "instance-type is not p5.48xlarge")
    # EKS Auto Mode has its own device plugins, and no NodeOverlay.
    auto = copy.deepcopy(pool)
    auto["spec"]["template"]["spec"]["nodeClassRef"]["group"] = "eks.amazonaws.com"
    without_plugins = [one for one in base(enabled, auto, overlay) if one["kind"] != "DaemonSet"]
    case.expect(0, without_plugins, "g6e", "(NodePool gpu, g6e.48xlarge)")
    case.expect(12, without_plugins, "p5", lacking)
    small = copy.deepcopy(pool)
    small["spec"]["limits"] = {"nvidia.com/gpu": 8}
    case.expect(12, base(enabled, small, overlay), "p5", "nvidia.com/gpu: 16 for all pods, limit 8")
    reserved = copy.deepcopy(pool)
    reserved["spec"]["template"]["spec"]["taints"].append({"key": "team", "effect": "NoSchedule"})
    case.expect(12, base(enabled, reserved, overlay), "p5", "does not tolerate its taint team")


def test_kueue():
    case = Case()
    folder, k8s = changed_copy("p5", "NAME=p5")
    kustomization = k8s / "overlays/p5/kustomization.yaml"
    with kustomization.open("a", encoding="utf-8") as file:
        file.write("labels:\n  - pairs: {kueue.x-k8s.io/queue-name: training}\n")
    objects = documents(CLUSTER / "kueue.yaml")
    [queue] = [one for one in objects if one["kind"] == "ClusterQueue"]
    [local] = [dict(one, status={"conditions": [{"type": "Active", "status": "True"}]})
               for one in objects if one["kind"] == "LocalQueue"]
    nodes = base(node("p5.48xlarge"))
    case.expect(0, [*nodes, queue, local], "p5", "nothing is missing", k8s=k8s)
    for name in ("vpc.amazonaws.com/efa", "hugepages-2Mi"):
        smaller = copy.deepcopy(queue)
        smaller["spec"]["resourceGroups"][0]["coveredResources"].remove(name)
        case.expect(17, [*nodes, smaller, local], "p5", f"has no quota of {name}, and would never admit the job", k8s=k8s)
    configuration = {"apiVersion": "v1", "kind": "ConfigMap",
                     "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
                     "data": {"controller_manager_config.yaml": 'resources:\n  excludeResourcePrefixes:\n  - "hugepages-"\n'}}
    case.expect(0, [*nodes, smaller, local, configuration], "p5", k8s=k8s)
    smaller = copy.deepcopy(queue)
    smaller["spec"]["resourceGroups"][0]["flavors"][0]["resources"][2]["nominalQuota"] = 8
    case.expect(17, [*nodes, smaller, local], "p5", "has a quota of 8 nvidia.com/gpu, but the job needs 16", k8s=k8s)
    smaller["spec"]["cohortName"] = "team"
    case.expect(0, [*nodes, smaller, local], "p5", k8s=k8s)
    case.expect(17, [*nodes, queue, dict(local, status={})], "p5", "missing or not active", k8s=k8s)
    folder.cleanup()


def test_images():
    case = Case()
    bare = base()
    bare[2]["status"]["images"] = []
    case.expect(19, bare, "smoke", "the image dtrain-cpu:0.2.0 has no registry, and is on no node")
    case.expect(0, base(), "smoke", "nothing is missing")
    for registry, answer in (("registry.test:5000/team", "skopeo"),
                             ("123456789012.dkr.ecr.eu-west-1.amazonaws.com/team", "aws-ecr-describe-images")):
        folder, k8s = changed_copy("smoke", f"IMAGE={registry}/dtrain-cpu:0.2.0")
        case.answer(answer, "{}")
        case.expect(0, bare, "smoke", "nothing is missing", k8s=k8s)
        for text in ("manifest unknown", "An error occurred (ImageNotFoundException): requested image not found"):
            case.answer(f"{answer}.error", text)
            case.expect(19, bare, "smoke", f"dtrain-cpu:0.2.0 cannot be pulled: {text}", k8s=k8s)
        case.answer(f"{answer}.error", "unauthorized: authentication required")
        case.expect(0, bare, "smoke", "was not checked: unauthorized", k8s=k8s)
        folder.cleanup()


if __name__ == "__main__":
    tools.main(globals())
