"""Quantises an ONNX model to int8 with ONNX Runtime: QDQ nodes, int8 weights per channel, uint8 activations.

Usage: quantize_onnx.py MODEL.onnx INT8.onnx    calibrates with random images, which is enough to measure speed
"""
import pathlib
import sys
import tempfile

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process


class RandomImages(CalibrationDataReader):
    def __init__(self):
        draws = np.random.default_rng(1)
        self.batches = iter([{"images": draws.random((4, 3, 224, 224), dtype=np.float32)} for _ in range(4)])

    def get_next(self):
        return next(self.batches, None)


def main():
    model, quantized = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        folded = str(pathlib.Path(folder) / "folded.onnx")
        quant_pre_process(model, folded)
        quantize_static(folded, quantized, RandomImages(), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


if __name__ == "__main__":
    main()
