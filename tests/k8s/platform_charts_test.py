"""Tests what platforms add to the pods of the charts: the values of `job` that set.sh's optional parameters equal."""

import json
import pathlib
import tempfile

import lint
import tools
import validate
import yaml
from charts import ALL, CHARTS, EXCEPTIONS, JOBS, SERVERS, of_kind, render, settings
from lint_job import missing_labels
from platform_test import POD_SETTINGS, contains, field, scraped, templates

SPREAD = POD_SETTINGS["TOPOLOGY_SPREAD"][1]["spec.topologySpreadConstraints"]
# The values of POD_SETTINGS.
VALUES = {
    "priority_class": "high", "image_pull_secrets": ["first", "second"], "service_account": "trainer",
    "tolerations": POD_SETTINGS["TOLERATIONS"][1]["spec.tolerations"],
    "affinity": POD_SETTINGS["AFFINITY"][1]["spec.affinity"],
    "topology_spread": [{key: one[key] for key in ("topologyKey", "whenUnsatisfiable")} for one in SPREAD],
    "labels": POD_SETTINGS["LABELS"][1]["metadata.labels"],
    "annotations": POD_SETTINGS["ANNOTATIONS"][1]["metadata.annotations"],
    "env": POD_SETTINGS["ENV"][1]["env"], "ephemeral_storage": "10Gi",
}
REFUSED = (
    ("maskrcnn", 'job.labels={"app.kubernetes.io/name":"x"}', "job.labels: app.kubernetes.io/name is set by the chart"),
    ("maskrcnn", 'job.labels={"team":"a b"}', "labels"),
    ("maskrcnn", 'job.env=[{"name":"NCCL_DEBUG","value":"WARN"}]', "job.env: NCCL_DEBUG is set twice, or set by the chart"),
    ("maskrcnn-jupyter", 'job.env=[{"name":"AWS_SECRET_ACCESS_KEY","value":"x"}]', "would be readable"),
    ("pytorchjob", 'job.env=[{"name":"HOME","value":"/"}]', "job.env: HOME is set twice"),
    ("maskrcnn", 'job.affinity={"nodes":{}}', "nodes"),
    ("maskrcnn", 'job.tolerations=[{"kee":"x"}]', "kee"),
    ("maskrcnn", 'job.topology_spread=[{"maxSkew":1}]', "topologyKey"),
    ("maskrcnn", 'job.topology="rack"', "job.topology needs job.queue"),
    ("maskrcnn", 'job.ephemeral_storage="10GB"', "ephemeral_storage"),
    ("coco-data", 'job.monitoring="monitoring"', "the chart coco-data does not support it"),
    ("maskrcnn-jupyter", "job.spot=true", "the chart maskrcnn-jupyter does not support it"),
)
EXPECTED_FLAGS = ["--metrics_port=9400", "--metrics_address=0.0.0.0"]


def render_json(helm, chart, **job):
    """Objects with values of `job`, and the text."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"job": job}, file)
        file.flush()
        text = tools.check_run(helm, "template", "training", CHARTS / chart, "-f", file.name, *settings(chart, []))
    return text, [one for one in yaml.safe_load_all(text) if one]


def check_valid(chart, text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"{chart}-0.yaml"
        path.write_text(text)
        tools.check_manifests([path], exceptions=EXCEPTIONS)


def test_settings_of_all_pods():
    for helm in tools.helms():
        for chart in (chart for chart in ALL if not chart.startswith("pv-")):
            text, objects = render_json(helm, chart, **VALUES)
            found = list(templates(objects))
            assert found, chart
            for where, template in found:
                for name, (_, wanted) in POD_SETTINGS.items():
                    for path, value in wanted.items():
                        assert contains(field(template, path), value), f"{chart}: {where}: {name}: {field(template, path)}"
            if chart != "pytorchjob" or tools.TRAINING_MODELS.is_dir():
                check_valid(chart, text)


def test_refused():
    for helm in tools.helms():
        for chart, value, message in REFUSED:
            done = tools.run(helm, "template", "training", CHARTS / chart, *settings(chart, []), "--set-json", value)
            assert done.returncode != 0 and message in done.stderr, f"{chart} {value}: {done.stderr}"


def test_components():
    """Monitoring, spot instances, Istio and Kueue's topology, as the components of overlays."""
    for helm in tools.helms():
        for chart in JOBS:
            text, objects = render_json(helm, chart, monitoring="prometheus", spot=True, istio="no", queue="ml",
                                        topology="kubernetes.io/hostname")
            check_valid(chart, text)
            pods = {pod.role: pod for one in objects for pod in lint.Job(one, objects).pods}
            assert pods["worker"].on_spot and not pods["launcher"].on_spot
            assert pods["worker"].spec["terminationGracePeriodSeconds"] == 110
            annotations = pods["worker"].metadata["annotations"]
            assert annotations["kueue.x-k8s.io/podset-preferred-topology"] == "kubernetes.io/hostname"
            assert all(pod.metadata["labels"]["istio.io/dataplane-mode"] == "none" for pod in pods.values())
            [monitor] = [one for one in objects if one["kind"] == "PodMonitor"]
            labels = {"training.kubeflow.org/replica-index": "0"}
            worker = {"metadata": {"labels": {**pods["worker"].metadata["labels"], **labels}}, "spec": pods["worker"].spec}
            launcher = {"metadata": pods["launcher"].metadata, "spec": pods["launcher"].spec}
            assert scraped(monitor, worker) and not scraped(monitor, launcher), chart
            flags = [word for word in pods["launcher"].args if word.startswith("--metrics_")]
            assert flags == ([] if chart == "mpijob" else EXPECTED_FLAGS), (chart, flags)
            budgets = [one for one in objects if one["kind"] == "PodDisruptionBudget"]
            assert len(budgets) == 1, budgets
            assert not [one["kind"] for one in render(helm, chart)[1] if one["kind"] in ("PodMonitor", "PodDisruptionBudget")]


def test_monitoring_chart():
    """The dashboard as a ConfigMap and the alerts as a PrometheusRule, equal to the tested files."""
    example = tools.ROOT / "examples/monitoring"
    for helm in tools.helms():
        with tempfile.TemporaryDirectory() as folder:
            tools.check_run(helm, "lint", "--strict", CHARTS / "monitoring")
            tools.check_run(helm, "package", CHARTS / "monitoring", "--destination", folder)
            [package] = pathlib.Path(folder).glob("*.tgz")
            _, objects = render(helm, "monitoring", ["rule_labels.release=stack"], source=package)
        board, rules = of_kind(objects, "ConfigMap"), of_kind(objects, "PrometheusRule")
        assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert json.loads(board["data"]["dtrain.json"]) == json.loads((example / "grafana-dashboard.json").read_text())
        assert rules["spec"] == yaml.safe_load((example / "alerts.yml").read_text())
        assert rules["metadata"]["labels"]["release"] == "stack"
        schemas = validate.Schemas(tools.SCHEMAS)
        assert not [error for one in objects for error in validate.errors(one, schemas)]
        assert not [one for one in objects if missing_labels(one["metadata"])]


def test_clusters_create_load_balancers():
    """The cloud provider of each EKS cluster creates load balancers, but none of the type external: these are AWS Load
    Balancer Controller's, which no file of k8s/cluster installs."""
    assert "load-balancer-controller" not in (tools.K8S / "versions.txt").read_text()
    for chart in SERVERS:
        service = of_kind(render(tools.helms()[-1], chart)[1], "Service")
        assert service["spec"]["type"] == "LoadBalancer" and service["spec"]["loadBalancerSourceRanges"]
        annotations = {key.rpartition("/")[2]: value for key, value in service["metadata"]["annotations"].items()}
        assert annotations["aws-load-balancer-type"] == "nlb", annotations


if __name__ == "__main__":
    tools.main(globals())
