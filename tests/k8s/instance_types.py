"""Reads k8s/instance-types.csv, the table of EC2 instance types with GPUs."""

import csv

import tools

NUMBERS = ("gpus", "gpu_memory_gib", "vcpus", "memory_gib", "efa_interfaces", "cpu")


def read():
    """Rows by instance type; `efa` is the number of EFA devices that jobs use."""
    with (tools.K8S / "instance-types.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row.update({name: int(row[name]) for name in NUMBERS})
        row["efa"] = row["efa_interfaces"] if row["image"] == "efa" else 0
    types = {row["instance_type"]: row for row in rows}
    assert len(types) == len(rows), "an instance type has two rows"
    return types


TYPES = read()
