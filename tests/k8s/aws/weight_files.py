"""Weights in TensorPack's names and shapes, with zeros as values: small files, since zeros compress well."""

import struct
import zipfile


def array(shape):
    """An array of zeros as a .npy file of float32."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}".ljust(117) + "\n"
    count = 1
    for side in shape:
        count *= side
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(4 * count)


def norm(path, channels):
    return {f"{path}/{part}": (channels,) for part in ("gamma", "beta", "mean/EMA", "variance/EMA")}


def backbone(blocks=(3, 4, 6, 3)):
    """ImageNet-R50-AlignPadding.npz, with its classifier."""
    tensors = {"conv0/W": (7, 7, 3, 64), **norm("conv0/bn", 64), "linear/W": (2048, 1000), "linear/b": (1000,)}
    inputs = 64
    for group, count in enumerate(blocks):
        width = 64 << group
        for block in range(count):
            path = f"group{group}/block{block}"
            shapes = {"conv1": (1, 1, inputs, width), "conv2": (3, 3, width, width), "conv3": (1, 1, width, 4 * width)}
            if block == 0:
                shapes["convshortcut"] = (1, 1, inputs, 4 * width)
            for name, shape in shapes.items():
                tensors |= {f"{path}/{name}/W": shape, **norm(f"{path}/{name}/bn", shape[3])}
            inputs = 4 * width
    return tensors


def detector():
    """COCO-R50FPN-MaskRCNN-Standard.npz."""
    layers = {"rpn/conv0": (3, 3, 256, 256), "rpn/class": (1, 1, 256, 3), "rpn/box": (1, 1, 256, 12),
              "fastrcnn/fc6": (12544, 1024), "fastrcnn/fc7": (1024, 1024), "fastrcnn/outputs/class": (1024, 81),
              "fastrcnn/outputs/box": (1024, 324), "maskrcnn/deconv": (2, 2, 256, 256), "maskrcnn/conv": (1, 1, 256, 80)}
    for level in range(4):
        layers |= {f"fpn/lateral_1x1_c{level + 2}": (1, 1, 256 << level, 256),
                   f"fpn/posthoc_3x3_p{level + 2}": (3, 3, 256, 256), f"maskrcnn/fcn{level}": (3, 3, 256, 256)}
    tensors = {name: shape for name, shape in backbone().items() if not name.startswith("linear")}
    for path, shape in layers.items():
        tensors |= {f"{path}/W": shape, f"{path}/b": (shape[-1],)}
    return tensors


def save(path, tensors):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, shape in tensors.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", (2019, 1, 1, 0, 0, 0)), array(shape), zipfile.ZIP_DEFLATED, 1)


def save_all(folder):
    """The files of k8s/data/weights.txt."""
    save(folder / "ImageNet-R50-AlignPadding.npz", backbone())
    save(folder / "ImageNet-R101-AlignPadding.npz", backbone((3, 4, 23, 3)))
    save(folder / "COCO-R50FPN-MaskRCNN-Standard.npz", detector())
