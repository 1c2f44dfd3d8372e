"""Malicious images, built byte by byte."""
import io
import struct
import zlib

from serving import Image


def scene(width=96, height=64, mode="RGB"):
    """Three rectangles on a background, which the test detectors detect."""
    image = Image.new("RGB", (width, height), (40, 60, 90))
    for left, color in ((0.05, (200, 30, 30)), (0.4, (30, 200, 30)), (0.7, (240, 240, 60))):
        image.paste(color, (int(left * width), int(0.2 * height), int((left + 0.25) * width), int(0.8 * height)))
    return image.convert(mode)


def encoded(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_with(*chunks, image=None):
    """A PNG with additional chunks, pairs of name and data, before its pixels."""
    data = encoded(image or scene(), "PNG")
    at = data.index(b"IDAT") - 4
    return data[:at] + b"".join(chunk(name, content) for name, content in chunks) + data[at:]


def bomb(megabytes):
    """Decompression bomb: zeros, a thousand times the size, as a repeated compressed megabyte."""
    packer = zlib.compressobj(9)
    header = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return header + megabytes * block + b"\3\0" + struct.pack(">HH", (megabytes << 20) % 65521, 1)


def gigapixels(form):
    """A header with this size, and almost no pixels."""
    if form == "PNG":
        header = struct.pack(">IIBBBBB", (1 << 31) - 1, (1 << 31) - 1, 8, 2, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000)))
    if form == "JPEG":
        data = bytearray(encoded(scene(), "JPEG"))
        at = data.index(b"\xff\xc0")
        data[at + 5:at + 9] = b"\xff\xdc\xff\xdc"  # 65500 x 65500
        return bytes(data)
    if form == "GIF":
        data = bytearray(encoded(scene(), "GIF"))
        data[6:10] = b"\xff" * 4
        at = data.index(b",", 13 + 3 * 2 ** ((data[10] & 7) + 1))
        data[at + 5:at + 9] = b"\xff" * 4
        return bytes(data)
    if form == "WebP":
        data = bytearray(encoded(scene(), "WEBP", lossless=True))
        at = data.index(b"VP8L") + 9
        data[at:at + 4] = struct.pack("<I", 0x3fff | 0x3fff << 14)
        return bytes(data)
    if form == "BMP":
        data = bytearray(encoded(scene(), "BMP"))
        data[18:26] = struct.pack("<ii", (1 << 31) - 1, -(1 << 31))
        return bytes(data)
    return tiff({256: (4, 1, (1 << 32) - 1), 257: (4, 1, (1 << 32) - 1)})


def tiff(changes=(), following=0):
    """A grey TIFF of 8 x 8 pixels with changed tags (type, count, value) and offset of the next directory."""
    tags = {256: (4, 1, 8), 257: (4, 1, 8), 258: (3, 1, 8), 259: (3, 1, 1), 262: (3, 1, 1), 273: (4, 1, 200),
            277: (3, 1, 1), 278: (4, 1, 8), 279: (4, 1, 64), **dict(changes)}
    entries = b"".join(struct.pack("<HHII", tag, *entry) for tag, entry in sorted(tags.items()))
    data = b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + struct.pack("<I", following)
    return data.ljust(200, b"\0") + bytes(range(64))


def exif(*entries, following=0):
    """A JPEG with these EXIF entries: tag, type, count and value."""
    directory = struct.pack(">H", len(entries)) + b"".join(struct.pack(">HHII", *entry) for entry in entries)
    content = b"Exif\0\0MM\0*" + struct.pack(">I", 8) + directory + struct.pack(">I", following)
    data = encoded(scene(), "JPEG")
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content + data[2:]


def oriented(value):
    return exif((0x0112, 3, 1, value << 16))


def many_scans(count):
    """A progressive JPEG that repeats its short last scan."""
    data = encoded(scene(1000, 900), "JPEG", progressive=True)
    at = data.rindex(b"\xff\xda")
    return data[:at] + data[at:-2] * count + data[-2:]


def animated(form, frames=200):
    """The scene, followed by frames of noise."""
    others = [Image.new("RGB", (96, 64), (i % 256, 99, 7)) for i in range(frames)]
    return encoded(scene(), form, save_all=True, append_images=others, lossless=True, loop=0)


def apng():
    """A PNG whose animation has a huge second frame."""
    frame = struct.pack(">IIIIIHHBB", 1, 1 << 30, 1 << 30, 0, 0, 1, 10, 0, 0)
    return png_with((b"acTL", struct.pack(">II", 2, 0)), (b"fcTL", frame), (b"fdAT", struct.pack(">I", 2) + bomb(1)))
