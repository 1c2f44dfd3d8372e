#!/usr/bin/env python3
"""pycocotools counterpart of coco_eval_bench: prints processor seconds for reading and scoring as a line of JSON.

coco_eval_peer.py TRUTH RESULTS boxes|masks

Scoring is loadRes, evaluate, accumulate and summarize, after both files are parsed.
"""
import contextlib
import io
import json
import sys
import time

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

truth_path, results_path, compare = sys.argv[1:]
begin = time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    truth = COCO(truth_path)
    with_truth = time.process_time()
    with open(results_path) as file:
        results = json.load(file)
    with_results = time.process_time()
    evaluation = COCOeval(truth, truth.loadRes(results), {"boxes": "bbox", "masks": "segm"}[compare])
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
end = time.process_time()
print(json.dumps({"images": len(truth.imgs), "detections": len(results), "read_truth_seconds": with_truth - begin,
                  "read_results_seconds": with_results - with_truth, "score_seconds": end - with_results,
                  "statistics": evaluation.stats.tolist()}))
