"""Tests the Helm charts of k8s/charts with each available Helm: rendered, validated, linted, packaged, compared with
the overlays, and with invalid values. gitops_test.py compares renderings; chart_scripts_test.py runs their commands."""

import json
import pathlib
import re
import tempfile

import tools
import yaml
from charts import (
    ALL, CHARTS, EXCEPTIONS, IGNORED, INSTANCE_TYPES, JOBS, SERVERS, VARIANTS, arguments, of_kind, pods, render, settings)
from instance_types import TYPES


def test_renders_valid_objects():
    if not tools.SCHEMAS.is_dir():
        tools.skip(f"there is no {tools.SCHEMAS}")
    with tempfile.TemporaryDirectory() as folder:
        for helm in tools.helms():
            files = []
            for chart in ALL:
                if chart == "pytorchjob" and not tools.TRAINING_MODELS.is_dir():
                    print(f"{chart} is not validated: kubeflow-training was not fetched")
                    continue
                for number, values in enumerate([[], *VARIANTS[chart]]):
                    text, objects = render(helm, chart, values)
                    path = pathlib.Path(folder) / f"{chart}-{number}.yaml"
                    path.write_text(text)
                    files.append(path)
                    kinds = {one["kind"] for one in objects}
                    volumes = kinds & {"PersistentVolume", "PersistentVolumeClaim", "StorageClass"}
                    assert bool(volumes) == chart.startswith("pv-"), (chart, kinds)
            tools.check_manifests(files, exceptions=EXCEPTIONS)


def test_lints_and_packages():
    for helm in tools.helms():
        for chart in ALL:
            with tempfile.TemporaryDirectory() as folder:
                tools.check_run(helm, "lint", "--strict", CHARTS / chart, *settings(chart, []))
                tools.check_run(helm, "package", CHARTS / chart, "--destination", folder)
                [package] = pathlib.Path(folder).glob("*.tgz")
                assert render(helm, chart, source=package)[1] == render(helm, chart)[1], chart


def test_chart_versions():
    [version] = re.findall(r"project\(dtrain VERSION ([0-9.]+)", (tools.ROOT / "CMakeLists.txt").read_text())
    for path in CHARTS.glob("*/Chart.yaml"):
        chart = yaml.safe_load(path.read_text())
        assert chart["version"] == chart["appVersion"] == version, path
        assert all(one["version"] == version for one in chart.get("dependencies", [])), path


def properties_of(schema, prefix=""):
    for name, field in schema.get("properties", {}).items():
        if "properties" in field:
            yield from properties_of(field, f"{prefix}{name}.")
        else:
            yield prefix + name


def names_of(values, prefix=""):
    for name, value in values.items():
        if value and isinstance(value, dict):
            yield from names_of(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def test_lists_every_value():
    """values.yaml and the schema have the same values, except for rarely used ones."""
    seldom = {"gpus", "steps_per_epoch", "gpu_memory_gb", *IGNORED}
    for path in CHARTS.glob("*/values.schema.json"):
        values = set(names_of(yaml.safe_load((path.parent / "values.yaml").read_text())))
        values = {name for name in values if path.parent.name == "dtrain-lib" or not name.startswith("job.")}
        listed = {name for name in properties_of(json.loads(path.read_text())) if name not in ("job", "global")}
        listed = {name for name in listed if name in values or name.rpartition(".")[2] not in seldom}
        assert values == listed, f"{path}: {values ^ listed}"


# Chart, value, and a part of the message.
REFUSED = [
    ("maskrcnn", "maskrcnn.gpu_node=2", "gpu_node"),
    ("maskrcnn", "maskrcnn.train_script=train.py", "use the chart mpijob for other programs"),
    ("maskrcnn", "maskrcnn.gpu_nodes=two", "gpu_nodes"),
    ("maskrcnn", "maskrcnn.gpu_nodes=0", "gpu_nodes"),
    ("maskrcnn", "maskrcnn.gpus=15", "gpu_nodes x gpus_per_node is 16"),
    ("maskrcnn", "maskrcnn.image=dtrain-cuda:latest", "latest"),
    ("maskrcnn", "maskrcnn.image=dtrain-cuda", "version or digest"),
    ("maskrcnn", "maskrcnn.backbone_norm=Frozen", "backbone_norm"),
    ("maskrcnn", "maskrcnn.tf_device_min_sys_mem_mb=50000", "the GPU's 44 GB"),
    ("maskrcnn", "maskrcnn.gpu_instance_type=", "set gpu_memory_gb"),
    *((chart, f"{key}=x9.large", f"{key}: unknown instance type x9.large: expected one of {' '.join(TYPES)}")
      for chart, key in INSTANCE_TYPES.items() if chart in JOBS),
    *((chart, f"{key}=p5.49xlarge", f"{key}: unknown instance type p5.49xlarge") for chart, key in INSTANCE_TYPES.items()),
    ("maskrcnn", "maskrcnn.gpus_per_node=9", "9 GPUs per node, but g6e.48xlarge has 8"),
    ("maskrcnn", "maskrcnn.gpus_per_node=all", "gpus_per_node"),
    ("maskrcnn", "job.efa=5", "job.efa is 5, but g6e.48xlarge has 4 EFA interfaces"),
    ("maskrcnn", "job.efa=all", "efa"),
    ("maskrcnn", "job.cpu=192", "job.cpu is 192, but pods on g6e.48xlarge have at most 191 CPUs"),
    ("maskrcnn", "job.memory=32Gi", "job.shm is 32Gi, which counts towards the memory: expected less than job.memory, 32Gi"),
    ("pytorchjob", "job.shm=2Ti", "job.shm is 2Ti, which counts towards the memory"),
    ("maskrcnn-jupyter", "serve.gpu_instance_type=g5.xlarge", "job.cpu is 4, but pods on g5.xlarge have at most 3 CPUs"),
    ("maskrcnn-jupyter", "jupyter.port=8443", "port"),
    ("maskrcnn-jupyter", "serve.images=/data", "images"),
    ("maskrcnn-jupyter", "serve.data_pvc=coco", "serve.data_pvc needs serve.images"),
    ("maskrcnn-jupyter", "nginx.ssl_certificate=/etc/other.crt", "ssl_certificate"),
    ("maskrcnn-optimized", "maskrcnn.working_dir=/src", "working_dir is /src"),
    ("maskrcnn", "maskrcnn.data_dir=/data", "data_dir"),
    ("maskrcnn", "global.shared_pvc=", "shared_pvc"),
    ("maskrcnn", "job.user_id=0", "user_id"),
    ("maskrcnn", "job.memory=64GB", "memory"),
    ("maskrcnn", "job.cpus=4", "cpus"),
    ("maskrcnn-optimized", "maskrcnn.lr_schedule=1x", "lr_schedule"),
    ("resnet50", "resnet50.model=vgg16", "model"),
    ("resnet50", "global.shared_pvc=", "synthetic"),
    ("mpijob", "pvc[0].name=data", "mount_path"),
    ("mpijob", "git.repo_url=https://example.org/a.git", "git.image"),
    ("mpijob", "git.commit=main", "commit"),
    ("mpijob", "mpirun.env[0].name=A-B", "name"),
    ("pytorchjob", "image=", "image is empty"),
    ("pytorchjob", "image=torch", "version or digest"),
    ("pytorchjob", "train.command=null", "train.command is empty"),
    ("pytorchjob", "framework=accelerate", "framework"),
    ("pytorchjob", "resources.nproc_per_node=all", "nproc_per_node"),
    ("pytorchjob", "elastic_policy.max_replicas=1", "resources.nnodes is 2, expected min_replicas, 0, to max_replicas, 1"),
    ("pytorchjob", "elastic_policy.rdzv_backend=mpi", "rdzv_backend"),
    ("pytorchjob", "git.repo_url=https://example.org/a.git", "git.image"),
    ("coco-data", "image=", "curl and unzip"),
    ("coco-data", "coco_url=s3://bucket", "coco_url"),
    ("pv-fsx", "mount_name=", "MountName"),
    ("pv-fsx", "region=", "dns_name or region"),
    ("pv-fsx", "fs_id=fsx", "fs_id"),
    ("pv-efs", "fs_id=", "fs_id is empty"),
    ("maskrcnn-jupyter", "nginx.htpasswd=", "nginx.htpasswd is empty"),
    ("maskrcnn-jupyter", "nginx.htpasswd=swordfish", "nginx.htpasswd is not a password hash"),
    ("maskrcnn-jupyter", "nginx.htpasswd=tensorboard:swordfish", "htpasswd"),
    ("maskrcnn-jupyter", "nginx.user=a:b", "user"),
    ("maskrcnn-jupyter", "global.source_cidr=", "global.source_cidr is empty"),
    ("maskrcnn-jupyter", "global.source_cidr=203.0.113.7", "expected a CIDR"),
    ("maskrcnn-jupyter", "global.source_cidr=203.0.113.256/32", "expected a CIDR"),
    ("maskrcnn-jupyter", "global.log_dir=", "global.log_dir is empty"),
    ("maskrcnn-jupyter", "global.log_dir=/fsx/first", "log_dir"),
    ("maskrcnn-jupyter", "jupyter.token=short", "token"),
    ("maskrcnn-jupyter", "nginx.issuer=public", "issuer"),
    ("maskrcnn-jupyter", "nginx.host_names={model.example.org}", "name the hosts to k8s/serving-secret.sh"),
    ("maskrcnn", "maskrcnn.log_dir=../../etc", "log_dir"),
    ("maskrcnn", "maskrcnn.data_dir=a/../../etc", "data_dir"),
    ("maskrcnn", "maskrcnn.backbone_weights=a/..", "backbone_weights"),
    ("maskrcnn", "global.shared_fs=..", "shared_fs"),
    ("maskrcnn-optimized", "maskrcnn.log_dir=a/./b", "log_dir"),
    ("maskrcnn-jupyter", "global.log_dir=../../etc", "log_dir"),
    ("resnet50", "resnet50.log_dir=..", "log_dir"),
    ("mpijob", "pvc[0].mount_path=/../etc", "mount_path"),
    ("coco-data", "pvc.data_path=../etc", "data_path"),
    ("coco-data", "archives[0]=zips/../../a.zip", "archives"),
    ("coco-data", "archives[0]=zips/...zip", "archives"),
    ("coco-data", "archives[0]=zips/[a-b]/#1.zip", "archives"),
    ("maskrcnn-optimized-jupyter", "nginx.image=nginx:latest", "latest"),
    ("maskrcnn-optimized-jupyter", "htpasswd=x", "htpasswd"),
]


def test_rejects_invalid_values():
    for helm in tools.helms():
        for chart, value, phrase in REFUSED:
            result = tools.run(helm, "template", "a", CHARTS / chart, *settings(chart, [value]))
            assert result.returncode != 0, f"{chart} takes {value}"
            assert any(phrase in line for line in result.stderr.splitlines()), (chart, value, result.stderr)
            assert "swordfish" not in result.stderr, f"{chart}: a password is in the message"
        for name, phrase in (("a.b", "part of host names"), ("9a", "part of host names"), ("a" * 53, "63 are allowed")):
            values = ["--set", "maskrcnn.gpu_nodes=1000"]
            result = tools.run(helm, "template", name, CHARTS / "maskrcnn", *values)
            assert result.returncode != 0 and phrase in result.stderr, (name, result.stderr)


def test_pods_match_base():
    """Pods of charts equal the overlays' except for command, sizes and volumes."""
    base = of_kind(yaml.safe_load_all((tools.K8S / "rendered" / "smoke.yaml").read_text()), "MPIJob")
    for chart in JOBS:
        job = of_kind(render(tools.helms()[0], chart)[1], "MPIJob")
        for part in ("mpiImplementation", "sshAuthMountPath", "launcherCreationPolicy", "runPolicy"):
            assert job["spec"][part] == base["spec"][part], (chart, part)
        for role, template in pods(job).items():
            expected = pods(base)[role]
            assert template["metadata"]["annotations"] == expected["metadata"]["annotations"], (chart, role)
            ours, theirs = template["spec"], expected["spec"]
            added = {"nodeSelector", "tolerations"}
            assert ours.keys() - added == theirs.keys() - added, (chart, role, ours.keys() ^ theirs.keys())
            for part in theirs.keys() - added - {"containers", "volumes"}:
                assert ours[part] == theirs[part], (chart, role, part)
            [ours], [theirs] = ours["containers"], theirs["containers"]
            theirs = {part: value for part, value in theirs.items() if value != []}  # a list for patches
            assert ours.keys() == theirs.keys(), (chart, role)
            for part in theirs.keys() - {"args", "image", "env", "resources", "volumeMounts"}:
                assert ours[part] == theirs[part], (chart, role, part)
            missing = {one["name"] for one in theirs["env"]} - {one["name"] for one in ours["env"]}
            assert not missing, (chart, role, missing)
            assert [one for one in ours["volumeMounts"] if one in theirs["volumeMounts"]] == theirs["volumeMounts"]


def parts_of(job):
    """Parts of a launcher's command: mpirun's arguments, the program, and its arguments as a set."""
    words = arguments(job)
    [at] = [number for number, word in enumerate(words) if word.startswith("dtrain-") and word != "dtrain-mpirun"]
    return words[:at], words[at], sorted(words[at + 1:])


def test_commands_match_overlays():
    none, schedule = "maskrcnn.tf_device_min_sys_mem_mb=0", "[(16\\,0.1)\\,(20\\,0.01)\\,(24\\,None)]"
    cases = {
        "maskrcnn": ("mask-rcnn", [none]),
        "maskrcnn-optimized": ("mask-rcnn-optimized", [none, f"maskrcnn.lr_epoch_schedule={schedule}"]),
        "resnet50": ("resnet50-fsx", []),
    }
    for chart, (overlay, values) in cases.items():
        theirs = of_kind(yaml.safe_load_all((tools.K8S / "rendered" / f"{overlay}.yaml").read_text()), "MPIJob")
        ours = of_kind(render(tools.helms()[0], chart, values, release=overlay)[1], "MPIJob")
        # The ResNet-50 overlays bind ranks and forward variables, like the manifests that they replace.
        first = 1 if chart == "resnet50" else 0
        assert parts_of(ours)[first:] == parts_of(theirs)[first:], f"{parts_of(ours)}\n{parts_of(theirs)}"
        assert ours["spec"]["slotsPerWorker"] == theirs["spec"]["slotsPerWorker"], chart


def test_follows_the_number_of_gpus():
    for helm in tools.helms():
        job = of_kind(render(helm, "maskrcnn", ["maskrcnn.gpu_nodes=3", "maskrcnn.gpus_per_node=4"])[1], "MPIJob")
        assert arguments(job)[:3] == ["dtrain-mpirun", "-np", "12"] and "--expect_ranks=12" in arguments(job)
        assert job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 3 and job["spec"]["slotsPerWorker"] == 4
        [worker] = pods(job)["Worker"]["spec"]["containers"]
        assert worker["resources"]["limits"]["nvidia.com/gpu"] == 4


def test_reserves_gpu_memory():
    """The reserve of TF_DEVICE_MIN_SYS_MEMORY_IN_MB becomes a memory fraction: 1 - 2560 / (16 x 1024)."""
    helm = tools.helms()[0]
    values = ["maskrcnn.gpu_instance_type=p3.16xlarge", "maskrcnn.tf_device_min_sys_mem_mb=2560"]
    assert "--gpu_memory_frac_for_testing=0.8438" in arguments(of_kind(render(helm, "maskrcnn", values)[1], "MPIJob"))
    values = ["maskrcnn.gpu_instance_type=", "maskrcnn.gpu_memory_gb=64"]
    assert "--gpu_memory_frac_for_testing=0.9375" in arguments(of_kind(render(helm, "maskrcnn", values)[1], "MPIJob"))
    none = arguments(of_kind(render(helm, "maskrcnn", ["maskrcnn.gpus_per_node=0"])[1], "MPIJob"))
    assert not [word for word in none if "memory_frac" in word]


def test_pytorchjobs_are_static_or_elastic():
    for helm in tools.helms():
        job = of_kind(render(helm, "pytorchjob", ["resources.nnodes=3"])[1], "PyTorchJob")["spec"]
        replicas = {role: one["replicas"] for role, one in job["pytorchReplicaSpecs"].items()}
        assert replicas == {"Master": 1, "Worker": 2} and "elasticPolicy" not in job and "nprocPerNode" not in job
        values = ["resources.nnodes=3", "elastic_policy.min_replicas=2", "elastic_policy.max_replicas=4",
                  "resources.nproc_per_node=8"]
        job = of_kind(render(helm, "pytorchjob", values)[1], "PyTorchJob")["spec"]
        assert {role: one["replicas"] for role, one in job["pytorchReplicaSpecs"].items()} == {"Worker": 3}
        assert job["elasticPolicy"] == {"rdzvBackend": "c10d", "rdzvId": "training", "rdzvPort": 44000,
                                        "minReplicas": 2, "maxReplicas": 4}
        assert job["nprocPerNode"] == "8"


def test_notes_name_commands():
    """Notes contain commands for the installed objects. Helm 3 prints them only with a cluster."""
    helm = tools.helms()[-1]
    if " version.BuildInfo{Version:\"v3" in " " + tools.check_run(helm, "version"):
        tools.skip("there is no Helm 4")
    shown = {"coco-data": "kubectl logs -f -n work job/first", "pytorchjob": "kubectl logs -f -n work first-master-0",
             "pv-fsx": "kubectl get pvc pv-fsx -n work", "pv-efs": "kubectl get pvc pv-efs -n work",
             **{chart: "kubectl port-forward -n work service/first 8443:443" for chart in SERVERS}}
    for chart in ALL:
        options = ["--dry-run=client", "--namespace", "work", *settings(chart, [])]
        text = tools.check_run(helm, "install", "first", CHARTS / chart, *options)
        notes = text[text.index("\nNOTES:"):]
        assert shown.get(chart, "kubectl logs -f -n work job/first-launcher") in notes, (chart, notes)


def test_volumes_outlive_releases():
    for helm in tools.helms():
        for chart in ("pv-fsx", "pv-efs"):
            for one in render(helm, chart)[1]:
                assert one["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep", (chart, one["kind"])
            volume = of_kind(render(helm, chart)[1], "PersistentVolume")
            claim = of_kind(render(helm, chart)[1], "PersistentVolumeClaim")
            assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
            assert volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"]
            assert claim["spec"]["volumeName"] == volume["metadata"]["name"]


if __name__ == "__main__":
    tools.main(globals())
