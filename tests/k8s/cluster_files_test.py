"""Tests k8s/cluster: files of eksctl and Karpenter with strict schemas and additional rules, the boot script of nodes
in a chroot, and the installation of components."""

import copy
import email
import json
import os
import pathlib
import re
import shutil
import tempfile

import jsonschema
import tools
import yaml
from instance_types import TYPES

CLUSTER = tools.K8S / "cluster"
EKSCTL = sorted((CLUSTER / "eksctl").glob("*.yaml"))


def eksctl_schema():
    path = tools.SCHEMAS / "eksctl.io_clusterconfig.v1alpha5.schema.json"
    if not path.is_file():
        tools.skip(f"there is no {path}")
    schema = json.loads(path.read_text(encoding="utf-8"))
    return jsonschema.Draft7Validator(schema)


def faults_of(config):
    """Yields problems that eksctl, EKS or a job would have."""
    names = [group["name"] for group in config["managedNodeGroups"]]
    if len(set(names)) != len(names):
        yield "two groups have the same name"
    addresses = config["vpc"].get("publicAccessCIDRs", [])
    if not addresses or any(address.endswith("/0") for address in addresses):
        yield "expected a restricted API endpoint"
    if not config["cloudWatch"]["clusterLogging"].get("logRetentionInDays"):
        yield "expected a retention of the logs"
    if len(config["availabilityZones"]) < 2:
        yield "the control plane needs at least two zones"
    for group in config["managedNodeGroups"]:
        name, kind = group["name"], group.get("instanceType", "")
        if not group.get("volumeEncrypted") or not group.get("disableIMDSv1"):
            yield f"{name}: expected encrypted volumes, and IMDSv1 disabled"
        if name == "system":
            continue
        if len(group.get("availabilityZones", [])) != 1 or "groupName" not in group.get("placement", {}):
            yield f"{name}: expected one zone and one placement group"
        if group["availabilityZones"][0] not in config["availabilityZones"]:
            yield f"{name}: its zone is not a zone of the cluster"
        if group.get("minSize") != 0 or group.get("desiredCapacity") != 0 or not group.get("propagateASGTags"):
            yield f"{name}: expected scaling from zero, with the autoscaler's tags"
        efa = kind in TYPES and TYPES[kind]["efa"] > 0
        if group.get("efaEnabled", False) != efa or not group.get("privateNetworking"):
            yield f"{name}: expected EFA if jobs on {kind} use it, and private networking"
        tags = [key for key in group.get("tags", {}) if "/node-template/resources/" in key]
        if len(tags) != (2 if efa else 0):
            yield f"{name}: expected tags for EFA devices and huge pages if jobs on {kind} use EFA"
        has_gpus = kind[0] in "pg"
        if has_gpus and kind not in TYPES:
            yield f"{name}: {kind} is not in k8s/instance-types.csv"
        if has_gpus != any(taint["key"] == "nvidia.com/gpu" for taint in group.get("taints", [])):
            yield f"{name}: expected the taint of GPU nodes"
        if not group.get("preBootstrapCommands") or not group.get("overrideBootstrapCommand"):
            yield f"{name}: expected the boot script"


def test_eksctl_files():
    schema = eksctl_schema()
    assert len(EKSCTL) == 2
    for path in EKSCTL:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert not [error.message for error in schema.iter_errors(config)], path
        assert not list(faults_of(config)), list(faults_of(config))
    wide = yaml.safe_load((CLUSTER / "eksctl" / "cluster.yaml").read_text(encoding="utf-8"))
    overlays = {yaml.safe_load(path.read_text(encoding="utf-8"))["data"].get("INSTANCE_TYPE")
                for path in tools.K8S.glob("overlays/*/parameters.yaml")} - {None}
    offered = {group.get("instanceType") for group in wide["managedNodeGroups"]}
    overlays -= {"p3.16xlarge"}  # retired by AWS: a group would fail
    assert overlays <= offered and "p3.16xlarge" not in offered, overlays ^ offered
    [pool] = [one for one in yaml.safe_load_all((CLUSTER / "karpenter.yaml").read_text(encoding="utf-8"))
              if one["kind"] == "NodePool"]
    [types] = [one["values"] for one in pool["spec"]["template"]["spec"]["requirements"]
               if one["key"] == "node.kubernetes.io/instance-type"]
    # Pods without a node selector have the image dtrain-cuda.
    assert not [name for name in types if TYPES[name]["image"] == "cuda12"], types
    assert overlays - {"p3dn.24xlarge"} <= set(types), types

    def breaks(change):
        broken = copy.deepcopy(wide)
        change(broken, {group["name"]: group for group in broken["managedNodeGroups"]})
        return list(schema.iter_errors(broken)) or list(faults_of(broken))

    assert not breaks(lambda config, groups: None)
    assert breaks(lambda config, groups: groups["p5"].update(efaEnable=True))
    assert breaks(lambda config, groups: groups["p5"].update(efaEnabled="yes"))
    assert breaks(lambda config, groups: groups["p5"].pop("efaEnabled"))
    assert breaks(lambda config, groups: groups["p5"].pop("tags"))
    assert breaks(lambda config, groups: groups["p3dn"].update(minSize=1))
    assert breaks(lambda config, groups: groups["g5"].pop("placement"))
    assert breaks(lambda config, groups: groups["g5"].update(availabilityZones=["eu-west-1a"]))
    assert breaks(lambda config, groups: groups["g6e"].update(instanceType="g6e.9xlarge"))
    assert breaks(lambda config, groups: groups["g6e"].update(efaEnabled=True))
    assert breaks(lambda config, groups: groups["cpu"].pop("preBootstrapCommands"))
    assert breaks(lambda config, groups: config["metadata"].pop("region"))
    assert breaks(lambda config, groups: config["vpc"].pop("publicAccessCIDRs"))
    assert breaks(lambda config, groups: config["vpc"].update(publicAccessCIDRs=["203.0.113.7/32", "0.0.0.0/0"]))
    assert breaks(lambda config, groups: config["cloudWatch"]["clusterLogging"].pop("logRetentionInDays"))


def user_data():
    """Yields name, script and NodeConfig of each user data."""
    for path in EKSCTL:
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["managedNodeGroups"]:
            if "preBootstrapCommands" in group:
                [script] = group["preBootstrapCommands"]
                yield group["name"], script, group["overrideBootstrapCommand"]
    for one in yaml.safe_load_all((CLUSTER / "karpenter.yaml").read_text(encoding="utf-8")):
        if one["kind"] == "EC2NodeClass":
            parts = email.message_from_string(one["spec"]["userData"]).get_payload()
            found = {part.get_content_type(): part.get_payload() for part in parts}
            assert set(found) == {"text/x-shellscript", "application/node.eks.aws"}, found
            yield "karpenter", found["text/x-shellscript"], found["application/node.eks.aws"]


def test_boot_scripts_are_equal():
    script = (CLUSTER / "node" / "tune.sh").read_text(encoding="utf-8")
    config = yaml.safe_load((CLUSTER / "node" / "config.yaml").read_text(encoding="utf-8"))
    found = list(user_data())
    assert len(found) == 10, [name for name, _, _ in found]
    for name, text, kubelet in found:
        assert text.strip() == script.strip(), name
        expected = copy.deepcopy(config)
        if name == "cpu":
            expected["spec"]["kubelet"]["config"]["topologyManagerPolicy"] = "single-numa-node"
        assert yaml.safe_load(kubelet) == expected, name


def bare_root(folder, gpu):
    """A root file system with a shell, four programs, and recorders in place of those that would change the machine."""
    root = pathlib.Path(folder)
    for part in ("bin", "sys/class/net/eth0/device", "sys/class/net/lo", "var", "tmp", "dev"):
        (root / part).mkdir(parents=True)
    programs = [shutil.which(name) for name in ("bash", "install", "ls", "head")]
    libraries = {line for program in programs for line in re.findall(r"(/\S+) \(0x", tools.check_run("ldd", program))}
    for path in [*programs, *libraries]:
        target = root / ("bin/" + os.path.basename(path) if path in programs else path.lstrip("/"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    recorder = '#!/bin/bash\necho "${0##*/} $*" >>/calls\n'
    answer = '[[ $* != *query-gpu* ]] || printf "877, 1530\\n877, 1530\\n"\n'
    names = ["ip", "logger", "sysctl"] + (["nvidia-smi"] if gpu else [])
    for name in names:
        (root / "bin" / name).write_text(recorder + (answer if name == "nvidia-smi" else ""), encoding="utf-8")
        (root / "bin" / name).chmod(0o755)
    if gpu:
        (root / "sys/class/infiniband/efa_0").mkdir(parents=True)
    return root


def test_user_data_in_chroot():
    if tools.run("unshare", "--map-root-user", "chroot", "/", "true").returncode != 0:
        tools.skip("there is no way to enter a root of one's own")
    scripts = {script for _, script, _ in user_data()}
    assert len({script.strip() for script in scripts}) == 1
    for gpu in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            root = bare_root(folder, gpu)
            (root / "tmp/part-001").write_text(scripts.copy().pop(), encoding="utf-8")
            enter = ["unshare", "--map-root-user", shutil.which("chroot"), root, "/bin/bash"]
            for script in ("/tmp/part-001", "/var/lib/cloud/scripts/per-boot/tune-node.sh"):
                result = tools.run(*enter, script, env={"PATH": "/bin"})
                assert result.returncode == 0 and not result.stderr, result.stderr
                calls = (root / "calls").read_text(encoding="utf-8")
                (root / "calls").unlink()
                assert "ip link set dev eth0 mtu 9001" in calls and "dev lo" not in calls, calls
                assert ("nvidia-smi --applications-clocks=877,1530" in calls) == gpu, calls
                assert ("nvidia-smi --persistence-mode=1" in calls) == gpu, calls
                assert ("sysctl --quiet --write vm.nr_hugepages=5128" in calls) == gpu, calls
            # No failure keeps a node from joining.
            for name in ("ip", "logger", "sysctl", "install"):
                (root / "bin" / name).unlink()
            assert tools.run(*enter, "/tmp/part-001", env={"PATH": "/bin"}).returncode == 0


def repository(folder, files):
    """Creates a git repository with one commit; returns the commit."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    environment = dict(os.environ, GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a",
                       GIT_COMMITTER_EMAIL="a@b", GIT_CONFIG_GLOBAL="/dev/null")
    for command in (["init", "-q"], ["config", "uploadpack.allowAnySHA1InWant", "true"], ["add", "."],
                    ["commit", "-qm", "a"]):
        tools.check_run("git", "-C", folder, *command, env=environment)
    return tools.check_run("git", "-C", folder, "rev-parse", "HEAD").strip()


OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"
RECORDER = r"""#!/bin/bash
echo "$*" >>"$FAKE/calls"
case $1 in
  kustomize) exec "$REAL_KUBECTL" "$@" ;;
  get) cat "$FAKE/get-${2//\//-}" 2>/dev/null || exit 0 ;;
  apply) cat "${@: -1}" >>"$FAKE/applied"; [ ! -f "$FAKE/refuse" ] ;;
  --request-timeout*) [ ! -f "$FAKE/silent" ] ;;
esac
"""


def installation(root):
    """Three components (a file, a kustomization and a chart) with a recorder as kubectl."""
    rows = []
    for name, path, files in (
            ("operator", "deploy/all.yaml", {"deploy/all.yaml": OBJECT.replace("NAME", "from-file")}),
            ("driver", "overlays/stable", {"overlays/stable/kustomization.yaml": "resources: [../../base]\n",
                                           "base/kustomization.yaml": "resources: [a.yaml]\n",
                                           "base/a.yaml": OBJECT.replace("NAME", "from-kustomization")}),
            ("efa-device-plugin", "stable/plugin",
             {"stable/plugin/Chart.yaml": "apiVersion: v2\nname: plugin\nversion: 1.0.0\n",
              "stable/plugin/templates/a.yaml": OBJECT.replace("NAME", "{{ .Release.Name }}-chart") +
              "data: {on: '{{ .Values.tolerations | toJson }}'}\n"})):
        commit = repository(root / name, files)
        rows.append(f"manifest {name} v1 2026-01-31 {root / name} {commit} {path} space/deployment/{name}")
    rows += ["chart other 1.0 2026-01-31 https://charts.test -", "tool helm 4.0 2026-01-31 https://tools.test -"]
    (root / "list").write_text("# what\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (root / "bin").mkdir()
    (root / "bin/kubectl").write_text(RECORDER, encoding="utf-8")
    (root / "bin/kubectl").chmod(0o755)
    (root / "bin/helm").symlink_to(tools.helms()[-1])
    environment = dict(os.environ, FAKE=str(root), REAL_KUBECTL=shutil.which("kubectl"),
                       PATH=f"{root / 'bin'}:{os.environ['PATH']}")
    return lambda *words: tools.run(CLUSTER / "install.sh", "--list", root / "list", *words, env=environment)


def assert_rows_are_data(root, install, text):
    """No field of a row becomes an option of git, helm or kubectl; an invalid row rejects the whole list."""
    (root / "calls").unlink()
    option = f"--upload-pack=touch${{IFS}}{root}/evil"
    for old, new in ((f" {root}/", f" {option};{root}/"), (r"[0-9a-f]{40}", option), (r"[0-9a-f]{40}", "main"),
                     ("stable/plugin", f"stable/--post-renderer={root}/evil.sh"), ("stable/plugin", "stable/../../plugin"),
                     ("space/", "--server=https://evil.test/"), ("deployment/", "--server=https://evil.test/"),
                     ("(deployment)/[a-z-]+", r"\1/--server=https://evil.test"), ("space/", "space/x/"),
                     ("2026-01-31", "--today"), ("manifest efa", "manifests efa"), ("chart other", "--chart other"),
                     ("efa-device-plugin v1 ", "efa-device-plugin\tv1 main\t")):
        wrong, count = re.subn(old, new, text)
        (root / "list").write_text(wrong, encoding="utf-8")
        result = install("operator")
        assert count and result.returncode == 1, (old, new, result)
        assert "expected manifest NAME VERSION DATE REPOSITORY COMMIT" in result.stderr and "\t" not in result.stderr, result
    assert not (root / "evil").exists() and not (root / "calls").exists()


def test_components_are_installed():
    if not shutil.which("kubectl") or not shutil.which("git"):
        tools.skip("there is no kubectl, or no git")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        install = installation(root)
        result = install()
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines() == [
            "operator v1: installed", "driver v1: installed", "efa-device-plugin v1: installed"], result.stdout
        applied = (root / "applied").read_text(encoding="utf-8")
        assert re.findall(r"from-file|from-kustomization|plugin-chart", applied) == [
            "from-file", "from-kustomization", "plugin-chart"], applied
        assert '[{"operator":"Exists"}]' in applied, "the plugin does not tolerate the taint of GPU nodes"
        calls = (root / "calls").read_text(encoding="utf-8")
        assert calls.count("apply --server-side --field-manager=dtrain-install --namespace space -f") == 3, calls
        # Second run: applies own components again, and leaves components of other tools unchanged.
        (root / "get-deployment-operator").write_text("operator:1 kubectl dtrain-install", encoding="utf-8")
        (root / "get-deployment-driver").write_text("driver:9 eks", encoding="utf-8")
        (root / "applied").unlink()
        result = install("operator", "driver")
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines() == [
            "operator v1: exists as operator:1, applied again",
            "driver: exists as driver:9, installed by another tool, not changed"], result.stdout
        assert "from-kustomization" not in (root / "applied").read_text(encoding="utf-8")
        assert install("nothing").returncode == 1
        (root / "refuse").touch()
        assert install("operator").returncode == 4
        (root / "silent").touch()
        assert install("operator").returncode == 4
        for name in ("refuse", "silent"):
            (root / name).unlink()
        text = (root / "list").read_text(encoding="utf-8")
        assert_rows_are_data(root, install, text)
        (root / "list").write_text(re.sub("(?m) |$", "\t", text), encoding="utf-8")
        assert install("operator").returncode == 0
        # A missing commit is neither replaced nor partially installed.
        (root / "applied").unlink()
        (root / "list").write_text(re.sub(r"[0-9a-f]{40}", "0" * 40, text), encoding="utf-8")
        result = install("operator")
        assert result.returncode == 5 and "cannot be fetched" in result.stderr, result
        assert not (root / "applied").exists()


def test_documents_name_existing_files():
    for path in (CLUSTER / "README.md", tools.K8S / "tools" / "README.md"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"\b((?:k8s|docs|tests)/[-A-Za-z0-9_./]+)", text):
            assert (tools.ROOT / name.rstrip(".")).exists(), f"{path}: {name}"
        for name in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text):
            assert (path.parent / name).exists(), f"{path}: {name}"
    rows = (CLUSTER / "README.md").read_text(encoding="utf-8")
    declared = (CLUSTER / "terraform" / "variables.tf").read_text(encoding="utf-8")
    variables = set(re.findall(r'variable "(\w+_enabled)"', declared))
    assert variables == set(re.findall(r"^\| `(\w+_enabled)`", rows, re.MULTILINE)), variables


def test_bundle_excludes_terraform_state():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copytree(tools.K8S, root / "k8s", symlinks=True)
        for name in ("CMakeLists.txt", "LICENSE"):
            shutil.copy(tools.ROOT / name, root)
        shutil.copytree(tools.ROOT / "examples/monitoring", root / "examples/monitoring")
        private = ("terraform.tfstate", "terraform.tfstate.backup", "my.tfvars", "backend.tf", ".terraform/providers/a")
        for name in private:
            path = root / "k8s/cluster/terraform" / name
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text("mine", encoding="utf-8")
        bundle = tools.check_run(root / "k8s/bundle.sh", root).strip()
        names = tools.check_run("tar", "-tzf", bundle)
        for name in ("versions.txt", "cluster/terraform/nodes.tf", "cluster/install.sh", "tools/install.sh"):
            assert f"k8s/{name}" in names, names
        assert not [name for name in private if f"/{name}" in names], names


if __name__ == "__main__":
    tools.main(globals())
