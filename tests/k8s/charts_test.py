"""The Helm charts of k8s/charts, by each Helm that is there: rendered, validated, linted, packaged; compared with the
overlays; given values that cannot be right; and what they run is run."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socketserver
import subprocess
import tempfile
import threading
import zipfile

import tools
import yaml

CHARTS = tools.K8S / "charts"
JOBS = ("maskrcnn", "maskrcnn-optimized", "resnet50", "mpijob")
SERVERS = ("maskrcnn-jupyter", "maskrcnn-optimized-jupyter")
HASH = "$2y$05$" + "a" * 53
# What has no default, because nobody can guess it.
NEEDED = {
    "coco-data": ["image=tools:1.0"],
    "pv-fsx": ["fs_id=fs-0a1b", "mount_name=abcdef", "region=us-west-2"],
    "pv-efs": ["fs_id=fs-0a1b"],
    "pytorchjob": ["image=torch:2.0", "train.command={torchrun,train.py}"],
    # The certificate is another one each time, unless it is given.
    **{chart: ["global.source_cidr=203.0.113.7/32", "global.log_dir=first", f"nginx.htpasswd={HASH}",
               "nginx.tls_secret=certificate"] for chart in SERVERS},
}
ALL = (*JOBS, *NEEDED)
# Values that take each chart through its branches.
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
        ["resources.nnodes=1", "resources.limits.nvidia\\.com/gpu=8", "resources.node_type=p5.48xlarge", "job.efa=32",
         "tolerations[0].key=team", "job.queue=training", "job.suspend=true"],
        ["git.repo_url=https://example.org/a.git", "git.image=git:2.0", "pvc[0].name=data", "pvc[0].mount_path=/data",
         "pvc[0].read_only=true", "pvc[1].name=pv-efs", "pvc[1].mount_path=/efs", "train.env[0].name=A",
         "train.env[0].value=b"],
    ],
    "coco-data": [["pvc.name=pv-efs", "pvc.mount_path=/efs"]],
    "pv-fsx": [["dns_name=fs-0a1b.fsx.cn-north-1.amazonaws.com.cn", "namespace=kubeflow", "create_storage_class=false"]],
    "pv-efs": [["claim_storage=10Gi", "volume_name=other"]],
    "maskrcnn-jupyter": [["serve.gpus_per_node=1", "serve.gpu_instance_type=g5.xlarge", "global.source_cidr=2001:db8::/32"]],
    "maskrcnn-optimized-jupyter": [["jupyter.enabled=true", "jupyter.token=0123456789abcdef", "global.shared_fs=efs",
                                    "serve.extra_args={--top=3}"]],
}
# Rules of the linter that a chart has a reason not to follow.
EXCEPTIONS = {
    "mpijob": "expect-ranks",  # programs of all kinds: the script that the ranks run compares the number
    "coco-data": "entry-point",  # its image is none of the engine's
    **{chart: "network-policy" for chart in SERVERS},  # they serve others: serving_test.py looks which ports
}


def settings(chart, values):
    return [word for value in NEEDED.get(chart, []) + values for word in ("--set", value)]


def render(helm, chart, values=(), release="training", source=None):
    """The objects that an installation would make."""
    text = tools.check_run(helm, "template", release, source or CHARTS / chart, *settings(chart, list(values)))
    return text, [one for one in yaml.safe_load_all(text) if one]


def of_kind(objects, kind):
    [found] = [one for one in objects if one["kind"] == kind]
    return found


def pods(job):
    """The pod templates of an MPIJob by role."""
    return {role: spec["template"] for role, spec in job["spec"]["mpiReplicaSpecs"].items()}


def arguments(job):
    """What the launcher runs, with the variables filled in, and what its program is given."""
    [container] = pods(job)["Launcher"]["spec"]["containers"]
    values = {one["name"]: one.get("value", "pod") for one in container["env"]}
    return [re.sub(r"\$\((\w+)\)", lambda match: values[match[1]], word) for word in container["args"]]


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


def test_agrees_between_helms():
    helms = tools.helms()
    for chart in ALL:
        for values in [[], *VARIANTS[chart]]:
            first = render(helms[0], chart, values)[1]
            for helm in helms[1:]:
                other = render(helm, chart, values)[1]
                key = lambda one: (one["kind"], one["metadata"]["name"])
                assert sorted(first, key=key) == sorted(other, key=key), (chart, values)


def test_lints_and_packages():
    for helm in tools.helms():
        for chart in ALL:
            with tempfile.TemporaryDirectory() as folder:
                tools.check_run(helm, "lint", "--strict", CHARTS / chart, *settings(chart, []))
                tools.check_run(helm, "package", CHARTS / chart, "--destination", folder)
                [package] = pathlib.Path(folder).glob("*.tgz")
                assert render(helm, chart, source=package)[1] == render(helm, chart)[1], chart


def test_has_versions_of_the_project():
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
    """values.yaml and the schema name the same values, but for those that are seldom set."""
    seldom = {"gpus", "steps_per_epoch", "gpu_memory_gb"}
    for path in CHARTS.glob("*/values.schema.json"):
        values = set(names_of(yaml.safe_load((path.parent / "values.yaml").read_text())))
        values = {name for name in values if path.parent.name == "dtrain-lib" or not name.startswith("job.")}
        listed = {name for name in properties_of(json.loads(path.read_text())) if name not in ("job", "global")}
        listed = {name for name in listed if name.rpartition(".")[2] not in seldom}
        assert values == listed, f"{path}: {values ^ listed}"


# Chart, value, and what the message has to name.
REFUSED = [
    ("maskrcnn", "maskrcnn.gpu_node=2", "gpu_node"),
    ("maskrcnn", "maskrcnn.train_script=train.py", "train_script"),
    ("maskrcnn", "maskrcnn.gpu_nodes=two", "gpu_nodes"),
    ("maskrcnn", "maskrcnn.gpu_nodes=0", "gpu_nodes"),
    ("maskrcnn", "maskrcnn.gpus=15", "gpu_nodes x gpus_per_node are 16"),
    ("maskrcnn", "maskrcnn.image=dtrain-cuda:latest", "latest"),
    ("maskrcnn", "maskrcnn.image=dtrain-cuda", "version or digest"),
    ("maskrcnn", "maskrcnn.backbone_norm=Frozen", "backbone_norm"),
    ("maskrcnn", "maskrcnn.tf_device_min_sys_mem_mb=40000", "32 GB of the GPU"),
    ("maskrcnn", "maskrcnn.gpu_instance_type=x9.large", "set gpu_memory_gb"),
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
    ("maskrcnn-jupyter", "nginx.htpasswd=swordfish", "nginx.htpasswd is no hash"),
    ("maskrcnn-jupyter", "nginx.htpasswd=tensorboard:swordfish", "htpasswd"),
    ("maskrcnn-jupyter", "nginx.user=a:b", "user"),
    ("maskrcnn-jupyter", "global.source_cidr=", "global.source_cidr is empty"),
    ("maskrcnn-jupyter", "global.source_cidr=203.0.113.7", "expected addresses as a CIDR"),
    ("maskrcnn-jupyter", "global.source_cidr=203.0.113.256/32", "expected addresses as a CIDR"),
    ("maskrcnn-jupyter", "global.log_dir=", "global.log_dir is empty"),
    ("maskrcnn-jupyter", "global.log_dir=/fsx/first", "log_dir"),
    ("maskrcnn-jupyter", "jupyter.token=short", "token"),
    ("maskrcnn-optimized-jupyter", "nginx.image=nginx:latest", "latest"),
    ("maskrcnn-optimized-jupyter", "htpasswd=x", "htpasswd"),
]


def test_refuses_what_cannot_be_right():
    for helm in tools.helms():
        for chart, value, phrase in REFUSED:
            result = tools.run(helm, "template", "a", CHARTS / chart, *settings(chart, [value]))
            assert result.returncode != 0, f"{chart} takes {value}"
            assert any(phrase in line for line in result.stderr.splitlines()), (chart, value, result.stderr)
            assert "swordfish" not in result.stderr, f"{chart}: a password is in the message"
        for name, phrase in (("a.b", "name of hosts"), ("9a", "name of hosts"), ("a" * 53, "63 are allowed")):
            values = ["--set", "maskrcnn.gpu_nodes=1000"]
            result = tools.run(helm, "template", name, CHARTS / "maskrcnn", *values)
            assert result.returncode != 0 and phrase in result.stderr, (name, result.stderr)


def test_has_the_shape_of_the_base():
    """Pods of charts are those of the overlays but for the command, sizes and volumes."""
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
            assert ours.keys() - added == theirs.keys(), (chart, role, ours.keys() ^ theirs.keys())
            for part in theirs.keys() - {"containers", "volumes"}:
                assert ours[part] == theirs[part], (chart, role, part)
            [ours], [theirs] = ours["containers"], theirs["containers"]
            assert ours.keys() == theirs.keys(), (chart, role)
            for part in theirs.keys() - {"args", "image", "env", "resources", "volumeMounts"}:
                assert ours[part] == theirs[part], (chart, role, part)
            missing = {one["name"] for one in theirs["env"]} - {one["name"] for one in ours["env"]}
            assert not missing, (chart, role, missing)
            assert [one for one in ours["volumeMounts"] if one in theirs["volumeMounts"]] == theirs["volumeMounts"]


def parts_of(job):
    """What a launcher runs: mpirun's arguments, the program, and its arguments without the order in which they stand."""
    words = arguments(job)
    [at] = [number for number, word in enumerate(words) if word.startswith("dtrain-") and word != "dtrain-mpirun"]
    return words[:at], words[at], sorted(words[at + 1:])


def test_trains_what_the_overlays_train():
    none, schedule = "maskrcnn.tf_device_min_sys_mem_mb=0", "[(16\\,0.1)\\,(20\\,0.01)\\,(24\\,None)]"
    cases = {
        "maskrcnn": ("mask-rcnn", [none]),
        "maskrcnn-optimized": ("mask-rcnn-optimized", [none, f"maskrcnn.lr_epoch_schedule={schedule}"]),
        "resnet50": ("resnet50-fsx", []),
    }
    for chart, (overlay, values) in cases.items():
        theirs = of_kind(yaml.safe_load_all((tools.K8S / "rendered" / f"{overlay}.yaml").read_text()), "MPIJob")
        ours = of_kind(render(tools.helms()[0], chart, values, release=overlay)[1], "MPIJob")
        # The overlays of ResNet-50 bind ranks and hand variables on, as the manifests did from which they were made.
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


def test_reserves_memory_of_devices():
    """The reserve of TensorFlow's variable is a share of the GPU: 1 - 2560 / (16 x 1024)."""
    helm = tools.helms()[0]
    values = ["maskrcnn.gpu_instance_type=p3.16xlarge", "maskrcnn.tf_device_min_sys_mem_mb=2560"]
    assert "--gpu_memory_frac_for_testing=0.8438" in arguments(of_kind(render(helm, "maskrcnn", values)[1], "MPIJob"))
    values = ["maskrcnn.gpu_instance_type=x9.large", "maskrcnn.gpu_memory_gb=64"]
    assert "--gpu_memory_frac_for_testing=0.9375" in arguments(of_kind(render(helm, "maskrcnn", values)[1], "MPIJob"))
    none = arguments(of_kind(render(helm, "maskrcnn", ["maskrcnn.gpus_per_node=0"])[1], "MPIJob"))
    assert not [word for word in none if "memory_frac" in word]


def test_commands_are_served():
    """The programs take the charts' flags and keys: all that they miss is the data."""
    if not (tools.PROGRAMS / "dtrain-mask-rcnn").exists():
        tools.skip(f"there are no programs in {tools.PROGRAMS}")
    for chart in ("maskrcnn", "maskrcnn-optimized", "resnet50"):
        values = ["maskrcnn.gpus_per_node=0", "maskrcnn.tf_enable_auto_mixed_precision=0"]
        values = ["resnet50.gpus_per_node=0"] if chart == "resnet50" else values
        words = arguments(of_kind(render(tools.helms()[0], chart, values)[1], "MPIJob"))
        at = max(number for number, word in enumerate(words) if word.startswith("dtrain-"))
        with tempfile.TemporaryDirectory() as folder:
            flags = [word.replace("/fsx/", f"{folder}/out/").replace("/data/", f"{folder}/none/")
                     for word in words[at + 1:] if not word.startswith("--expect_ranks")]
            result = tools.run(tools.PROGRAMS / words[at], *flags, cwd=folder)
        assert result.returncode == 2, (chart, result.returncode, result.stderr)


def script_of(objects, name):
    return of_kind(objects, "ConfigMap")["data"][name]


def test_scripts_do_not_change_under_a_job():
    for helm in tools.helms():
        assert of_kind(render(helm, "mpijob")[1], "ConfigMap")["immutable"] is True


def test_script_of_ranks():
    """pre_script and post_script run around the command, whose exit code counts, and a request to stop reaches it."""
    helm = tools.helms()[0]
    with tempfile.TemporaryDirectory() as folder:
        values = ["pre_script={cd " + folder + ",echo before >log}", "train.command={sh}",
                  "train.args={-c,'echo \"$WORD\" >>log; exit 75'}", "post_script={echo after >>log}"]
        text = script_of(render(helm, "mpijob", values)[1], "train.sh")
        of_job = dict(os.environ, WORD="within", OMPI_COMM_WORLD_SIZE="16", RANKS="16")
        assert tools.run("bash", "-c", text, env=of_job).returncode == 75, text
        assert (pathlib.Path(folder) / "log").read_text() == "before\nwithin\nafter\n"

        loop = "while :; do sleep 0.05; done"
        values = ["train.command={sh}", f"train.args={{-c,'trap \"exit 75\" USR1; echo ready; {loop}'}}",
                  "post_script={echo after}"]
        text = script_of(render(helm, "mpijob", values)[1], "train.sh")
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": of_job}
        with subprocess.Popen(["bash", "-c", text], text=True, start_new_session=True, **options) as ranks:
            assert ranks.stdout.readline() == "ready\n"
            os.killpg(ranks.pid, signal.SIGUSR1)  # as mpirun does
            assert ranks.stdout.readline() == "after\n"
        assert ranks.returncode == 75

        alone = tools.run("bash", "-c", text, env=dict(of_job, OMPI_COMM_WORLD_SIZE="1"))
        assert alone.returncode == 1 and "expected 16 ranks, found 1" in alone.stderr, alone


def node_of(objects, role="Master"):
    [container] = of_kind(objects, "PyTorchJob")["spec"]["pytorchReplicaSpecs"][role]["template"]["spec"]["containers"]
    return container


def test_script_of_nodes():
    """As that of ranks; a request to stop, which reaches the script alone, is handed on, and it waits for the program. One
    that comes before the program has started is not lost."""
    helm = tools.helms()[0]
    with tempfile.TemporaryDirectory() as folder:
        loop = "trap \"exit 75\" TERM; echo ready; while :; do sleep 0.05; done"
        for before, command, stop, code in (("echo before", "echo \"$WORD\"; exit 75", False, 75),
                                            ("echo before", loop, True, 75),
                                            ("kill -TERM $$,echo before,echo ready", "exec sleep 100", False, 143)):
            values = [f"pre_script={{{before}}}", "train.command={sh}", f"train.args={{-c,'{command}'}}",
                      "post_script={echo after}", "pvc[0].name=a", f"pvc[0].mount_path={folder}"]
            objects = render(helm, "pytorchjob", values)[1]
            environment = {one["name"]: one["value"] for one in node_of(objects)["env"]}
            assert environment["OUTPUT_DIR"] == f"{folder}/training"
            text = script_of(objects, "train.sh")
            # Without a buffer, of which communicate() would not see what readline() has read ahead.
            with subprocess.Popen(["bash", "-c", text], bufsize=0, stdout=subprocess.PIPE, start_new_session=True,
                                  env=dict(os.environ, WORD="ready", **environment)) as node:
                try:
                    assert [node.stdout.readline() for _ in range(2)] == [b"before\n", b"ready\n"], text
                    if stop:
                        node.send_signal(signal.SIGTERM)  # as a kubelet does
                    assert node.communicate(timeout=60)[0] == b"after\n"
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(node.pid, signal.SIGKILL)
            assert node.returncode == code and pathlib.Path(environment["OUTPUT_DIR"]).is_dir()


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


def test_clones_a_repository():
    helm = tools.helms()[0]
    with tempfile.TemporaryDirectory() as folder:
        git = functools.partial(tools.check_run, "git", "-c", "user.name=a", "-c", "user.email=a@b", "-C")
        origin = pathlib.Path(folder) / "origin"
        tools.check_run("git", "init", "--quiet", "-b", "main", origin)
        commits = []
        for word in ("first", "second"):
            (origin / "word").write_text(word)
            git(origin, "add", "word")
            git(origin, "commit", "--quiet", "-m", word)
            commits.append(git(origin, "rev-parse", "HEAD").strip())
        for commit, expected in (("", "second"), (commits[0], "first")):
            values = [f"git.repo_url=file://{origin}", "git.branch=main", f"git.commit={commit}", "git.image=git:2.0"]
            worker = pods(of_kind(render(helm, "mpijob", values)[1], "MPIJob"))["Worker"]["spec"]
            [clone] = worker["initContainers"]
            environment = {one["name"]: one["value"] for one in clone["env"]}
            script = clone["args"][0].replace("/source/", f"{folder}/source{expected}/")
            tools.check_run(*clone["command"], script, env=dict(os.environ, **environment))
            assert (pathlib.Path(folder) / f"source{expected}" / "repository" / "word").read_text() == expected


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, counts what is asked for, and cuts the first answer off."""

    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        if len(self.asked) == 1:
            content = (pathlib.Path(self.directory) / self.path[1:]).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
            return
        super().do_GET()

    def log_message(self, *_):
        pass


def test_fetches_coco():
    """The script of coco-data on a server that breaks off once, and once more on what is complete."""
    for tool in ("curl", "unzip"):
        if not shutil.which(tool):
            tools.skip(f"there is no {tool}")
    with tempfile.TemporaryDirectory() as folder:
        origin, target = pathlib.Path(folder) / "origin", pathlib.Path(folder) / "fsx"
        for name in ("zips/train2017.zip", "zips/val2017.zip", "annotations/annotations_trainval2017.zip"):
            (origin / name).parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(origin / name, "w") as archive:
                archive.writestr(f"{pathlib.Path(name).stem}/a.jpg", b"pixels" * 1000)
        for name in ("ImageNet-R50-AlignPadding.npz", "ImageNet-R101-AlignPadding.npz"):
            (origin / name).write_bytes(name.encode())
        Server.asked.clear()
        handler = functools.partial(Server, directory=str(origin))
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_address[1]}"
            values = [f"coco_url={url}", f"weights_url={url}", f"pvc.mount_path={target}"]
            objects = render(tools.helms()[0], "coco-data", values)[1]
            [container] = of_kind(objects, "Job")["spec"]["template"]["spec"]["containers"]
            environment = dict(os.environ, **{one["name"]: one["value"] for one in container["env"]})
            script = script_of(objects, "coco-data.sh")
            codes = [tools.run("sh", "-c", script, env=environment).returncode for _ in range(3)]
            count = len(Server.asked)
            server.shutdown()
        assert codes[-2:] == [0, 0], codes
        assert count <= 8, "what is complete is fetched again"
        data = target / "data" / "coco2017"
        assert (data / "train2017" / "a.jpg").read_bytes() == b"pixels" * 1000
        assert (data / "pretrained-models" / "ImageNet-R101-AlignPadding.npz").exists()


def test_notes_say_how_to_follow():
    """Notes name commands for what was installed. Helm 3 shows them only where there is a cluster."""
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
