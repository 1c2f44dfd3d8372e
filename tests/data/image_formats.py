#!/usr/bin/env python3
"""Writes image_formats.inc and the fuzzer's corpus: small BMP, GIF, WebP and TIFF files, mostly byte by byte, with
checksums of the pixels that Pillow decodes.

    tests/data/image_formats.py     # with python3-pil and python3-numpy, for a change of the cases alone
"""
import io
import struct
import textwrap
import zlib
from pathlib import Path

import numpy
from PIL import Image

HERE = Path(__file__).parent
WIDTH, HEIGHT = 13, 11


def picture(channels, bits=8, width=WIDTH, height=HEIGHT):
    """Smooth in one half, noise in the other, for lossy codecs and run-length coding."""
    random = numpy.random.default_rng(channels * 100 + bits)
    most = (1 << bits) - 1
    y, x = numpy.mgrid[:height, :width]
    planes = [(x * (c + 2) * 5 + y * (7 - c)) % 256 * most // 255 for c in range(channels)]
    values = numpy.stack(planes, axis=-1)
    values[:, width // 2:] = random.integers(0, most + 1, (height, width - width // 2, channels))
    return values.astype("<u2" if bits == 16 else "u1")


def packed(values, bits):
    """Rows of samples [height, n] of `bits` bits; rows are padded to whole bytes."""
    if bits == 16:
        return values.tobytes()
    if bits == 8:
        return values.astype("u1").tobytes()
    each = numpy.unpackbits(values.astype("u1")[..., None], axis=-1)[..., 8 - bits:]
    return numpy.packbits(each.reshape(len(values), -1), axis=-1).tobytes()


def palette(count):
    return numpy.random.default_rng(count).integers(0, 256, (count, 3)).astype("u1")


# ---- BMP

def bmp(bits, pixels, colors=b"", compression=0, masks=b"", height=HEIGHT, used=0, short=False):
    if short:
        header = struct.pack("<IHHHH", 12, WIDTH, height, 1, bits)
    else:
        header = struct.pack("<IiiHHIIiiII", 40, WIDTH, height, 1, bits, compression, len(pixels), 0, 0, used, 0) + masks
    at = 14 + len(header) + len(colors)
    return b"BM" + struct.pack("<IHHI", at + len(pixels), 0, 0, at) + header + colors + pixels


def bmp_rows(rows, bits):
    """Bottom-up rows, each padded to four bytes."""
    data = packed(rows, bits)
    size = len(data) // HEIGHT
    rows = [data[i * size:(i + 1) * size] for i in range(HEIGHT)]
    return b"".join(row + bytes(-size % 4) for row in reversed(rows))


def bmp_colors(count, entry=4):
    return b"".join(bytes([b, g, r]) + bytes(entry - 3) for r, g, b in palette(count).tolist())


def bmp_cases():
    for bits in (1, 4, 8):
        rows = bmp_rows(picture(1, bits)[..., 0], bits)
        yield f"bmp {bits} bits", bmp(bits, rows, bmp_colors(1 << bits))
    rows = bmp_rows(picture(1, 8)[..., 0] % 10, 8)
    yield "bmp 8 bits, 10 colours", bmp(8, rows, bmp_colors(10), used=10)
    yield "bmp of OS/2", bmp(8, rows, bmp_colors(256, 3), short=True)
    levels = picture(1, 16)
    for name, masks in (("5 bits each", ()), ("5, 6 and 5 bits", (0xF800, 0x7E0, 0x1F))):
        masks = b"".join(struct.pack("<I", mask) for mask in masks)
        yield f"bmp 16 bits: {name}", bmp(16, bmp_rows(levels[..., 0], 16), b"", 3 if masks else 0, masks)
    colors = picture(3)
    yield "bmp 24 bits", bmp(24, bmp_rows(colors.reshape(HEIGHT, -1), 8))
    top = b"".join(row.tobytes() + bytes(-3 * WIDTH % 4) for row in colors)
    yield "bmp 24 bits, rows from the top", bmp(24, top, height=-HEIGHT)
    rows = bmp_rows(picture(4).reshape(HEIGHT, -1), 8)
    yield "bmp 32 bits", bmp(32, rows)
    masks = struct.pack("<III", 0xFF000000, 0xFF0000, 0xFF00)
    yield "bmp 32 bits with masks", bmp(32, rows, b"", 3, masks)
    # Runs, literals, an early end of row, and a run beyond the end of its row. Pillow misreads jumps.
    rest = bytes([WIDTH, 0x3C, 0, 0])
    runs = bytes([4, 1, 3, 2, 0, 6, 3, 4, 5, 6, 7, 8, 0, 0, 5, 9, 0, 0, 200, 7, 0, 0])
    yield "bmp RLE8", bmp(8, runs + 8 * rest + bytes([0, 1]), bmp_colors(256), 1)
    runs = bytes([5, 0x12, 0, 4, 0x34, 0x56, 0, 0, 3, 0x78, 0, 0, 40, 0xBC, 0, 0])
    yield "bmp RLE4", bmp(4, runs + 8 * rest + bytes([0, 1]), bmp_colors(16), 2)


# ---- GIF

def gif_data(indices, bits):
    """Codes of constant size: clears the table before it grows."""
    size, clear = bits + 1, 1 << bits
    codes = []
    for i, index in enumerate(indices):
        if i % (clear - 2) == 0:
            codes.append(clear)
        codes.append(index)
    codes.append(clear + 1)
    value = sum(code << (i * size) for i, code in enumerate(codes))
    data = value.to_bytes((len(codes) * size + 7) // 8, "little")
    blocks = [data[i:i + 255] for i in range(0, len(data), 255)]
    return bytes([bits]) + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"


def gif(indices, bits, *, screen=(WIDTH, HEIGHT), at=(0, 0), everywhere=True, local=False, interlaced=False,
        transparent=None, more=b""):
    height, width = indices.shape
    table = palette(1 << bits).tobytes()
    other = palette(1 << bits)[::-1].tobytes()
    data = b"GIF89a" + struct.pack("<HHBBB", *screen, (0x80 | bits - 1) if everywhere else 0, 3, 0)
    data += table if everywhere else b""
    data += b"!\xfe\x05hello\0"
    if transparent is not None:
        data += b"!\xf9\x04" + bytes([1, 0, 0, transparent]) + b"\0"
    flags = (0x80 | bits - 1 if local else 0) | (0x40 if interlaced else 0)
    data += b"," + struct.pack("<HHHHB", *at, width, height, flags) + (other if local else b"")
    if interlaced:
        order = [row for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for row in range(first, height, step)]
        indices = indices[order]
    return data + gif_data(indices.flatten().tolist(), bits) + more + b";"


def gif_cases():
    indices = picture(1, 4)[..., 0]
    yield "gif", gif(indices, 4)
    yield "gif, colours of its own, interlaced", gif(indices, 4, local=True, interlaced=True)
    yield "gif, no colours", gif(indices, 4, everywhere=False)
    yield "gif, transparent", gif(indices, 4, transparent=5)
    small = indices[:5, :7]
    yield "gif, frame in a canvas", gif(small, 4, at=(2, 3))
    yield "gif, frame in a transparent canvas", gif(small, 4, at=(2, 3), transparent=9)
    yield "gif, canvas too small", gif(indices, 4, screen=(6, 20))
    second = b"," + struct.pack("<HHHHB", 0, 0, WIDTH, HEIGHT, 0) + gif_data([1] * (WIDTH * HEIGHT), 4)
    yield "gif, two frames", gif(indices, 4, more=second)
    image = Image.fromarray(picture(3, width=40, height=30)).quantize(32)
    file = io.BytesIO()
    image.save(file, "GIF", interlace=0)
    yield "gif by Pillow", file.getvalue()


# ---- WebP

def webp(values, **options):
    file = io.BytesIO()
    Image.fromarray(values).save(file, "WEBP", **options)
    return file.getvalue()


def exif(orientation):
    return b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0" + bytes([orientation]) + bytes(6)


def webp_cases():
    yield "webp", webp(picture(3), quality=80)
    yield "webp, lossless", webp(picture(3), lossless=True)
    yield "webp, alpha", webp(picture(4), quality=80)
    yield "webp, lossless with alpha", webp(picture(4), lossless=True, exact=True)
    yield "webp, orientation 6", webp(picture(3), lossless=True, exif=exif(6))
    # Animation whose frames leave parts of the canvas uncovered.
    frames = b""
    for at in (2, 0):
        image = webp(picture(3)[:6, :8], lossless=True)[12:]
        head = b"".join(struct.pack("<I", v)[:3] for v in (at // 2, at // 2, 7, 5, 40)) + b"\0"
        frames += b"ANMF" + struct.pack("<I", len(head) + len(image)) + head + image
    head = b"VP8X" + struct.pack("<IB3x", 10, 2) + struct.pack("<I", WIDTH - 1)[:3] + struct.pack("<I", HEIGHT - 1)[:3]
    body = b"WEBP" + head + b"ANIM" + struct.pack("<IIH", 6, 0xFFFFFFFF, 0) + frames
    yield "webp, animation", b"RIFF" + struct.pack("<I", len(body)) + body


# ---- TIFF

def tiff(blocks, *, bits=(8,), colors=1, compression=1, rows=HEIGHT, big=False, tile=None, extra=(), planar=1, order=1,
         entries=(), size=(WIDTH, HEIGHT)):
    """One page of strips, or of tiles of the given size."""
    kinds = {1: "B", 3: "H", 4: "I"}
    tags = {256: (3, [size[0]]), 257: (3, [size[1]]), 258: (3, list(bits)), 259: (3, [compression]), 262: (3, [colors]),
            274: (3, [order]), 277: (3, [len(bits)]), 284: (3, [planar])}
    if extra:
        tags[338] = (3, list(extra))
    if tile:
        tags.update({322: (3, [tile[0]]), 323: (3, [tile[1]]), 324: (4, [0] * len(blocks)),
                     325: (4, [len(b) for b in blocks])})
    else:
        tags.update({278: (3, [rows]), 273: (4, [0] * len(blocks)), 279: (4, [len(b) for b in blocks])})
    tags.update({tag: (kind, list(values)) for tag, kind, values in entries})
    e = ">" if big else "<"
    behind = 8 + 2 + 12 * len(tags) + 4
    sizes = {tag: struct.calcsize(e + kinds[kind]) * len(values) for tag, (kind, values) in tags.items()}
    place = behind + sum(size + size % 2 for size in sizes.values() if size > 4)
    offsets = []
    for block in blocks:
        offsets.append(place)
        place += len(block) + len(block) % 2
    tags[324 if tile else 273] = (4, offsets)
    directory, values_at, values = b"", behind, b""
    for tag in sorted(tags):
        kind, numbers = tags[tag]
        data = struct.pack(e + kinds[kind] * len(numbers), *numbers)
        directory += struct.pack(e + "HHI", tag, kind, len(numbers))
        if len(data) > 4:
            directory += struct.pack(e + "I", values_at + len(values))
            values += data + bytes(len(data) % 2)
        else:
            directory += data + bytes(4 - len(data))
    head = (b"MM\0*" if big else b"II*\0") + struct.pack(e + "IH", 8, len(tags))
    return head + directory + bytes(4) + values + b"".join(b + bytes(len(b) % 2) for b in blocks)


def strips(values, bits, rows=4):
    """Of [height, width, channels]."""
    flat = values.reshape(len(values), -1)
    return [packed(flat[y:y + rows], bits) for y in range(0, len(flat), rows)]


def by_pillow(values, **options):
    file = io.BytesIO()
    (values if isinstance(values, Image.Image) else Image.fromarray(values)).save(file, "TIFF", **options)
    return file.getvalue()


def tiff_cases():
    for bits in (1, 2, 4, 8):
        for colors, name in ((1, "grey"), (0, "white is 0")):
            yield f"tiff {name}, {bits} bits", tiff(strips(picture(1, bits), bits), bits=(bits,), colors=colors, rows=4)
        levels = [int(v) * 257 for v in palette(1 << bits).T.flatten()]
        yield f"tiff palette, {bits} bits", tiff(strips(picture(1, bits), bits), bits=(bits,), colors=3, rows=4,
                                                 entries=[(320, 3, levels)])
    yield "tiff RGB", tiff(strips(picture(3), 8), bits=(8,) * 3, colors=2, rows=4)
    yield "tiff RGB, big-endian", tiff(strips(picture(3), 8), bits=(8,) * 3, colors=2, rows=4, big=True)
    yield "tiff RGB, 16 bits", tiff(strips(picture(3, 16), 16), bits=(16,) * 3, colors=2, rows=4)
    yield "tiff RGB, 16 bits, big-endian", tiff([s for s in strips(picture(3, 16).astype(">u2"), 16)], bits=(16,) * 3,
                                                colors=2, rows=4, big=True)
    yield "tiff grey, 16 bits", tiff(strips(picture(1, 16), 16), bits=(16,), rows=4)
    yield "tiff grey with alpha", tiff(strips(picture(2), 8), bits=(8,) * 2, rows=4, extra=[2])
    for kind, name in ((0, "a fourth sample"), (1, "premultiplied"), (2, "alpha")):
        yield f"tiff RGB, {name}", tiff(strips(picture(4), 8), bits=(8,) * 4, colors=2, rows=4, extra=[kind])
    yield "tiff CMYK", tiff(strips(picture(4), 8), bits=(8,) * 4, colors=5, rows=4)
    yield "tiff CMYK, 16 bits", tiff(strips(picture(4, 16), 16), bits=(16,) * 4, colors=5, rows=4)
    planes = [b for c in range(3) for b in strips(picture(3)[..., c:c + 1], 8, HEIGHT)]
    yield "tiff RGB in planes", tiff(planes, bits=(8,) * 3, colors=2, planar=2)
    yield "tiff deflate", tiff([zlib.compress(s) for s in strips(picture(3), 8)], bits=(8,) * 3, colors=2, rows=4, compression=8)
    wide = numpy.zeros((32, 16, 3), "u1")
    wide[:HEIGHT, :WIDTH] = picture(3)
    tiles = [wide[y:y + 16].tobytes() for y in (0,)]
    yield "tiff in a tile", tiff(tiles, bits=(8,) * 3, colors=2, tile=(16, 16))
    large = picture(3, width=32, height=32)
    tiles = [zlib.compress(large[y:y + 16, x:x + 16].tobytes()) for y in (0, 16) for x in (0, 16)]
    yield "tiff in tiles, deflate", tiff(tiles, bits=(8,) * 3, colors=2, tile=(16, 16), compression=8, size=(27, 21))
    yield "tiff LZW", by_pillow(picture(3), compression="tiff_lzw")
    yield "tiff LZW, differences", by_pillow(picture(3), compression="tiff_lzw", tiffinfo={317: 2})
    yield "tiff packbits", by_pillow(picture(3), compression="packbits")
    yield "tiff fax", by_pillow(Image.fromarray(picture(1)[..., 0] > 128), compression="group4")
    yield "tiff JPEG, YCbCr", by_pillow(Image.fromarray(picture(3)).convert("YCbCr"), compression="jpeg")
    yield "tiff JPEG, RGB", by_pillow(picture(3), compression="jpeg")
    yield "tiff JPEG, grey", by_pillow(picture(1)[..., 0], compression="jpeg")
    packed_strips = [zlib.compress(s) for s in strips(picture(3), 8)]
    yield "tiff YCbCr", tiff(packed_strips, bits=(8,) * 3, colors=6, rows=4, compression=8, entries=[(530, 3, [1, 1])])
    yield "tiff, orientation 6", tiff(strips(picture(3), 8), bits=(8,) * 3, colors=2, rows=4, order=6)
    yield "tiff YCbCr, orientation 3", tiff(packed_strips, bits=(8,) * 3, colors=6, rows=4, order=3, compression=8,
                                            entries=[(530, 3, [1, 1])])


def png_case():
    file = io.BytesIO()
    Image.fromarray(picture(3)).save(file, "PNG", exif=exif(8)[6:])
    return "png, orientation 8", file.getvalue()


def decoded(name, data):
    """Pixels [height, width, 3] as stored, and the orientation."""
    if name == "tiff grey, 16 bits":  # Pillow saturates
        return numpy.repeat(picture(1, 16) >> 8, 3, axis=-1).astype("u1"), 1
    image = Image.open(io.BytesIO(data))
    orientation = image.getexif().get(274, 1)
    if name.startswith("tiff") and orientation > 1:  # Pillow applies only TIFF orientation on loading
        data = data.replace(struct.pack("<HHIHH", 274, 3, 1, orientation, 0), struct.pack("<HHIHH", 274, 3, 1, 1, 0))
        image = Image.open(io.BytesIO(data))
    return numpy.asarray(image.convert("RGB")), orientation


def main():
    lines = []
    corpus = HERE.parent / "fuzz/corpus/images"
    corpus.mkdir(exist_ok=True)
    for name, data in [*bmp_cases(), *gif_cases(), *webp_cases(), *tiff_cases(), png_case()]:
        pixels, orientation = decoded(name, data)
        height, width = pixels.shape[:2]
        lines.append(f'{{"{name}", {width}, {height}, {orientation}, 0x{zlib.crc32(pixels.tobytes()):08x},')
        lines += [f' "{part}"' for part in textwrap.wrap(data.hex(), 114)]
        lines[-1] += "},"
        if not name.startswith("png"):
            (corpus / "".join(c if c.isalnum() else "_" for c in name)).write_bytes(b"\0" + data)
    head = "// Made by image_formats.py: name, width, height, orientation, CRC-32 of the pixels as stored, the file in hex.\n"
    (HERE / "image_formats.inc").write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
