#!/usr/bin/env python3
"""Writes the files beside this script with PyTorch, NumPy and pickle: make.py FOLDER. The committed ones were written by
PyTorch 1.13 and NumPy 1.24."""
import collections
import os
import pickle
import sys

import numpy
import torch

place = sys.argv[1]


def path(name: str) -> str:
    return os.path.join(place, name)


class System:
    """Runs a command when an unrestricted unpickler reads it."""

    def __reduce__(self):
        return os.system, ("touch /tmp/executed",)


base = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 4
state = collections.OrderedDict(
    base=base, transposed=base.t(), part=base[1:, 2:], half=base[0].half(), brain=base[1].bfloat16(),
    double=base[2].double(), batches=torch.tensor(7), flags=torch.tensor([True, False]),
    expanded=torch.tensor([[1.0, 2.0]]).expand(3, 2), empty=torch.zeros(0, 3), scalar=torch.tensor(2.5),
    parameter=torch.nn.Parameter(base[:2].clone()))
torch.save(state, path("archive.pth"))
torch.save(state, path("legacy.pth"), _use_new_zipfile_serialization=False)

model = torch.nn.Linear(2, 1)
model.load_state_dict({"weight": torch.tensor([[0.5, -1.5]]), "bias": torch.tensor([0.25])})
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
model.load_state_dict({"weight": torch.tensor([[0.5, -1.5]]), "bias": torch.tensor([0.25])})
checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "args": None}
torch.save(checkpoint, path("checkpoint.pth"))
torch.save(checkpoint, path("checkpoint_legacy.pth"), _use_new_zipfile_serialization=False)
torch.save({"epoch": 1, "pytorch-lightning_version": "2.1.0", "state_dict": {
    "model." + key: value for key, value in model.state_dict().items()}, "hyper_parameters": {"lr": 0.1}},
    path("lightning.ckpt"))

array = numpy.arange(6, dtype="f4").reshape(2, 3) * 100
arrays = {"model": {"conv.weight": array, "columns": numpy.asfortranarray(array), "double": array.astype("f8")},
          "__author__": "test", "matching_heuristics": True}
for protocol in (2, 5):
    with open(path(f"detectron2_{protocol}.pkl"), "wb") as file:
        pickle.dump(arrays, file, protocol=protocol)

torch.save(model, path("module.pth"))
torch.save({"weight": torch.zeros(1), "other": System()}, path("system.pth"))
torch.jit.script(model).save(path("script.pt"))
