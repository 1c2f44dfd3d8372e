#!/usr/bin/env python3
"""Records preprocessing and detections of the installed torchvision: expected values of torchvision_resize.py for
another version than the installed one. Run it once with the newest torchvision:

    python3 -m venv newest && newest/bin/pip install torch torchvision
    newest/bin/python tests/parity/record_torchvision.py > tests/parity/torchvision_newest.json
"""

import json

import resize_cases as cases
from parity import torch, torchvision

record = {
    "torch": torch.__version__,
    "torchvision": torchvision.__version__,
    "sizes": [[h, w, *cases.new_size(h, w)] for h, w in cases.sizes()],
    "images": [],
}
for height, width in cases.IMAGES:
    tensor = cases.resized(cases.image(height, width))
    record["images"].append({"size": [height, width], "shape": tensor.shape, "samples": cases.samples_of(tensor)})
record["detections"], _ = cases.detections()
lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()]
print("{\n" + ",\n".join(lines) + "\n}")
