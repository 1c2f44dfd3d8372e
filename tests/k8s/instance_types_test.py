"""Tests k8s/instance-types.csv and its users: the table and its page, k8s/set.sh OVERLAY INSTANCE_TYPE=..., and the
default types of all cluster tools and charts. charts_test.py tests the charts."""

import re
import tempfile

import lint
import tools
import yaml
from instance_types import TYPES
from tree import Tree

# Images that have code for a GPU; dtrain-efa also needs the fabric.
IMAGES = {"V100": "cuda12", "T4": "cuda12", "A10G": "cuda", "L4": "cuda", "L40S": "cuda",
          "A100": "efa", "H100": "efa", "H200": "efa", "B200": "efa"}
NAME = r"\b((?:p[3-9]|g[4-9])[a-z0-9-]*\.(?:[0-9]*xlarge|metal))\b"


def gib(text):
    assert text.endswith("Gi"), text
    return int(text.removesuffix("Gi"))


def test_table():
    assert {"p3.16xlarge", "p3dn.24xlarge", "g6e.48xlarge", "p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge"} <= set(TYPES)
    for name, row in TYPES.items():
        assert row["image"] == IMAGES[row["gpu"]], name
        assert row["efa_interfaces"] > 0 or row["image"] != "efa", f"{name}: an image with EFA, but no EFA"
        assert row["gpus"] in (1, 4, 8) and row["vcpus"] >= 4 * row["gpus"], name
        assert row["cpu"] < row["vcpus"], f"{name}: a worker leaves no CPU to the node"
        # The kubelet's reserve, and 10 GiB of huge pages on nodes with EFA.
        assert gib(row["memory"]) <= 0.93 * row["memory_gib"] - (10 if row["efa"] else 0), name
        assert gib(row["shm"]) <= gib(row["memory"]) / 3, f"{name}: /dev/shm counts towards the memory"


def row_of_page(row):
    efa = f"{row['efa_interfaces']}" if row["efa"] or not row["efa_interfaces"] else f"{row['efa_interfaces']}, not used"
    return (f"| {row['instance_type']} | {row['gpus']} x {row['gpu']} | {row['gpu_memory_gib']} | {row['vcpus']} | "
            f"{row['memory_gib']} | {efa} | `dtrain-{row['image']}` | {row['cpu']} CPU, {row['memory']}, {row['shm']} |")


def test_page_has_the_table():
    text = (tools.K8S / "instance-types.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| {NAME} \|.*$", text, re.MULTILINE)
    assert len(rows) == len(TYPES), set(rows) ^ set(TYPES)
    expected = "\n".join(map(row_of_page, TYPES.values()))
    assert expected in text, f"k8s/instance-types.md: expected the rows\n{expected}"


def pod_with_gpus(overlay, objects):
    assert not list(lint.faults(objects)), (overlay, list(lint.faults(objects)))
    [pod] = [pod for one in objects for pod in lint.Job(one, objects).pods if pod.gpus]
    return pod


def gpu_overlays():
    for path in sorted((tools.K8S / "overlays").glob("*/kustomization.yaml")):
        if "../../components/gpu" in yaml.safe_load(path.read_text(encoding="utf-8")).get("components", []):
            yield path.parent.name


def needs_kubectl():
    if tools.run("kubectl", "kustomize", tools.K8S / "base").returncode != 0:
        tools.skip("there is no kubectl that knows components")


def expected_limits(row, distributed):
    limits = {"cpu": str(row["cpu"]), "memory": row["memory"], "nvidia.com/gpu": row["gpus"]}
    if distributed and row["efa"]:
        limits |= {"vpc.amazonaws.com/efa": row["efa"], "hugepages-2Mi": "5120Mi"}
    return limits


def test_overlays_take_types():
    """INSTANCE_TYPE sets node selector, image and resources of all overlays with GPUs."""
    needs_kubectl()
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder)
        overlays = list(gpu_overlays())
        assert len(overlays) >= 18 and {"g6e", "p3", "test-gpu", "tf-cnn-ps", "mask-rcnn"} <= set(overlays), overlays
        changed = {}  # by copy: overlay and instance type
        for overlay in overlays:
            for name in ("p6-b200.48xlarge", "p3.16xlarge", "g6.12xlarge")[:3 if overlay == "mask-rcnn" else 2]:
                bf16 = "--precision=bf16" in tree.text(overlay)["command.yaml"]
                flags = ["--precision=fp16"] if bf16 and TYPES[name]["image"] == "cuda12" else []
                done = tree.set(overlay, f"INSTANCE_TYPE={name}", *flags)
                assert done.returncode == 0, (overlay, name, done.stderr)
                changed[tree.copy(overlay)] = overlay, name
            assert tree.set(overlay, "INSTANCE_TYPE=").returncode == 0, overlay
            assert "INSTANCE_TYPE=   (any)" in tree.set(overlay).stdout, overlay
        for copy, objects in tree.render_all(changed):
            check_type(*changed[copy], pod_with_gpus(copy, objects), "WORKERS" in tree.parameters(copy))
        for overlay, objects in tree.render_all(overlays):
            assert "nodeSelector" not in pod_with_gpus(overlay, objects).spec, overlay


def check_type(overlay, name, pod, distributed):
    row = TYPES[name]
    assert pod.spec["nodeSelector"] == {"node.kubernetes.io/instance-type": name}, (overlay, name)
    assert pod.limits == expected_limits(row, distributed), (overlay, name, pod.limits)
    image = row["image"] if distributed else row["image"].replace("efa", "cuda")
    assert pod.main["image"].startswith(f"dtrain-{image}:"), (overlay, name, pod.main["image"])
    assert pod.volume("shm")["emptyDir"]["sizeLimit"] == row["shm"], (overlay, name)
    assert not distributed or pod.owner.slots == row["gpus"], (overlay, name)
    if "--num_gpus" in " ".join(pod.args):
        assert f"--num_gpus={row['gpus']}" in pod.args, (overlay, name, pod.args)


def test_every_type_is_accepted():
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder)
        for name, row in TYPES.items():
            assert tree.set("mask-rcnn", f"INSTANCE_TYPE={name}").returncode == 0, name
            found = tree.parameters("mask-rcnn")
            expected = {"INSTANCE_TYPE": name, "IMAGE": f"dtrain-{row['image']}:{found['IMAGE'].partition(':')[2]}",
                        "SLOTS": str(row["gpus"]), "CPU": str(row["cpu"]), "MEMORY": row["memory"], "SHM": row["shm"]}
            assert expected.items() <= found.items(), (name, found)
            assert found.get("EFA") == (str(row["efa"]) if row["efa"] else None), (name, found)


def test_type_is_a_default_for_other_parameters():
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder)
        assert tree.set("p5", "CPU=20", "SLOTS=2", "INSTANCE_TYPE=p5en.48xlarge", "MEMORY=96Gi").returncode == 0
        found = tree.parameters("p5")
        assert (found["CPU"], found["SLOTS"], found["RANKS"], found["MEMORY"], found["EFA"]) == (
            "20", "2", "4", "96Gi", "16"), found
        # Registry and version stay; the digest is another image's.
        digest = "sha256:" + "a" * 64
        for before, name, after in (
                (f"host:5000/team/dtrain-efa:0.2.0@{digest}", "g6e.xlarge", "host:5000/team/dtrain-cuda:0.2.0"),
                (f"host/dtrain-cuda:0.2.0@{digest}", "g6.xlarge", f"host/dtrain-cuda:0.2.0@{digest}"),
                ("dtrain-cuda:0.2.0", "p6-b200.48xlarge", "dtrain-efa:0.2.0"),
                ("other/trainer:1", "g6.xlarge", "other/trainer:1")):
            assert tree.set("mask-rcnn", f"IMAGE={before}").returncode == 0
            done = tree.set("mask-rcnn", f"INSTANCE_TYPE={name}")
            assert done.returncode == 0 and done.stderr == (f"note: IMAGE is now {after}\n" if before != after else ""), done
            assert tree.parameters("mask-rcnn")["IMAGE"] == after, (before, name, tree.parameters("mask-rcnn"))


REFUSED = (
    ("p5", ["INSTANCE_TYPE=x9.large"], "INSTANCE_TYPE='x9.large': expected one of " + " ".join(TYPES)),
    ("p5", ["INSTANCE_TYPE=p5"], "expected one of g6e.xlarge "),
    ("p5", ["INSTANCE_TYPE=p5.48xlarge,"], "expected one of g6e.xlarge "),
    ("smoke", ["INSTANCE_TYPE=g5.xlarge"], "the overlay smoke has no GPUs"),
    ("mask-rcnn", ["INSTANCE_TYPE=g5.xlarge", "SLOTS=8"], "SLOTS=8 is more than the 1 of INSTANCE_TYPE=g5.xlarge"),
    ("g5", ["CPU=4"], "CPU=4 is more than the 3 of INSTANCE_TYPE=g5.xlarge"),
    ("g5", ["MEMORY=1Ti"], "MEMORY=1Ti is more than the 16Gi"),
    ("p5en", ["EFA=32"], "EFA=32 is more than the 16 of INSTANCE_TYPE=p5en.48xlarge"),
    ("g5", ["EFA=1"], "EFA=1 is more than the 0 of INSTANCE_TYPE=g5.xlarge"),
    ("p3", ["IMAGE=me/dtrain-cuda:0.2.0"], "no code for the V100 of INSTANCE_TYPE=p3.16xlarge: expected the image dtrain-cuda12"),
    ("p5", ["INSTANCE_TYPE=p3dn.24xlarge"], "has no bf16: also set --precision=fp16"),
)


def test_rejects_what_no_instance_satisfies():
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder)
        for overlay, changes, phrase in REFUSED:
            before = tree.text(overlay)
            done = tree.set(overlay, *changes)
            assert done.returncode == 1 and phrase in done.stderr, (overlay, changes, done.returncode, done.stderr)
            assert done.stderr.count("\n") == 1 and done.stderr.startswith("set.sh: "), done.stderr
            assert tree.text(overlay) == before, (overlay, changes)


# Files that name P3, which AWS retired: the table and its page, the V100 overlays and node group, and what the older
# documents said.
WITH_P3 = {"instance-types.csv", "instance-types.md", "instance-prices.csv", "overlays/p3", "overlays/p3dn",
           "rendered/p3.yaml", "rendered/p3dn.yaml", "cluster/eksctl/cluster.yaml", "cluster/README.md",
           "source-documents.md", "troubleshooting.md"}


def test_files_name_known_and_current_types():
    """Files of k8s/ name types of the table only, and P3 only as the option with V100."""
    found = {}
    for path in tools.K8S.rglob("*"):
        if path.is_file() and not path.is_symlink() and ".terraform" not in path.parts:
            for name in re.findall(NAME, path.read_text(encoding="utf-8", errors="replace")):
                found.setdefault(name, set()).add(path.relative_to(tools.K8S))
    unknown = {name: files for name, files in found.items() if name not in TYPES}
    assert not unknown, unknown
    for name, files in found.items():
        if name.startswith("p3"):
            others = {str(file) for file in files if not {str(file), str(file.parent)} & WITH_P3}
            assert not others, f"{name}: {others}"


def test_defaults_are_current_types():
    """The default type of each cluster tool, and where it is: once per tool."""
    text = {name: (tools.K8S / name).read_text(encoding="utf-8") for name in (
        "cluster/terraform/variables.tf", "ec2/cluster.yaml", "ec2/stack.sh", "benchmark/plan.example",
        "cluster/eksctl/cluster.yaml", "cluster/README.md", "tools/README.md")}
    groups = yaml.safe_load(text["cluster/eksctl/cluster.yaml"])["managedNodeGroups"]
    types = {group["name"]: group.get("instanceType") for group in groups}
    expected = {"cluster/terraform/variables.tf": ["g6e.48xlarge", "p5.48xlarge", "p5en.48xlarge", "g5.xlarge"],
                "ec2/cluster.yaml": ["g6e.48xlarge"], "ec2/stack.sh": [], "tools/README.md": ["g6e.48xlarge"]}
    for name, defaults in expected.items():
        assert re.findall(NAME, text[name]) == defaults, (name, re.findall(NAME, text[name]))
    [nodes] = re.findall(r"^nodes = (.*)$", text["benchmark/plan.example"], re.MULTILINE)
    assert [types[name] for name in nodes.split(",")] == [None, "g6e.48xlarge"], nodes
    [included] = re.findall(r"--include=(\S+)", text["cluster/README.md"])
    assert included == nodes and f"--include={nodes}" in text["cluster/eksctl/cluster.yaml"], included
    [image] = re.findall(r"^image = .*/dtrain-(\w+):", text["benchmark/plan.example"], re.MULTILINE)
    assert image == TYPES["g6e.48xlarge"]["image"], image


if __name__ == "__main__":
    tools.main(globals())
