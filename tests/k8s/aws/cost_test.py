"""Tests k8s/instance-prices.csv and the costs that scripts print."""

import csv
import datetime
import re
import subprocess
import sys

from benchmark_test import PLAN, ROOT, trial


def prices():
    with (ROOT / "k8s/instance-prices.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


COSTS = {  # changes of the plan: the instance-hours, with a time limit of 1 and 60 minutes
    (): "USD for 1.017 h of g6.xlarge + 2.033 h of m7i.large",
    ("nodes = system,gpu\n", ""): "USD for 1.017 h of p5.48xlarge + 2.033 h of m7i.large",
    ("cluster = k8s/cluster.yaml\nnodes = system,gpu\n", "cluster = existing\n"):
        "time limit: no price is known for 1.017 h of nodes of unknown type\nnodes of unknown type: first second; INSTANCE_TYPE of ",
    ("manifest = k8s/job.yaml\nmetric", "manifest = k8s/placed.yaml\nmetric"):
        "USD for 0.01667 h of g6.xlarge + 3 h of p5e.48xlarge (no price) + 2.033 h of m7i.large",
}
GROUPS = """\
managedNodeGroups:
  - name: system
    instanceTypes: [m7i.large, m7a.large]
    minSize: 2
  - name: gpu
    instanceType: g6.xlarge
    minSize: 0
  - name: large
    instanceType: p5.48xlarge
    minSize: 0
"""


def test_cost():
    with trial() as one:
        cluster = one.tree / "k8s/cluster.yaml"
        cluster.write_text(cluster.read_text() + GROUPS)
        (one.tree / "k8s/placed.yaml").write_text(
            'Launcher:\n  replicas: 1\nWorker:\n  replicas: 3\n  nodeSelector: {node.kubernetes.io/instance-type: "p5e.48xlarge"}\n')
        for change, expected in COSTS.items():
            (one.tree / "plan").write_text(PLAN.replace(*change, 1) if change else PLAN)
            output = one.run("--check", one.tree / "plan")
            assert f" {expected}" in output, (change, output)
        assert "run.sh: cost, if " in one.run(), "no cost before a run"
        (one.tree / "k8s/instance-prices.csv").unlink()
        assert "its time limit: not known, since" in one.run("--check", one.tree / "plan")


def price_of():
    return {row["instance_type"]: float(row["usd_per_hour"]) for row in prices()}


def test_table():
    rows = prices()
    with (ROOT / "k8s/instance-types.csv").open(encoding="utf-8", newline="") as file:
        types = {row["instance_type"] for row in csv.DictReader(file)}
    assert types - set(price_of()) == {"p5e.48xlarge"}, "types without a price"
    assert len(price_of()) == len(rows) and min(price_of().values()) > 0
    [(region, date, source)] = {(row["region"], row["date"], row["source"]) for row in rows}
    datetime.date.fromisoformat(date)
    page = (ROOT / "k8s/instance-types.md").read_text(encoding="utf-8")
    day = datetime.date.fromisoformat(date)
    assert f"{region} on {day.day} {day:%B %Y}" in page and source.partition("@")[2] in page, "the page has another date"
    # Types of system nodes have prices, too.
    for path in (*ROOT.glob("k8s/cluster/eksctl/*.yaml"), ROOT / "k8s/cluster/terraform/variables.tf"):
        named = set(re.findall(r"\b[a-z][a-z0-9-]*\.[0-9]*x?large\b", path.read_text(encoding="utf-8")))
        assert named <= set(price_of()), (path, named - set(price_of()))


def test_plan_example():
    example = ROOT / "k8s/benchmark/plan.example"
    checked = subprocess.run([ROOT / "k8s/benchmark/run.sh", "--check", example], text=True, capture_output=True,
                             check=True).stdout
    # Four workers for 90 minutes, twice, and two system nodes for all that time.
    cost = 12 * price_of()["g6e.48xlarge"] + 6 * price_of()["m7i.large"]
    expected = f"takes its time limit: {cost:.2f} USD for 12 h of g6e.48xlarge + 6 h of m7i.large; on-demand prices of us-east-1"
    assert expected in checked, checked


if __name__ == "__main__":
    for name in sys.argv[1:] or [name for name in list(globals()) if name.startswith("test_")]:
        globals()[name]()
        print(f"{name}: passed")
