"""Tests what GitOps controllers need: renders with the same bytes each time, Secrets that a script creates, jobs that
are not resubmitted after they have finished, and charts as OCI artefacts."""

import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import kustomize
import tools
import validate
import yaml
from charts import ALL, CHARTS, JOBS, SERVERS, VARIANTS, objects_of, render, render_text, settings
from serving_pod import created_secrets, serving_secret, wait_for

sys.path.append(str(tools.ROOT / "tests"))
import ports

PACKED = (*ALL, "monitoring")  # the last one has no job

def test_renders_are_deterministic():
    """Two renderings of a chart have the same bytes, and all versions of Helm render the same objects."""
    for chart in ALL:
        for values in [[], *VARIANTS[chart]]:
            found = []
            for helm in tools.helms():
                text = render_text(helm, chart, values)
                assert text == render_text(helm, chart, values), (chart, values)
                found.append(sorted(objects_of(text), key=lambda one: (one["kind"], one["metadata"]["name"])))
            assert all(one == found[0] for one in found), (chart, values)
    for path in CHARTS.glob("*/templates/**/*"):
        if path.is_file():
            found = re.search(r"\b(gen(CA|SelfSigned\w+|SignedCert|PrivateKey)|rand\w+|uuidv4|now|bcrypt)\b", path.read_text())
            assert not found, f"{path}: {found[0]} differs with each rendering"


def names_of(folder, certificate):
    """Subject alternative names of a certificate that its CA signed."""
    for name, data in (("ca.crt", certificate["ca.crt"]), ("tls.crt", certificate["tls.crt"])):
        (folder / name).write_bytes(base64.b64decode(data))
    tools.check_run("openssl", "verify", "-purpose", "sslserver", "-CAfile", folder / "ca.crt", folder / "tls.crt")
    text = tools.check_run("openssl", "x509", "-in", folder / "tls.crt", "-noout", "-ext", "subjectAltName")
    return {word.strip() for word in text.splitlines()[1].split(",")}


def test_creates_secrets():
    """k8s/serving-secret.sh creates certificate and token once; --new replaces them."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        first = created_secrets(folder, "served", "team", "model.example.org")
        assert set(first) == {"served-tls", "served-token"} and set(first["served-token"]) == {"token"}
        assert names_of(folder, first["served-tls"]) == {"IP Address:127.0.0.1", *(f"DNS:{one}" for one in (
            "served", "served.team", "served.team.svc", "localhost", "model.example.org"))}
        assert len(base64.b64decode(first["served-token"]["token"])) == 48
        assert created_secrets(folder, "served", "team") == first
        second = created_secrets(folder, "--new", "served", "team")
        assert not [one for one in first if first[one] == second[one]]
    with tempfile.TemporaryDirectory() as folder:
        assert set(created_secrets(folder, "--token-only", "served")) == {"served-token"}
        for words in ([], ["Served"], ["served", "team", "a,DNS:b"], ["--what", "served"], ["served", "--server=x"]):
            refused = serving_secret(folder, *words)
            assert refused.returncode == 1 and "serving-secret.sh: " in refused.stderr, (words, refused)


def test_takes_over_secrets():
    """The certificate and token that version 0.2 of the chart stored in the release's Secret are kept."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name, "secrets")
        folder.mkdir()
        data = {key: base64.b64encode(key.encode()).decode() for key in ("htpasswd", "ca.crt", "tls.crt", "tls.key", "token")}
        (folder / "served.json").write_text(json.dumps({"data": data}))
        found = created_secrets(name, "served")
        assert found["served-tls"] == {key: data[key] for key in ("ca.crt", "tls.crt", "tls.key")}
        assert found["served-token"] == {"token": data["token"]}


def test_mounts_created_secrets():
    """The pods mount the Secrets of the script, an explicit Secret, or that of cert-manager."""
    for helm in tools.helms():
        for chart in SERVERS:
            for values, secret, issued in (([], "training-tls", False), (["nginx.tls_secret=own"], "own", False),
                                           (["nginx.issuer=Issuer/ours"], "training-tls", True)):
                objects = {one["kind"]: one for one in render(helm, chart, ["jupyter.enabled=true", *values])[1]}
                text = yaml.safe_dump(objects["Deployment"])
                assert f"name: {secret}\n" in text and "secretName: training-token\n" in text, (chart, values)
                assert set(objects["Secret"]["data"]) == {"htpasswd"}
                assert ("Certificate" in objects) == issued
                if issued:
                    spec = objects["Certificate"]["spec"]
                    assert spec["issuerRef"] == {"group": "cert-manager.io", "kind": "Issuer", "name": "ours"}
                    assert spec["secretName"] == secret and "training.kubeflow.svc" in spec["dnsNames"]


KUSTOMIZATION = """apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../overlays/{}]
components: [../../components/gitops]
"""
REPLACED = "Force=true,Replace=true"


def faults_of(objects):
    """Reasons why self-healing would submit a finished job again, or why a changed job would not be submitted again."""
    for one in objects:
        name = f"{one['kind']}/{one['metadata']['name']}"
        if "ttlSecondsAfterFinished" in json.dumps(one):
            yield f"{name} is deleted after it has finished"
        options = one["metadata"].get("annotations", {}).get("argocd.argoproj.io/sync-options")
        fixed = one["kind"] in ("Job", "MPIJob", "PyTorchJob", "TFJob", "TrainJob") or one.get("immutable")
        if fixed and options != REPLACED:
            yield f"{name} cannot be changed"
        elif not fixed and options:
            yield f"{name} is replaced"


def test_finished_jobs_stay():
    """The component gitops, with each overlay, and job.gitops of the charts: a job exists until it is removed from git."""
    if not shutil.which("kubectl"):
        tools.skip("there is no kubectl")
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for part in ("base", "base-job", "components", "overlays"):
            shutil.copytree(tools.K8S / part, root / part)
        overlays = sorted(path.parent.name for path in root.glob("overlays/*/kustomization.yaml"))
        for overlay in overlays:
            (root / "gitops" / overlay).mkdir(parents=True)
            (root / "gitops" / overlay / "kustomization.yaml").write_text(KUSTOMIZATION.format(overlay))
        rendered = kustomize.render(root / "gitops" / overlay for overlay in overlays)
        for overlay, objects in zip(overlays, rendered, strict=True):
            assert not list(faults_of(objects)), (overlay, list(faults_of(objects)))
            plain = list(yaml.safe_load_all((tools.K8S / "rendered" / f"{overlay}.yaml").read_text()))
            assert overlay == "tensorboard" or list(faults_of(plain)), f"{overlay}: the check finds nothing"
    for helm in tools.helms():
        for chart in (*JOBS, "pytorchjob", "coco-data"):
            for values in [[], *VARIANTS[chart]]:
                objects = render(helm, chart, [*values, "job.gitops=true"])[1]
                assert not list(faults_of(objects)), (chart, list(faults_of(objects)))


def test_applications():
    """The example Applications name an overlay and a chart that render without a cluster, and do not replace unchanged
    jobs at a sync."""
    schemas = validate.Schemas(tools.SCHEMAS)
    for path in (tools.K8S / "gitops").glob("application*.yaml"):
        application = yaml.safe_load(path.read_text())
        assert not list(validate.errors(application, schemas)), (path, list(validate.errors(application, schemas)))
        spec = application["spec"]
        assert spec["syncPolicy"]["automated"] == {"prune": True, "selfHeal": True}
        assert {"ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true"} <= set(spec["syncPolicy"]["syncOptions"])
        source = spec["source"]
        if "path" in source:
            objects = list(yaml.safe_load_all(tools.check_run("kubectl", "kustomize", tools.ROOT / source["path"])))
        else:
            text = yaml.safe_dump(source["helm"]["valuesObject"])
            command = (tools.helms()[-1], "template", source["helm"]["releaseName"], CHARTS / source["chart"], "-f", "-")
            objects = [one for one in yaml.safe_load_all(tools.check_run(*command, input=text)) if one]
            version = yaml.safe_load((CHARTS / source["chart"] / "Chart.yaml").read_text())["version"]
            assert source["targetRevision"] == version, path
        assert not list(faults_of(objects)), (path, list(faults_of(objects)))
        ignored = {(one["group"], one["kind"]) for one in spec["ignoreDifferences"]}
        jobs = {(one["apiVersion"].partition("/")[0], one["kind"]) for one in objects if one["kind"].endswith("Job")}
        assert jobs and jobs <= ignored, (path, jobs)


def program_of(package, folder):
    """A program of Debian's package of the same name, which is unpacked into a folder if it is not installed."""
    program = shutil.which(package)
    if not program:
        tools.run("apt-get", "download", "-qq", package, cwd=folder)
        packages = list(folder.glob(f"{package}_*.deb")) or tools.skip(f"there is no {package}")
        tools.check_run("dpkg", "-x", packages[0], folder / "package")
        program = folder / "package" / "usr" / "bin" / package
    return program


# Status of the conditions that hold, and of runPolicy.suspend.
HEALTH = [([], "false", "Progressing"), (["Created"], "false", "Progressing"), (["Created", "Running"], "nil", "Progressing"),
          (["Created", "Succeeded"], "false", "Healthy"), (["Created", "Failed"], "nil", "Degraded"),
          (["Created", "Suspended"], "true", "Suspended"), (["Created", "Succeeded"], "true", "Healthy")]


def test_health():
    """Argo CD's health checks map the conditions of operators."""
    checks = yaml.safe_load((tools.K8S / "gitops" / "health.yaml").read_text())["data"]
    assert [key.rpartition("_")[2] for key in checks] == ["MPIJob", "PyTorchJob", "TFJob"]
    with tempfile.TemporaryDirectory() as name:
        lua = program_of("lua5.4", pathlib.Path(name))
        for script in checks.values():
            for holding, suspend, expected in HEALTH:
                conditions = ", ".join(f'{{type = "{one}", status = "{one in holding and "True" or "False"}", message = "m"}}'
                                       for one in ("Created", "Running", "Suspended", "Succeeded", "Failed"))
                text = (f"obj = {{spec = {{runPolicy = {{suspend = {suspend}}}}}, status = {{conditions = {{{conditions}}}}}}}\n"
                        f"local function check()\n{script}\nend\nprint(check().status)\n")
                assert tools.check_run(lua, "-", input=text).strip() == expected, (holding, suspend)
            text = f"obj = {{spec = {{}}}}\nlocal function check()\n{script}\nend\nprint(check().status)\n"
            assert tools.check_run(lua, "-", input=text).strip() == "Progressing"


@contextlib.contextmanager
def registry(folder):
    """Debian's docker-registry on a free port of the loopback interface; its address."""
    # Not installed by a package: Debian's would start a registry that listens on the network.
    program = program_of("docker-registry", folder)
    address = f"127.0.0.1:{ports.free_port()}"
    configuration = {"version": 0.1, "storage": {"filesystem": {"rootdirectory": str(folder / "registry")}},
                     "http": {"addr": address}}
    (folder / "registry.yml").write_text(yaml.safe_dump(configuration))
    with (folder / "registry.log").open("wb") as log:
        server = subprocess.Popen([program, "serve", folder / "registry.yml"], stdout=log, stderr=log)
    try:
        wait_for("registry", lambda: urllib.request.urlopen(f"http://{address}/v2/").status == 200)
        yield address
    finally:
        server.terminate()
        server.wait()


def test_pushes_charts():
    """k8s/package-charts.sh writes the same bytes each time, and pushes charts that Helm installs from the registry."""
    script = tools.K8S / "package-charts.sh"
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for folder in ("one", "two"):
            tools.check_run(script, root / folder)
        packages = sorted(path.name for path in (root / "one").iterdir())
        assert len(packages) == len(PACKED) and all(path.endswith(".tgz") for path in packages), packages
        for package in packages:
            assert (root / "one" / package).read_bytes() == (root / "two" / package).read_bytes(), package
        for words in (["--push"], ["--what"], [root / "one", root / "two"]):
            assert tools.run(script, *words).returncode == 1, words
        for number, helm in enumerate(tools.helms()):
            (root / "bin").mkdir(exist_ok=True)
            (root / "bin" / "helm").unlink(missing_ok=True)
            (root / "bin" / "helm").symlink_to(helm)
            environment = {**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "HOME": name}
            work = root / f"helm-{number}"
            work.mkdir()
            with registry(work) as address:
                push = (script, "--push", f"{address}/team", "--plain-http", work / "packages")
                tools.check_run(*push, env=environment)
                for chart in ("maskrcnn", "mpijob", "maskrcnn-optimized-jupyter", "pv-fsx"):
                    text = tools.check_run(helm, "template", "training", f"oci://{address}/team/charts/{chart}",
                                           "--plain-http", *settings(chart, []), env=environment)
                    assert [one for one in yaml.safe_load_all(text) if one] == render(helm, chart)[1], chart
            refused = tools.run(*push, env=environment)
            assert refused.returncode == 4 and f"{address}/team rejected" in refused.stderr, refused


RECORDER = """#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
[ "$2" != describe-repositories ] || exit 254
[ "$2" != "$FAILING" ] || exit 1
"""


def test_pushes_charts_to_ecr():
    """Missing ECR repositories are created before a push; recorders replace Helm and the AWS CLI."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        (root / "bin").mkdir()
        for program in ("aws", "helm"):
            (root / "bin" / program).write_text(RECORDER)
            (root / "bin" / program).chmod(0o755)
        environment = {**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "CALLS": str(root / "calls"), "FAILING": ""}
        for place, folder in (("", "charts"), ("/team/x", "team/x/charts")):
            (root / "calls").write_text("")
            registry = f"123456789012.dkr.ecr.eu-west-1.amazonaws.com{place}"
            command = (tools.K8S / "package-charts.sh", "--push", f"oci://{registry}/", root / "out")
            tools.check_run(*command, env=environment)
            calls = (root / "calls").read_text().splitlines()
            at = calls.index(f"aws ecr create-repository --region eu-west-1 --repository-name {folder}/mpijob")
            assert re.fullmatch(rf"helm push .*/mpijob-[0-9.]+[.]tgz oci://{re.escape(registry)}/charts", calls[at + 1]), calls
            assert len([one for one in calls if one.startswith("helm push")]) == len(PACKED)
        refused = tools.run(*command, env={**environment, "FAILING": "create-repository"})
        assert refused.returncode == 4 and "could not be created" in refused.stderr, refused


if __name__ == "__main__":
    tools.main(globals())
