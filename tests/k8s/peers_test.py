"""Tests k8s/peers, jobs of other frameworks under our harness. manifests_test.py and charts_test.py validate and lint
the manifests; this test compares their commands with ours and runs them with k8s/benchmark."""

import gzip
import http.server
import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import tempfile
import threading

import jsonschema
import lint
import lint_job
import tools
import yaml

PEERS = tools.K8S / "peers"
MANIFESTS = sorted(PEERS.glob("*job-*.yaml"))


def flags_of(job, role):
    """tf_cnn_benchmarks' flags in a job, except for hosts, which differ."""
    [pod] = [pod for pod in job.pods if pod.role == role]
    return {flag for flag in pod.args if flag.startswith("--") and not re.match("--(ps|worker)_hosts", flag)}


def test_tfjob_flags_match_overlay():
    """The TFJob has the worker flags of k8s/overlays/tf-cnn-ps, except for a flag that tf_cnn_benchmarks dropped and
    the parameter device, which is the GPU in the original manifest."""
    jobs = [lint.Job(one, []) for path in (PEERS / "tfjob-ps.yaml", tools.K8S / "rendered/tf-cnn-ps.yaml")
            for one in lint.read(path) if one["kind"] in ("TFJob", "Job")]
    theirs, ours = flags_of(jobs[0], "training"), flags_of(jobs[1], "training")
    assert ours - theirs == {"--flush_stdout=true", "--local_parameter_device=cpu"}, ours - theirs
    assert theirs - ours == {"--local_parameter_device=gpu"}, theirs - ours


def test_images_and_sources_are_pinned():
    text = {path.name: path.read_text(encoding="utf-8") for path in PEERS.rglob("*.yaml")}
    for name, content in text.items():
        for url, rest in re.findall(r"https://github\.com/([\w/-]+)(.*(?:\n.*){2})", content):
            assert re.search(r"\b[0-9a-f]{40}\b", rest), f"{name}: {url} has no commit"
        for image in re.findall(r"\bimage: ([^\s{,}]+)", content):
            assert re.search(r":[\w.-]*\d[\w.-]*$", image), f"{name}: {image} has no version"
    readme = (PEERS / "README.md").read_text(encoding="utf-8")
    [chart] = set(re.findall(r"jupyterhub .*--version ([0-9.]+)", readme + text["jupyterhub.yaml"].replace("\n#", "")))
    assert chart in text["jupyterhub.yaml"].partition("\n")[0], chart
    assert len(set(re.findall(r"pipelines//\S+\?ref=([0-9a-f]{40})", readme))) == 1


# Stand-ins for the upstream kustomization: the objects that ours changes.
UPSTREAM = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: KIND.kubeflow.org}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: training-operator, namespace: kubeflow}
spec: {template: {spec: {containers: [{name: training-operator, image: a, command: [/manager]}]}}}
"""


def test_operator_does_not_own_mpijobs():
    """Training Operator does not replace MPI Operator's MPIJob CRD."""
    if not shutil.which("kubectl"):
        tools.skip("there is no kubectl")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "upstream").mkdir()
        files = {f"{kind}.yaml": UPSTREAM.replace("KIND", kind) for kind in ("mpijobs", "tfjobs", "pytorchjobs")}
        files |= {"deployment.yaml": DEPLOYMENT, "kustomization.yaml": f"resources: {[*files, 'deployment.yaml']}\n"}
        for file, content in files.items():
            (folder / "upstream" / file).write_text(content)
        text = (PEERS / "training-operator/kustomization.yaml").read_text(encoding="utf-8")
        text, count = re.subn(r"https://github\.com/kubeflow/trainer//\S+\?ref=[0-9a-f]{40}", "../upstream", text)
        assert count == 1
        (folder / "ours").mkdir()
        (folder / "ours/kustomization.yaml").write_text(text)
        objects = list(yaml.safe_load_all(tools.check_run("kubectl", "kustomize", folder / "ours")))
    names = sorted(one["metadata"]["name"] for one in objects)
    assert names == ["pytorchjobs.kubeflow.org", "tfjobs.kubeflow.org", "training-operator"], names
    [container] = objects[-1]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["--enable-scheme=pytorchjob", "--enable-scheme=tfjob"]
    # The operator controls exactly the kinds of these manifests.
    kinds = {one["kind"] for path in MANIFESTS for one in lint.read(path)} & set(lint_job.PEERS)
    assert {f"--enable-scheme={kind.lower()}" for kind in kinds} == set(container["args"])


def test_fargate_profile():
    path = tools.SCHEMAS / "eksctl.io_clusterconfig.v1alpha5.schema.json"
    if not path.is_file():
        tools.skip(f"there is no {path}")
    validator = jsonschema.Draft7Validator(json.loads(path.read_text(encoding="utf-8")))
    [config] = lint.read(PEERS / "fargate.yaml")
    assert not [error.message for error in validator.iter_errors(config)]
    [cluster] = lint.read(tools.K8S / "cluster/eksctl/cluster.yaml")
    assert all(config["metadata"][key] == cluster["metadata"][key] for key in ("name", "region"))
    config["fargateProfiles"][0]["selector"] = []
    assert list(validator.iter_errors(config))


def test_values_render():
    """The values of ResNet-50 render to a valid job without lint violations; the README's commands are accepted."""
    helm = tools.helms()[-1]
    if not tools.TRAINING_MODELS.is_dir() or not tools.SCHEMAS.is_dir():
        tools.skip("there is no kubeflow-training, or no schemas")
    shown = 0
    with tempfile.TemporaryDirectory() as folder:
        for line in re.sub(r"\\\n +", "", (PEERS / "README.md").read_text(encoding="utf-8")).splitlines():
            match = re.match(r"    helm template (.*?k8s/charts/\w+ .*?)(>\S+)?$", line)
            if match:
                shown += 1
                path = pathlib.Path(folder) / f"peer-{shown}.yaml"
                path.write_text(tools.check_run(helm, "template", *shlex.split(match[1]), cwd=tools.ROOT))
        assert shown == 3, shown
        # The script of mpijob's ranks checks their number.
        tools.check_manifests(sorted(pathlib.Path(folder).iterdir()), exceptions={"peer": "expect-ranks"})


def test_documents_name_existing_files():
    text = (PEERS / "README.md").read_text(encoding="utf-8")
    for name in re.findall(r"\b((?:k8s|docs|tests)/[-A-Za-z0-9_./]+)", text):
        assert (tools.ROOT / name.rstrip(".")).exists(), name
    for name in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text):
        assert (PEERS / name).exists(), name
    for path in PEERS.iterdir():
        assert path.name in text or path.name == "README.md", f"{path.name} is not mentioned"


class Cluster(http.server.BaseHTTPRequestHandler):
    """A mock API server for the requests of kubectl. Each request for a job advances its sequence of operator
    conditions by one step."""

    kinds = {"kubeflow.org/v1": {"pytorchjobs": "PyTorchJob", "tfjobs": "TFJob"}, "batch/v1": {"jobs": "Job"}}
    stories, looks = {}, {}

    def do_GET(self):
        path = self.path.partition("?")[0].strip("/").split("/")
        group = "/".join(path[1:3])
        answer = None
        if path == ["apis"]:
            versions = [{"groupVersion": one, "version": one.partition("/")[2]} for one in self.kinds]
            answer = {"kind": "APIGroupList", "groups": [
                {"name": one["groupVersion"].partition("/")[0], "versions": [one], "preferredVersion": one}
                for one in versions]}
        elif group in self.kinds and len(path) == 3:
            answer = {"kind": "APIResourceList", "groupVersion": group, "resources": [
                {"name": name, "kind": kind, "namespaced": True, "verbs": ["get"]}
                for name, kind in self.kinds[group].items()]}
        elif group in self.kinds:
            answer = self.job(group, *path[-2:])
        body = json.dumps(answer or {"kind": "Status", "status": "Failure", "code": 404}).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def job(self, group, plural, name):
        story = self.stories.get(name, [[]])
        look = self.looks[name] = self.looks.get(name, -1) + 1
        holds = story[min(look, len(story) - 1)]
        # Conditions that do not hold (any more) are False.
        types = dict.fromkeys(["Created", "Running", "Restarting", "Failed", *holds])
        return {"apiVersion": group, "kind": self.kinds[group][plural],
                "metadata": {"name": name, "namespace": "default",
                             "labels": {"app.kubernetes.io/component": "server"} if name.endswith("server") else {}},
                "status": {"conditions": [{"type": one, "status": str(one in holds)} for one in types]}}

    def log_message(self, *_):
        pass


STORIES = {  # experiment: manifest, job, the operator's conditions, result
    "static": ("k8s/peers/pytorchjob-static.yaml", "pytorch-dist-mnist-nccl",
               [["Created"], ["Created", "Running"], ["Created", "Restarting"], ["Created", "Succeeded"]], "succeeded"),
    "elastic": ("k8s/peers/pytorchjob-elastic.yaml", "elastic-example-imagenet",
                [["Created", "Running"], ["Created", "Failed"]], "failed"),
    "keras": ("k8s/peers/tfjob-keras.yaml", "keras-fashion-mnist",
              [["Created"], ["Created", "Running"], ["Created", "Succeeded"]], "succeeded"),
    "ps": ("k8s/peers/tfjob-ps.yaml", "tf-cnn-training", [["Created", "Running"], ["Created", "Succeeded"]], "succeeded"),
    # A job that succeeds, and a server that does not.
    "ours": ("k8s/rendered/tf-cnn-ps.yaml", "tf-cnn-ps-training", [[], ["SuccessCriteriaMet", "Complete"]], "succeeded"),
}
# Forwards requests about jobs to the real kubectl; nothing is created.
KUBECTL = """\
#!/bin/bash
case "$*" in
  *"-o custom-columns"*) exec "$REAL_KUBECTL" --server="$SERVER" "$@" ;;
  logs*) echo "$*" >>"$CALLS"; echo "total images/sec: 123.4" ;;
esac
"""


def test_harness_runs_peers():
    """An experiment ends exactly when the operator's conditions say so, as the real kubectl prints them."""
    kubectl = shutil.which("kubectl") or tools.skip("there is no kubectl")
    with tempfile.TemporaryDirectory() as name, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cluster) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        folder = pathlib.Path(name)
        for part in ("benchmark", "lib"):
            shutil.copytree(tools.K8S / part, folder / "k8s" / part)
        for table in tools.K8S.glob("*.csv"):
            shutil.copy(table, folder / "k8s")
        plan = "name = peers\nregion = us-west-2\ncluster = existing\nresult_path = bucket/results\n"
        for experiment, (manifest, job, story, _) in STORIES.items():
            # The policy beside a job has no conditions and is ignored.
            documents = (tools.ROOT / manifest).read_text(encoding="utf-8").split("\n---\n")
            (folder / f"{experiment}.yaml").write_text("\n---\n".join(one for one in documents if "Job\n" in one))
            plan += f"[experiment {experiment}]\nmanifest = {experiment}.yaml\ntimeout = 1\n"
            Cluster.stories[job] = story
        (folder / "plan").write_text(plan)
        for path, text in {"bin/kubectl": KUBECTL, "bin/aws": "#!/bin/sh\n", "k8s/data/save-results.sh": "#!/bin/sh\n"}.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text)
            (folder / path).chmod(0o755)
        environment = dict(os.environ, PATH=f"{folder / 'bin'}:{os.environ['PATH']}", HOME=name, CALLS=str(folder / "calls"),
                           REAL_KUBECTL=kubectl, SERVER=f"http://127.0.0.1:{server.server_address[1]}",
                           DTRAIN_POLL_SECONDS="0.1")
        environment.pop("KUBECONFIG", None)
        result = tools.run(folder / "k8s/benchmark/run.sh", folder / "plan", folder / "results", env=environment)
        server.shutdown()
        assert result.returncode == 3, result.stdout + result.stderr
        rows = dict(re.findall(r"^(\w+) +(\w+) +\d+  123\.4$", result.stdout, re.MULTILINE))
        assert rows == {experiment: story[3] for experiment, story in STORIES.items()}, result.stdout + result.stderr
        for experiment, (_, job, story, _) in STORIES.items():
            assert Cluster.looks[job] >= len(story) - 1, (experiment, Cluster.looks)
            label = "job-name" if experiment == "ours" else "training.kubeflow.org/job-name"
            assert f"--selector {label}={job} " in (folder / "calls").read_text(), experiment


def test_keras_script_reads_data():
    """The script of the Keras job reads the data set's files, compressed or not, and refuses others."""
    numpy = importlib.import_module("numpy") if importlib.util.find_spec("numpy") else tools.skip("there is no numpy")
    [script] = [one["data"]["train.py"] for one in lint.read(PEERS / "tfjob-keras.yaml") if one["kind"] == "ConfigMap"]
    scope = {"__name__": "train"}
    exec(compile(script, "train.py", "exec"), scope)
    with tempfile.TemporaryDirectory() as folder:
        head = b"\0\0\x08\x03" + b"".join(one.to_bytes(4, "big") for one in (2, 3, 4))
        path = pathlib.Path(folder, "train-images-idx3-ubyte")
        path.write_bytes(head + bytes(range(24)))
        pathlib.Path(folder, "packed.gz").write_bytes(gzip.compress(path.read_bytes()))
        for name in (path.name, "packed"):
            assert (scope["read"](folder, name) == numpy.arange(24).reshape(2, 3, 4)).all()
        for content, words in ((head + bytes(23), "23 values, expected 24"), (b"<html>", "not an IDX file")):
            path.write_bytes(content)
            try:
                scope["read"](folder, path.name)
                raise AssertionError(f"accepted {content[:6]}")
            except SystemExit as refused:
                assert words in str(refused), refused


def test_dtrain_accepts_its_flags():
    """dtrain-cnn-benchmarks accepts the flags of mnist-dtrain.yaml, whose batch and optimiser are the Keras script's."""
    values = yaml.safe_load((PEERS / "mnist-dtrain.yaml").read_text(encoding="utf-8"))["train"]
    script = (PEERS / "tfjob-keras.yaml").read_text(encoding="utf-8")
    assert '"--batch_size", type=int, default=128' in script and 'compile("adam"' in script
    assert {"--batch_size=128", "--optimizer=adam", "--init_learning_rate=0.001"} <= set(values["args"])
    program = tools.PROGRAMS / values["command"][0]
    if not program.exists():
        tools.skip(f"there is no {program.name} in {tools.PROGRAMS}")
    words = [word.replace("$OUTPUT_DIR", "/tmp/none").replace("$RANKS", "1") for word in values["args"]]
    printed = tools.check_run(program, *words, "--print_config")
    assert re.search(r"small_cnn", printed) and "fashion_mnist" in printed, printed


def test_plan_is_valid():
    run = tools.K8S / "benchmark/run.sh"
    listed = tools.check_run(run, "--check", PEERS / "plan.example").splitlines()[0].split(": ")[-1].split()
    plan = (PEERS / "plan.example").read_text(encoding="utf-8")
    assert [f"manifest = {path.relative_to(tools.ROOT)}" in plan for path in MANIFESTS] == [True] * 4
    assert len(listed) == 6, listed


if __name__ == "__main__":
    tools.main(globals())
