"""Tests instance types of the Helm charts: resources and images from k8s/instance-types.csv, and defaults."""

import tools
import yaml
from charts import CHARTS, INSTANCE_TYPES, JOBS, SERVERS, of_kind, pods, render
from instance_types import TYPES
from instance_types_test import expected_limits

SAMPLE = ("g6e.12xlarge", "p5.48xlarge", "p6-b200.48xlarge", "p3.16xlarge", "p3dn.24xlarge")


def worker_of(chart, objects):
    """The pod with GPUs, its first container, and its size of /dev/shm."""
    if chart in JOBS:
        spec = pods(of_kind(objects, "MPIJob"))["Worker"]["spec"]
    elif chart == "pytorchjob":
        spec = of_kind(objects, "PyTorchJob")["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    else:
        spec = of_kind(objects, "Deployment")["spec"]["template"]["spec"]
    volumes = {one["name"]: one for one in spec["volumes"]}
    return spec, spec["containers"][0], volumes.get("shm", {}).get("emptyDir", {}).get("sizeLimit")


def test_type_sets_image_and_resources():
    for helm in tools.helms():
        for chart in (*JOBS, "pytorchjob"):
            for name in SAMPLE:
                row = TYPES[name]
                objects = render(helm, chart, [f"{INSTANCE_TYPES[chart]}={name}"])[1]
                spec, container, shm = worker_of(chart, objects)
                assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": name}, (chart, name)
                assert container["resources"]["limits"] == expected_limits(row, True), (chart, name, container["resources"])
                assert shm == row["shm"] and "tolerations" in spec, (chart, name)
                if chart in JOBS:
                    assert of_kind(objects, "MPIJob")["spec"]["slotsPerWorker"] == row["gpus"], (chart, name)
                    assert container["image"].startswith(f"dtrain-{row['image']}:"), (chart, name, container["image"])


def test_values_override_the_type():
    helm = tools.helms()[0]
    values = ["maskrcnn.gpu_instance_type=p5.48xlarge", "maskrcnn.gpus_per_node=4", "job.cpu=16", "job.memory=64Gi",
              "job.shm=4Gi", "job.efa=0"]
    _, container, shm = worker_of("maskrcnn", render(helm, "maskrcnn", values)[1])
    assert container["resources"]["limits"] == {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": 4}, container
    assert shm == "4Gi" and container["image"].startswith("dtrain-cuda:"), container
    # Without an instance type, and on CPUs of a type that the table does not have.
    spec, container, shm = worker_of("mpijob", render(helm, "mpijob")[1])
    assert container["resources"]["limits"] == {"cpu": "60", "memory": "440Gi", "nvidia.com/gpu": 8}, container
    assert "nodeSelector" not in spec and shm == "32Gi"
    values = ["maskrcnn.gpu_instance_type=c6i.32xlarge", "maskrcnn.gpus_per_node=0"]
    spec, container, _ = worker_of("maskrcnn", render(helm, "maskrcnn", values)[1])
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": "c6i.32xlarge"} and "tolerations" not in spec
    assert container["resources"]["limits"] == {"cpu": "60", "memory": "440Gi"}, container
    assert container["image"].startswith("dtrain-cpu:"), container


def test_refuses_efa_without_an_image():
    helm = tools.helms()[0]
    values = ["--set", "maskrcnn.gpu_instance_type=p3dn.24xlarge", "--set", "job.efa=1"]
    result = tools.run(helm, "template", "a", CHARTS / "maskrcnn", *values)
    assert result.returncode != 0 and "the image dtrain-cuda12 of p3dn.24xlarge has no EFA" in result.stderr, result.stderr
    result = tools.run(helm, "template", "a", CHARTS / "maskrcnn", *values, "--set", "maskrcnn.image=me/cuda12-efa:1")
    assert result.returncode == 0, result.stderr


def test_servers_use_some_gpus():
    """A server takes the requested GPUs and its own CPU and memory, not a whole instance."""
    helm = tools.helms()[0]
    for chart in SERVERS:
        for name, image in (("p5.48xlarge", "cuda"), ("p3.2xlarge", "cuda12"), ("g6e.2xlarge", "cuda")):
            values = ["serve.gpus_per_node=1", f"serve.gpu_instance_type={name}"]
            _, container, _ = worker_of(chart, render(helm, chart, values)[1])
            assert container["image"].startswith(f"dtrain-{image}:"), (chart, name, container["image"])
            assert container["resources"]["limits"] == {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": 1}, container


def test_defaults_are_current_types():
    expected = {"maskrcnn": "g6e.48xlarge", "maskrcnn-optimized": "p5.48xlarge", "resnet50": "g6e.48xlarge"}
    for chart, key in INSTANCE_TYPES.items():
        value = yaml.safe_load((CHARTS / chart / "values.yaml").read_text(encoding="utf-8"))
        for part in key.split("."):
            value = value[part]
        assert value == expected.get(chart, ""), (chart, value)


if __name__ == "__main__":
    tools.main(globals())
