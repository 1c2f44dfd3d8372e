"""Tests the documents of k8s/: named files exist, their commands are accepted, all commands of the older documents have
a replacement, and the unpacked bundle works."""

import json
import os
import pathlib
import re
import shlex
import shutil
import tempfile

import tools
import yaml

DOCUMENTS = [tools.K8S / name for name in ("README.md", "instance-types.md", "source-documents.md", "troubleshooting.md")]
SEEDS = tools.DATA.parent / "seeds"
# Placeholders for the reader's values.
PLACEHOLDERS = re.compile(r"\.\.\.|\b(OVERLAY|CHART|IMAGE|CLASS|NAME|NS|POD|CLAIM|VOLUME)\b(?!=)")


def text_of(path):
    return path.read_text(encoding="utf-8")


def commands_of(path):
    """Command lines of a document."""
    return [line.strip() for line in text_of(path).splitlines() if re.match(r"    \S", line)]


def test_names_files_that_exist():
    for path in DOCUMENTS:
        text = text_of(path)
        for name in set(re.findall(r"\b((?:k8s|docs|tests|scripts)/[-A-Za-z0-9_./]+)", text)):
            name = name.rstrip(".")
            if not PLACEHOLDERS.search(name):
                assert (tools.ROOT / name).exists(), f"{path.name}: {name}"
        for name in set(re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text)):
            assert (tools.K8S / name).exists(), f"{path.name}: {name}"


def words_of_first_column(text, heading):
    """Quoted text in the first column of the first table below a heading."""
    table = re.search(r"\n(\|.*?)\n\n", text[text.index(heading):], re.DOTALL)[1]
    return {word for row in table.splitlines() for word in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_lists_overlays_charts_and_parameters():
    text = text_of(tools.K8S / "README.md")
    overlays = {path.parent.name for path in tools.K8S.glob("overlays/*/kustomization.yaml")}
    assert words_of_first_column(text, "\n## Overlays") == overlays
    charts = {path.parent.name for path in tools.K8S.glob("charts/*/Chart.yaml")} - {"dtrain-lib"}
    assert words_of_first_column(text, "\n## Charts") == charts
    parameters = set()
    for path in tools.K8S.glob("overlays/*/parameters.yaml"):
        parameters |= set(yaml.safe_load(text_of(path))["data"])
    # Parameters that are derived, or that belong to the structure of an overlay.
    parameters -= {"RANKS", "LAUNCHERS"}
    listed = words_of_first_column(text, "\n`k8s/set.sh OVERLAY` lists")
    assert listed == parameters, listed ^ parameters


def copy_of_the_tree(folder):
    shutil.copytree(tools.K8S, folder / "k8s", symlinks=True)
    return folder


def test_commands_are_accepted():
    """All commands that change an overlay succeed in a copy, and each overlay that a document applies renders."""
    if not shutil.which("kubectl"):
        tools.skip("there is no kubectl")
    changed = 0
    with tempfile.TemporaryDirectory() as folder:
        root = copy_of_the_tree(pathlib.Path(folder))
        for path in DOCUMENTS:
            for line in commands_of(path):
                for command in re.findall(r"k8s/(?:set|run)\.sh ([^&|;]+)", line):
                    command = command.partition("#")[0]
                    if PLACEHOLDERS.search(command) or "--help" in command:
                        continue
                    command = command.replace("$REGISTRY", "registry.example.org")
                    words = shlex.split(re.sub(r"\$\(id -.\)", "1", command.replace("$(id -un)", "me")))
                    result = tools.run(root / "k8s" / "set.sh", *words)
                    assert result.returncode == 0, f"{path.name}: {line}\n{result.stderr}"
                    changed += 1
        for overlay in {one for path in DOCUMENTS for line in commands_of(path)
                        for one in re.findall(r"apply -k (k8s/overlays/[a-z0-9-]+)", line)}:
            tools.check_run("kubectl", "kustomize", root / overlay)
    assert changed >= 10, changed


def test_charts_are_installed_as_shown():
    shown = 0
    for path in DOCUMENTS:
        for line in commands_of(path):
            match = re.match(r"helm install (\S+) (k8s/charts/\S+) (.*)", line)
            if match and not PLACEHOLDERS.search(match[3].replace("fs-...", "").replace("mount_name=...", "")):
                options = shlex.split(match[3].replace("$REGISTRY", "registry.example.org").replace("fs-...", "fs-0a1b").replace("mount_name=...", "mount_name=abc"))
                tools.check_run(tools.helms()[-1], "template", match[1], tools.ROOT / match[2], *options)
                shown += 1
    assert shown >= 3, shown


def test_walk_states_time_cost_and_check():
    """Each step of the walk from an empty account has a time, a cost, a check and commands; nothing is built, and training
    is counted in epochs."""
    text = text_of(tools.K8S / "README.md")
    text = text[text.index("\n## From an empty AWS account"):text.index("\n## Quick start")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if re.match(r"\| \d ", line)]
    assert len(rows) == 8 and all(len(row) == 4 and all(row) for row in rows), rows
    for number, part in enumerate(re.split(r"\n\*\*(?=\d )", text)[1:], 1):
        assert part.startswith(f"{number} ") and re.search(r"^    \S", part, re.MULTILINE), part[:80]
    assert number == len(rows)
    assert "build.sh" not in text and "num_batches" not in text and "num_epochs=90" in text
    values = yaml.safe_load(text_of(tools.K8S / "charts/maskrcnn/values.yaml"))["maskrcnn"]
    assert values["gpu_instance_type"] in text and f"={values['gpu_nodes']}\n" in text
    images, schedule = values["images_per_epoch"], json.loads(values["lr_schedule"])
    assert f"for {schedule[-1] * 8 // images} epochs" in text, schedule


# Prefixes of command lines in the older documents.
PROGRAMS = ("aws", "eksctl", "kubectl", "ks", "docker", "sudo", "git", "helm", "terraform", "htpasswd", "rm",
            "kustomize", "wget", "tar", "curl", "chmod", "ls", "ssh-add", "ssh", "nohup", "mkdir", "pushd", "popd",
            "SECRET", "WORKERS", "EXEC", "COMPONENT", "VERSION", "IMAGE", "NAMESPACE", "APP_NAME", "GPU")


def key_of(command):
    """Key of a command in the table: its words up to the first variable one."""
    words = command.split()
    if words[0].startswith("./") or "=" in words[0]:
        return words[0].rstrip(";")
    if words[0] in ("wget", "curl"):
        return words[-1].rpartition("/")[2]
    return " ".join(words[: 3 if words[0] in ("helm", "kubectl", "kustomize", "sudo") else 2])


def commands_of_seeds():
    for path in sorted(SEEDS.glob("*.txt")):
        for line in text_of(path).splitlines():
            line = line.strip().removeprefix("➜").strip()
            for command in re.split(r"; | \|\| ", line):
                word = re.split(r"[ =]", command)[0]
                if re.match(r"\./[\w/.-]+( |$)", command) or word in PROGRAMS and word != command:
                    yield path.name, command


def test_maps_every_command():
    if not SEEDS.is_dir():
        tools.skip(f"there is no {SEEDS}")
    table = re.sub(r"\s+", " ", text_of(tools.K8S / "source-documents.md").replace("\\|", "|"))
    found = list(commands_of_seeds())
    missing = [f"{name}: {command[:100]}" for name, command in found if key_of(command) not in table]
    assert len(found) > 80, len(found)
    assert not missing, "\n".join(missing)


# Problems that the older documents mention, as text that the troubleshooting page must contain.
TROUBLES = ["NCCL_SOCKET_IFNAME", "docker0", "--display-map", "ErrImagePull", "toomanyrequests",
            "failed to save outputs", "/etc/hosts: Permission denied", "scales from zero", "backoffLimit",
            "A worker is lost", "driver is older", "tf_device_min_sys_mem_mb", "-output-filename", "different networks",
            "belongs to one namespace"]


def test_covers_every_problem():
    text = re.sub(r"\s+", " ", text_of(tools.K8S / "troubleshooting.md"))
    for words in TROUBLES:
        assert words in text, words


def test_bundle():
    """The bundle is reproducible, and works where it is unpacked."""
    if not shutil.which("kubectl"):
        tools.skip("there is no kubectl")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        paths = [pathlib.Path(tools.check_run(tools.K8S / "bundle.sh", root / name).strip()) for name in ("one", "two")]
        assert paths[0].read_bytes() == paths[1].read_bytes()
        listed = tools.check_run("tar", "-tvzf", paths[0], env=dict(os.environ, TZ="UTC")).splitlines()
        assert all("1970-01-01 00:00" in line and " 0/0 " in line for line in listed), listed[:3]
        tools.check_run("tar", "-xzf", paths[0], "-C", root)
        [unpacked] = root.glob("dtrain-k8s-*/")
        assert f"{unpacked.name}.tar.gz" == paths[0].name
        tools.check_run(unpacked / "k8s" / "render.sh", "--check", "smoke", "mask-rcnn", "no-operator")
        tools.check_run(unpacked / "k8s" / "set.sh", "smoke", "WORKERS=3")
        plan = unpacked / "k8s/benchmark/plan.example"
        assert " USD for " in tools.check_run(unpacked / "k8s/benchmark/run.sh", "--check", plan), "no cost of the plan"
        assert "k8s/ec2/stack.sh create" in tools.run(unpacked / "k8s/ec2/stack.sh").stderr
        rendered = tools.check_run("kubectl", "kustomize", unpacked / "k8s" / "overlays" / "smoke")
        assert 'value: "3"' in rendered
        for path in (unpacked / "k8s").rglob("*"):
            assert not path.is_symlink() or path.exists(), f"{path} leads nowhere"
            assert os.access(path, os.X_OK) or path.suffix != ".sh" or path.parent != unpacked / "k8s", path
        files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
        assert not [name for name in files if re.search(r"\.(py|pyc|new|pem|key)$|id_rsa", name)], files
        if list(tools.TOOLS.glob("helm-*/helm")) or shutil.which("helm"):
            for helm in tools.helms():
                tools.check_run(helm, "template", "a", unpacked / "k8s" / "charts" / "maskrcnn")
    refused = tools.run(tools.K8S / "bundle.sh", "--what")
    assert refused.returncode == 1


if __name__ == "__main__":
    tools.main(globals())
