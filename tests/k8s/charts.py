"""Renders the Helm charts of k8s/charts with test values, and reads the rendered objects."""

import re

import tools
import yaml

CHARTS = tools.K8S / "charts"
JOBS = ("maskrcnn", "maskrcnn-optimized", "resnet50", "mpijob")
SERVERS = ("maskrcnn-jupyter", "maskrcnn-optimized-jupyter")
HASH = "$2y$05$" + "a" * 53
# Required values without a default.
NEEDED = {
    "coco-data": ["image=tools:1.0"],
    "pv-fsx": ["fs_id=fs-0a1b", "mount_name=abcdef", "region=us-west-2"],
    "pv-efs": ["fs_id=fs-0a1b"],
    "pytorchjob": ["image=torch:2.0", "train.command={torchrun,train.py}"],
    **{chart: ["global.source_cidr=203.0.113.7/32", "global.log_dir=first", f"nginx.htpasswd={HASH}"]
       for chart in SERVERS},
}
ALL = (*JOBS, *NEEDED)
# Values of the older charts without effect.
IGNORED = {"name", "train_script", "working_dir", "horovod_log_level", "port", "target_port", "upstream_port",
           "ssl_certificate", "ssl_certificate_key"}
# The value of each chart with GPUs that is an instance type.
INSTANCE_TYPES = {
    **{chart: "maskrcnn.gpu_instance_type" for chart in ("maskrcnn", "maskrcnn-optimized")},
    "resnet50": "resnet50.gpu_instance_type", "mpijob": "resources.gpu_instance_type",
    "pytorchjob": "resources.node_type", **{chart: "serve.gpu_instance_type" for chart in SERVERS},
}
# Values that cover the branches of each chart.
VARIANTS = {
    "maskrcnn": [
        ["maskrcnn.gpus_per_node=0", "maskrcnn.gpu_instance_type=", "job.cpu=4"],
        ["maskrcnn.data_fs=efs", "maskrcnn.log_dir=second", "global.namespace=kubeflow", "global.registry=me/x"],
        ["job.efa=4", "maskrcnn.gpu_instance_type=p4d.24xlarge", "job.queue=training", "job.suspend=true"],
        ["maskrcnn.steps_per_epoch=7500", "maskrcnn.gpus=16", "maskrcnn.horovod_autotune=1", "maskrcnn.base_lr=0.02"],
    ],
    "maskrcnn-optimized": [["maskrcnn.gpu_instance_type=p3.16xlarge", "maskrcnn.tf_device_min_sys_mem_mb=2560",
                            "maskrcnn.batch_size_per_gpu=2", "maskrcnn.gpu_nodes=4"]],
    "resnet50": [
        ["resnet50.synthetic=true", "global.shared_pvc=", "resnet50.gpus_per_node=0"],
        ["resnet50.num_epochs=90", "resnet50.data_pvc=imagenet", "resnet50.engine_args={--keep_best=top_1_accuracy}"],
    ],
    "mpijob": [
        ["resources.gpus_per_node=0", "pvc[0].name=data", "pvc[0].mount_path=/data", "pvc[0].read_only=true",
         "pvc[1].name=pv-efs", "pvc[1].mount_path=/efs", "pre_script={set -x}", "post_script={echo done}"],
        ["git.repo_url=https://example.org/a.git", "git.branch=main", "git.commit=0a1b2c3d", "git.image=git:2.0"],
    ],
    "pytorchjob": [
        ["elastic_policy.min_replicas=1", "elastic_policy.max_replicas=3", "resources.nproc_per_node=2"],
        ["resources.nnodes=1", "resources.limits.nvidia\\.com/gpu=8", "resources.node_type=p5.48xlarge",
         "tolerations[0].key=team", "job.queue=training", "job.suspend=true"],
        ["git.repo_url=https://example.org/a.git", "git.image=git:2.0", "pvc[0].name=data", "pvc[0].mount_path=/data",
         "pvc[0].read_only=true", "pvc[1].name=pv-efs", "pvc[1].mount_path=/efs", "train.env[0].name=A",
         "train.env[0].value=b"],
    ],
    "coco-data": [["pvc.name=pv-efs", "pvc.mount_path=/efs"]],
    "pv-fsx": [["dns_name=fs-0a1b.fsx.cn-north-1.amazonaws.com.cn", "namespace=kubeflow", "create_storage_class=false"]],
    "pv-efs": [["claim_storage=10Gi", "volume_name=other"]],
    "maskrcnn-jupyter": [
        ["serve.gpus_per_node=1", "serve.gpu_instance_type=g6e.2xlarge", "global.source_cidr=2001:db8::/32"],
        ["nginx.issuer=ClusterIssuer/public", "nginx.host_names={model.example.org}", "jupyter.enabled=true"],
        ["nginx.tls_secret=certificate", "serve.images=data/coco2017/val2017",
         "serve.annotations=data/coco2017/annotations/instances_val2017.json"],
        ["serve.images=val2017", "serve.data_pvc=coco"],
    ],
    "maskrcnn-optimized-jupyter": [["jupyter.enabled=true", "jupyter.token=0123456789abcdef", "global.shared_fs=efs",
                                    "serve.extra_args={--top=3}"]],
}
# Lint rules that do not apply to a chart.
EXCEPTIONS = {
    "mpijob": "expect-ranks",  # any program: the rank script checks the number
    "coco-data": "entry-point",  # not an image of dtrain
    **{chart: "network-policy" for chart in SERVERS},  # servers: serving_test.py checks their ports
}


def settings(chart, values):
    return [word for value in NEEDED.get(chart, []) + values for word in ("--set", value)]


def render_text(helm, chart, values=(), release="training", source=None):
    return tools.check_run(helm, "template", release, source or CHARTS / chart, *settings(chart, list(values)))


def objects_of(text):
    return [one for one in yaml.safe_load_all(text) if one]


def render(helm, chart, values=(), release="training", source=None):
    """Text and objects of an installation."""
    text = render_text(helm, chart, values, release, source)
    return text, objects_of(text)


def of_kind(objects, kind):
    [found] = [one for one in objects if one["kind"] == kind]
    return found


def pods(job):
    """The pod templates of an MPIJob by role."""
    return {role: spec["template"] for role, spec in job["spec"]["mpiReplicaSpecs"].items()}


def arguments(job):
    """Command line of the launcher, with variables expanded."""
    [container] = pods(job)["Launcher"]["spec"]["containers"]
    values = {one["name"]: one.get("value", "pod") for one in container["env"]}
    return [re.sub(r"\$\((\w+)\)", lambda match: values[match[1]], word) for word in container["args"]]


def script_of(objects, name):
    return of_kind(objects, "ConfigMap")["data"][name]
