"""Tests that the cluster files let EFA jobs start from zero nodes, by the rules in autoscalers.py. Each path fails without
one of its tags or resources. terraform_test.sh uses the functions for Terraform's plans."""

import copy
import json
import re
import sys

import autoscalers
import tools
from instance_types import TYPES

CLUSTER = tools.K8S / "cluster"
EFA = sorted(name for name, row in TYPES.items() if row["efa"])


def documents(path):
    import yaml  # terraform_test.sh runs a Python without it

    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def worker(instance_type):
    """Requests of a worker that uses a whole instance: those that k8s/set.sh writes into an overlay."""
    row = TYPES[instance_type]
    efa = (tools.K8S / "components/efa/kustomization.yaml").read_text(encoding="utf-8")
    [pages] = set(re.findall(r"hugepages-2Mi\n +value: (\S+)", efa))
    limits = {"cpu": row["cpu"], "memory": row["memory"], "nvidia.com/gpu": row["gpus"]}
    if row["efa"]:
        limits |= {"vpc.amazonaws.com/efa": row["efa"], "hugepages-2Mi": pages}
    return autoscalers.requests_of({"containers": [{"resources": {"limits": limits}}]})


def allocated_pages():
    """Huge pages that nodes allocate at boot, as a quantity."""
    [count] = re.findall(r"vm.nr_hugepages=(\d+)", (CLUSTER / "node/tune.sh").read_text(encoding="utf-8"))
    return f"{2 * int(count)}Mi"


def test_worker_is_that_of_the_overlays():
    for name in ("p4d", "p5", "p5en"):
        [job] = [one for one in documents(tools.K8S / f"rendered/{name}.yaml") if one["kind"] == "MPIJob"]
        pod = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        [instance_type] = pod["nodeSelector"].values()
        assert autoscalers.requests_of(pod) == worker(instance_type), name


def test_eksctl():
    groups = documents(CLUSTER / "eksctl/cluster.yaml")[0]["managedNodeGroups"]
    groups = [group for group in groups if group.get("instanceType") in TYPES]
    assert {group["instanceType"] for group in groups if group.get("efaEnabled")} == {
        "p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge"}
    for group in groups:
        kind, tags = group["instanceType"], group.get("tags", {})
        assert group["propagateASGTags"], group["name"]
        assert not autoscalers.unmet(worker(kind), autoscalers.cluster_autoscaler_node(kind, tags)), group["name"]
        assert group["labels"]["k8s.amazonaws.com/accelerator"] == f"nvidia-{TYPES[kind]['gpu'].lower()}", group["name"]
        resources = {key.removeprefix(autoscalers.TAG): value for key, value in tags.items()}
        assert resources in ({}, {"vpc.amazonaws.com/efa": str(TYPES[kind]["efa"]), "hugepages-2Mi": allocated_pages()})
        for key in tags:
            node = autoscalers.cluster_autoscaler_node(kind, {one: tags[one] for one in tags if one != key})
            assert autoscalers.unmet(worker(kind), node) == [key.removeprefix(autoscalers.TAG)], (group["name"], key)


def test_karpenter():
    files = documents(CLUSTER / "karpenter.yaml")
    [pool] = [one for one in files if one["kind"] == "NodePool"]
    overlays = [one for one in files if one["kind"] == "NodeOverlay"]
    [types] = [one["values"] for one in pool["spec"]["template"]["spec"]["requirements"]
               if one["key"] == "node.kubernetes.io/instance-type"]
    assert set(types) & set(EFA), types
    on = {"nodeOverlay": True}
    for kind in types:
        assert not autoscalers.unmet(worker(kind), autoscalers.karpenter_node(kind, overlays, on)), kind
        lacking = ["hugepages-2Mi"] if kind in EFA else []
        assert autoscalers.unmet(worker(kind), autoscalers.karpenter_node(kind, [], on)) == lacking, kind
        assert autoscalers.unmet(worker(kind), autoscalers.karpenter_node(kind, overlays, {})) == lacking, kind
    for overlay in overlays:
        assert overlay["spec"]["capacity"] == {"hugepages-2Mi": allocated_pages()}, overlay
        assert not set(overlay["spec"]["requirements"][0]["values"]) - set(types), overlay
    assert "nodeOverlay = true" in re.sub(" +", " ", (CLUSTER / "terraform/scaling.tf").read_text(encoding="utf-8"))


def test_kueue():
    [queue] = [one for one in documents(CLUSTER / "kueue.yaml") if one["kind"] == "ClusterQueue"]
    launcher = {"cpu": 0.5, "memory": 2**30}
    for kind in EFA:
        pod_sets = [(1, launcher), (4 if TYPES[kind]["gpus"] == 8 else 1, worker(kind))]
        assert not autoscalers.kueue_unmet(pod_sets, queue), kind
        for name in queue["spec"]["resourceGroups"][0]["coveredResources"]:
            smaller = copy.deepcopy(queue)
            smaller["spec"]["resourceGroups"][0]["coveredResources"].remove(name)
            assert autoscalers.kueue_unmet(pod_sets, smaller) == [name], (kind, name)


def check_terraform(path):
    """Fails if a worker would not start from zero nodes in a state or plan of Terraform (`terraform show -json`)."""
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    resources = content.get("planned_values", content.get("values"))["root_module"]["resources"]
    groups = {one["index"]: one["values"] for one in resources
              if (one["type"], one["name"]) == ("aws_eks_node_group", "gpu")}
    assert groups, "there are no node groups"
    tags = {name: {} for name in groups}
    for one in resources:
        if one["type"] == "aws_autoscaling_group_tag":
            [tag] = one["values"]["tag"]
            tags[one["index"].partition("/")[0]][tag["key"]] = tag["value"]
    for name, group in groups.items():
        [kind] = group["instance_types"]
        node = autoscalers.cluster_autoscaler_node(kind, tags[name])
        lacking = autoscalers.unmet(worker(kind), node)
        assert not lacking, f"{name}: the cluster autoscaler knows of no {' and no '.join(lacking)}"
        assert group["labels"] == {"k8s.amazonaws.com/accelerator": f"nvidia-{TYPES[kind]['gpu'].lower()}"}, name
        if TYPES[kind]["efa"]:
            assert tags[name][autoscalers.TAG + "hugepages-2Mi"] == allocated_pages(), tags[name]
    return groups


if __name__ == "__main__":
    if sys.argv[1:2] == ["--terraform"]:
        print(f"{len(check_terraform(sys.argv[2]))} node groups scale from zero")
    else:
        tools.main(globals())
