"""Attacks on the Helm charts of k8s/charts: values that try to inject keys of a manifest, arguments or programs. Each
is rejected with a line that names it, or arrives as the same string in the chart's usual objects. Uses each available
Helm, because Helm 3 and 4 validate schemas with different libraries."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile

import tools
import yaml
from charts import CHARTS, HASH, NEEDED, of_kind, pods, script_of, settings

INJECTION = "a:1\n              securityContext: {privileged: true}\n              command: [sh]"
HOSTILE = ["a b", "", "$(reboot)", "`id`", "; rm -rf /", "'\"", "--x=\n- injected", "# c", "- y", "{{ .Release.Name }}",
           "{{ fail `x` }}", "!!python/object:os.system", "*alias", "&anchor", "null", "true", "1e3", "0x1f",
           "\r\nkey: x", "\u2028key: x", "\ttab", "\u00e9\u2713", "\x1b[2J\x07", "--", "%h", "a: b", "}, {", "|"]
TEXT = "".join(HOSTILE)


def nested(path, value):
    """{"a": {"b": value}} for "a.b"."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


# Chart, key, value, and a part of the message.
REFUSED = [
    # Injected manifest keys through line breaks.
    ("maskrcnn", "maskrcnn.image", INJECTION, "is not an image or registry name"),
    ("maskrcnn", "maskrcnn.image", "dtrain cuda:1", "is not an image or registry name"),
    ("maskrcnn", "maskrcnn.image", "dtrain$(reboot):1", "is not an image or registry name"),
    ("maskrcnn", "maskrcnn.image", "{{ .Values.job }}:1", "is not an image or registry name"),
    ("maskrcnn", "maskrcnn.image", "-it:1", "is not an image or registry name"),
    ("mpijob", "global.registry", "me\n  hostNetwork: true", "is not an image or registry name"),
    ("mpijob", "git", {"repo_url": "https://example.org/a", "image": INJECTION}, "is not an image or registry name"),
    ("mpijob", "git", {"repo_url": "https://example.org/a", "image": "git"}, "version or digest"),
    ("pytorchjob", "image", INJECTION, "is not an image or registry name"),
    ("coco-data", "image", INJECTION, "is not an image or registry name"),
    ("maskrcnn-jupyter", "nginx.image", INJECTION, "is not an image or registry name"),
    ("pv-fsx", "dns_name", "a.b\n  nfs: {server: evil}", "dns_name"),
    ("pv-fsx", "region", "us\n  nfs: {server: evil}", "region"),
    ("pv-efs", "fs_id", "fs-0a\n  nfs: {server: evil}", "fs_id"),
    ("resnet50", "resnet50.log_dir", "a\n- b", "log_dir"),
    ("resnet50", "resnet50.data_dir", "caf\u00e9", "data_dir"),
    ("maskrcnn", "job.user_name", "a\nroot", "user_name"),
    ("maskrcnn", "job.memory", "1Gi\n  hostPID: true", "memory"),
    ("maskrcnn", "maskrcnn.gpu_instance_type", "p3.x\n- y", "gpu_instance_type"),
    ("maskrcnn-jupyter", "global.source_cidr", "203.0.113.7/32\n", "source_cidr"),
    ("maskrcnn-jupyter", "nginx.host_names", ["a\nDNS:evil"], "host_names"),
    ("maskrcnn-jupyter", "nginx.htpasswd", f"{HASH}\nroot:{HASH}", "nginx.htpasswd is not a password hash"),
    ("maskrcnn-jupyter", "nginx.user", "a\nroot", "user"),
    ("maskrcnn-jupyter", "jupyter.token", "0123456789abcdef\nx", "token"),
    # Strings that would become an option or another argument.
    ("mpijob", "git", {"repo_url": "--upload-pack=touch x", "image": "git:2.0"}, "repo_url"),
    ("mpijob", "git", {"repo_url": "https://example.org/a", "image": "git:2.0", "branch": "\n--x"}, "branch"),
    ("coco-data", "coco_url", "http://a -o /etc/passwd", "coco_url"),
    ("coco-data", "coco_url", "file:///etc/passwd", "coco_url"),
    ("coco-data", "archives", ["a.zip -K /x.zip"], "archives"),
    ("coco-data", "weights", ["../../etc/passwd"], "weights"),
    ("maskrcnn", "maskrcnn.extra_config", "TRAIN.X=1 --load /etc/x; reboot", "is not KEY=VALUE"),
    # Numbers.
    ("maskrcnn", "maskrcnn.gpu_nodes", 1e30, "gpu_nodes"),
    ("maskrcnn", "maskrcnn.gpu_nodes", 9223372036854775807, "gpu_nodes"),
    ("maskrcnn", "maskrcnn.gpu_nodes", -1, "gpu_nodes"),
    ("maskrcnn", "maskrcnn.gpu_nodes", 2.5, "gpu_nodes"),
    ("maskrcnn", "maskrcnn.gpu_nodes", "2", "gpu_nodes"),
    ("maskrcnn", "maskrcnn.base_lr", -0.1, "base_lr"),
    ("maskrcnn", "maskrcnn.backoff_limit", 1e12, "backoff_limit"),
    ("maskrcnn", "job.cpu", "9" * 100, "cpu"),
    ("maskrcnn", "job.active_deadline_seconds", 1e18, "active_deadline_seconds"),
    ("resnet50", "resnet50.num_batches", 1e19, "num_batches"),
    ("pytorchjob", "resources.limits", {"nvidia.com/gpu": -8}, "gpu"),
    ("pytorchjob", "resources.limits", {"nvidia.com/gpu": "8; x"}, "gpu"),
    ("pytorchjob", "resources.limits", {"a: 1\n  hostNetwork": 1}, "limits|propertyname"),
    # Wrong types, and null: a removed key would become 0, the user root.
    ("maskrcnn", "maskrcnn.data_train", ["a"], "data_train"),
    ("maskrcnn", "maskrcnn.extra_args", "--x", "extra_args"),
    ("maskrcnn", "maskrcnn.log_dir", {"a": 1}, "log_dir"),
    ("maskrcnn", "maskrcnn.gpu_nodes", None, "gpu_nodes"),
    ("maskrcnn", "job.user_id", None, "user_id"),
    ("maskrcnn", "job.memory", None, "memory"),
    ("maskrcnn", "maskrcnn", None, "maskrcnn"),
    ("pytorchjob", "resources.nnodes", None, "nnodes"),
    ("maskrcnn-jupyter", "nginx", {"user": None}, "user"),
    # Unknown keys.
    ("maskrcnn", "hostNetwork", True, "hostNetwork"),
    ("maskrcnn", "job.securityContext", {"privileged": True}, "securityContext"),
    ("maskrcnn", "global.hostPID", True, "hostPID"),
    ("mpijob", "pvc", [{"name": "a", "mount_path": "/a", "hostPath": {"path": "/"}}], "hostPath"),
    ("mpijob", "mpirun.env", [{"name": "A", "value": "b", "valueFrom": {"secretKeyRef": {}}}], "valueFrom"),
    ("pytorchjob", "tolerations", [{"key": "a", "image": "b"}], "image"),
    # Duplicates, and reserved names.
    ("mpijob", "mpirun.env", [{"name": "RANKS", "value": "1"}], "RANKS"),
    ("mpijob", "mpirun.env", [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}], "A is set twice"),
    ("pytorchjob", "train.env", [{"name": "OUTPUT_DIR", "value": "/"}], "OUTPUT_DIR"),
    ("mpijob", "pvc", [{"name": "a", "mount_path": "/a"}, {"name": "b", "mount_path": "/a"}], "mount_path /a"),
    ("mpijob", "pvc", [{"name": "a", "mount_path": "/etc/dtrain/job"}], "mount_path /etc/dtrain/job"),
    ("maskrcnn", "global.shared_fs", "data", "global.shared_fs"),
    ("maskrcnn-jupyter", "global.shared_fs", "etc", "global.shared_fs"),
]
# Release and namespace names.
NAMES = [
    (["A"], "name"), (["a.b"], "name"), (["a b"], "name"), (["caf\u00e9"], "name"), (["a\nkind: x"], "name"),
    (["a" * 60], "name"), (["$(reboot)"], "name"),
    (["a", "--namespace", "x\nhostNetwork: true"], "namespace"), (["a", "--namespace", "../kube-system"], "namespace"),
]
# Values files.
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)) + "maskrcnn: {extra_args: *a11}\n"
FILES = [
    ("aliases of aliases", BOMB, "alias|converting|memory"),
    ("brackets", "[" * 20000, "depth|nest|yaml|converting|parse"),
    ("a program of YAML", "maskrcnn: {image: !!python/object/apply:os.system [reboot]}\n", "image"),
    ("bytes", b"\x00\xff\xfe\x80maskrcnn", "yaml|control|utf|parse"),
    ("a list", "- a\n", "unmarshal|cannot"),
]


def template(helm, chart, values, *words, needed=True):
    """Runs helm with a values file, a memory limit and a timeout."""
    with tempfile.NamedTemporaryFile(suffix=".yaml") as file:
        if not isinstance(values, (str, bytes)):
            values = json.dumps(values)  # which is YAML, with quotes around each string
        file.write(values if isinstance(values, bytes) else values.encode())
        file.flush()
        more = settings(chart, []) if needed else []
        return subprocess.run(["bash", "-c", 'ulimit -d 1048576; exec "$@"', "limited", helm, "template", *(words or ["a"]), str(CHARTS / chart), *more, "-f", file.name],
                              capture_output=True, text=True, timeout=60, check=False)


def check_refused(result, phrases):
    """Problem if helm does not reject the values with a message that contains the phrases; "" otherwise."""
    text = result.stderr.lower()
    if result.returncode == 0:
        return "it was accepted"
    if not any(phrase.lower() in text for phrase in phrases.split("|")):
        return f"no line names {phrases}: {result.stderr}"
    return f"helm crashed: {result.stderr}" if "panic" in text or "goroutine" in text else ""


def report(attacks):
    """Runs functions that return a problem or "", and exits with the number of problems."""
    def result(one):
        try:
            return one[1]()
        except (AssertionError, LookupError, ValueError, yaml.YAMLError, subprocess.SubprocessError) as error:
            return repr(error)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        problems = [f"{name}: {problem}" for (name, _), problem in zip(attacks, pool.map(result, attacks)) if problem]
    for problem in problems:
        print("FAILED", problem)
    print(f"{len(attacks) - len(problems)} of {len(attacks)} attacks were handled")
    assert not problems and attacks


def without(chart, place):
    """The required values of a chart except those at the attacked key, which --set would override."""
    kept = [one for one in NEEDED.get(chart, []) if not one.startswith(place)]
    return [word for one in kept for word in ("--set", one)]


def test_rejects_hostile_values():
    attacks = []
    for helm in tools.helms():
        for chart, place, value, phrase in REFUSED:
            def attack(helm=helm, chart=chart, place=place, value=value, phrase=phrase):
                words = ["a", *without(chart, place)]
                return check_refused(template(helm, chart, nested(place, value), *words, needed=False), phrase)
            attacks.append((f"{chart} with {place}={value!r:.60}", attack))
        for words, phrase in NAMES:
            attacks.append((f"the name {words}", lambda helm=helm, words=words, phrase=phrase: check_refused(
                template(helm, "maskrcnn", {}, *words), phrase)))
        for name, text, phrases in FILES:
            attacks.append((f"a file of {name}", lambda helm=helm, text=text, phrases=phrases: check_refused(
                template(helm, "maskrcnn", text), phrases)))
    report(attacks)


def objects_of(helm, chart, values, *words, **options):
    result = template(helm, chart, values, *words, **options)
    assert result.returncode == 0, result.stderr
    return [one for one in yaml.safe_load_all(result.stdout) if one]


def shape(value):
    """Types of values by key; lists of strings count as equal."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return ["words"] if all(isinstance(one, str) for one in value) else [shape(one) for one in value]
    return type(value).__name__


def carried(chart, values, look, *words, same_shape=True, **options):
    """An attack that must arrive unchanged: `look` returns a problem of the objects, whose shape must not change."""
    def attack(helm):
        objects = objects_of(helm, chart, values, *words, **options)
        if same_shape and shape(objects) != shape(objects_of(helm, chart, {})):
            return "the shape of the objects changed"
        return look(objects)
    return attack


def words_of(objects, role="Launcher"):
    return pods(of_kind(objects, "MPIJob"))[role]["spec"]["containers"][0]["args"]


def expect(found, expected):
    return "" if found == expected else f"found {found!r}, expected {expected!r}"


def within(words, part):
    found = any(words[at:at + len(part)] == part for at in range(len(words)))
    return "" if found else f"{part!r} are not in {[word for word in words if word not in part]!r}"


def variables(objects, role):
    [container] = pods(of_kind(objects, "MPIJob"))[role]["spec"]["containers"]
    return [one for one in container["env"] if one["name"] not in ("RANKS", "SLOTS")]


def value_of(objects, role, name):
    [value] = [one["value"] for one in variables(objects, role) if one["name"] == name]
    return value


def claims(spec):
    return [one["persistentVolumeClaim"]["claimName"] for one in spec["volumes"] if "persistentVolumeClaim" in one]


def deployment(objects):
    return of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"]


WORDS = ["null", "true", "1.10", "0x1f", "1e3", "on", "2001-01-01"]
ARGUMENTS = {
    "arguments of a detector": ("maskrcnn", "maskrcnn.extra_args"),
    "arguments of a classifier": ("resnet50", "resnet50.extra_args"),
    "arguments of the engine": ("resnet50", "resnet50.engine_args"),
    "arguments of mpirun": ("mpijob", "mpirun.args"),
}
KEYS = {name: TEXT for name in ("data_train", "data_val", "lr_schedule", "if_exclude", "nccl_socket_ifname")}
CARRIED = {
    **{name: carried(chart, nested(place, HOSTILE), lambda all: within(words_of(all), HOSTILE))
       for name, (chart, place) in ARGUMENTS.items()},
    # Helm itself converts this character to a space.
    "a next line of ISO 6429": carried(
        "mpijob", {"mpirun": {"args": ["a\u0085key: x"]}, "pre_script": ["a\u0085key: x"]},
        lambda all: within(words_of(all), ["a key: x", "bash"])),
    "arguments of the server": carried(
        "maskrcnn-jupyter", nested("serve.extra_args", HOSTILE),
        lambda all: within(deployment(all)[0]["args"], HOSTILE)),
    "keys of a configuration": carried(
        "maskrcnn", {"maskrcnn": KEYS}, lambda all:
        within(words_of(all), [f"DATA.TRAIN={TEXT}", f"DATA.VAL={TEXT}"])
        or within(words_of(all), [f"TRAIN.LR_SCHEDULE={TEXT}"])),
    "names of interfaces": carried(
        "maskrcnn", {"maskrcnn": KEYS}, lambda all:
        expect(value_of(all, "Launcher", "OMPI_MCA_oob_tcp_if_exclude"), TEXT)
        or expect(value_of(all, "Worker", "NCCL_SOCKET_IFNAME"), TEXT)),
    "variables of ranks": carried(
        "mpijob", nested("mpirun.env", [{"name": f"A{i}", "value": text} for i, text in enumerate(HOSTILE)]),
        lambda all: expect([one["value"] for one in variables(all, "Worker")[-len(HOSTILE):]], HOSTILE),
        same_shape=False),
    "a preloaded library": carried(
        "mpijob", nested("mpirun.env", [{"name": "LD_PRELOAD", "value": "/tmp/x.so"}]),
        lambda all: expect([one for one in variables(all, "Launcher") if one["name"] == "LD_PRELOAD"], []),
        same_shape=False),
    "lines of a script": carried(
        "mpijob", {"pre_script": HOSTILE, "post_script": HOSTILE},
        lambda all: expect(script_of(all, "train.sh").count("\n".join(HOSTILE) + "\n"), 2)),
    "lines of a node's script": carried(
        "pytorchjob", {"pre_script": ["a\rinjected: x", "b\u2028injected: x"]},
        lambda all: expect("\na\rinjected: x\nb\u2028injected: x\n" in script_of(all, "train.sh"), True)),
    "claims that are words of YAML": carried(
        "mpijob", {"pvc": [{"name": name, "mount_path": f"/claim{i}"} for i, name in enumerate(WORDS)]},
        lambda all: expect(claims(pods(of_kind(all, "MPIJob"))["Worker"]["spec"]), WORDS), same_shape=False),
    "claims that are numbers": carried(
        "maskrcnn", {"global": {"shared_pvc": "123"}, "maskrcnn": {"data_pvc": "456"}},
        lambda all: expect(claims(pods(of_kind(all, "MPIJob"))["Worker"]["spec"]), ["123", "456"]), same_shape=False),
    "volumes that are words of YAML": carried(
        "pv-efs", {"volume_name": "null", "claim_name": "true", "class_name": "1e3"}, lambda all:
        expect(of_kind(all, "PersistentVolume")["spec"]["claimRef"]["name"], "true")
        or expect(of_kind(all, "PersistentVolume")["metadata"]["name"], "null")
        or expect(of_kind(all, "StorageClass")["metadata"]["name"], "1e3")),
    "a queue that is a number": carried(
        "mpijob", nested("job.queue", "123"),
        lambda all: expect(of_kind(all, "MPIJob")["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "123"),
        same_shape=False),
    "a release that is a word of YAML": carried(
        "mpijob", {}, lambda all: expect([one["metadata"]["name"] for one in all], ["true", "true-script", "true"])
        or expect(of_kind(all, "MPIJob")["metadata"]["labels"]["app.kubernetes.io/instance"], "true"), "true"),
    "a server that is a word of YAML": carried(
        "maskrcnn-jupyter", {}, lambda all: expect({one["metadata"]["name"] for one in all}, {"null"}), "null"),
    "namespaces that are numbers": carried(
        "mpijob", nested("global.namespace", "123"),
        lambda all: expect({one["metadata"]["namespace"] for one in all}, {"123"})),
    "a file system that is a comment": carried(
        "pv-efs", {"fs_id": "fs-0a:/a # b: c"},
        lambda all: expect(of_kind(all, "PersistentVolume")["spec"]["csi"]["volumeHandle"], "fs-0a:/a # b: c"),
        same_shape=False, needed=False),
}


def test_passes_on_hostile_values():
    attacks = []
    for helm in tools.helms():
        for name, attack in CARRIED.items():
            attacks.append((name, lambda helm=helm, attack=attack: attack(helm)))
        attacks.append(("secrets of a server", lambda helm=helm: secrets_are_secrets(helm)))
        attacks.append(("a repository that is a program", lambda helm=helm: repository_runs_nothing(helm)))
        attacks.append(("addresses with patterns", lambda helm=helm: addresses_are_addresses(helm)))
    report(attacks)


def secrets_are_secrets(helm):
    """Password hash and token are only in the Secret."""
    token = "s3cr3t-t0ken-0123456789"
    for one in objects_of(helm, "maskrcnn-jupyter", {"jupyter": {"enabled": True, "token": token}}):
        text = json.dumps(one)
        if one["kind"] != "Secret" and (token in text or HASH in text):
            return f"a secret is in the {one['kind']}"
    return ""


def repository_runs_nothing(helm):
    """git's `ext::` transport, which runs a program, is disabled, and a URL cannot become an option."""
    with tempfile.TemporaryDirectory() as folder:
        canary = pathlib.Path(folder) / "canary"
        values = {"git": {"repo_url": f"ext::touch${{IFS}}{canary}", "image": "git:2.0"}}
        [clone] = pods(of_kind(objects_of(helm, "mpijob", values), "MPIJob"))["Worker"]["spec"]["initContainers"]
        environment = {one["name"]: one["value"] for one in clone["env"]}
        script = clone["args"][0].replace("/source/", f"{folder}/").replace("sleep", ":")
        result = tools.run(*clone["command"], script, env={**os.environ, **environment})
        return "" if result.returncode == 1 and not canary.exists() else f"{result}"


def addresses_are_addresses(helm):
    """curl gets each URL as one argument, without globbing."""
    with tempfile.TemporaryDirectory() as folder:
        curl = pathlib.Path(folder) / "curl"
        curl.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$CALLS\"\nexit 7\n")
        curl.chmod(0o755)
        values = {"coco_url": "http://a/$(reboot);[1-9]*", "archives": ["a.zip"]}
        objects = objects_of(helm, "coco-data", values)
        [container] = of_kind(objects, "Job")["spec"]["template"]["spec"]["containers"]
        environment = {one["name"]: one["value"] for one in container["env"]}
        environment.update(DATA_DIR=f"{folder}/data", CALLS=f"{folder}/calls", PATH=f"{folder}:{os.environ['PATH']}")
        result = tools.run("sh", "-c", script_of(objects, "coco-data.sh"), env={**os.environ, **environment})
        calls = (pathlib.Path(folder) / "calls").read_text().splitlines()
        found = (result.returncode, calls[-1], "--globoff" in calls)
        return expect(found, (7, "http://a/$(reboot);[1-9]*/a.zip", True))


def test_requires_every_value():
    """null removes a key, which templates would read as 0: schemas require all values of values.yaml, except those that
    templates check themselves."""
    optional = {"gpus", "steps_per_epoch", "gpu_memory_gb", "image", "command"}
    for path in CHARTS.glob("*/values.schema.json"):
        values = yaml.safe_load((path.parent / "values.yaml").read_text())

        def look(schema, values, where):
            listed = {name for name in schema["properties"] if name in values} - optional
            missing = listed - set(schema.get("required", []))
            assert not missing, f"{path}: {where} does not require {missing}"
            for name, field in schema["properties"].items():
                if "properties" in field and isinstance(values.get(name), dict):
                    look(field, values[name], f"{where}.{name}")

        look(json.loads(path.read_text()), values, "values")


if __name__ == "__main__":
    tools.main(globals())
