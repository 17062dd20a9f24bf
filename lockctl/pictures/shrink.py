"""Writes a PNG of a browser anew with a palette, which a page of few colours needs no more than."""

import struct
import sys
import zlib


def chunks(png):
    at = 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += size + 12


def rows(data, height, stride, step):
    """Each row, with its filter undone."""
    above = bytes(stride)
    for number in range(height):
        start = number * (stride + 1)
        kind, row = data[start], bytearray(data[start + 1 : start + 1 + stride])
        for i, value in enumerate(row):
            left = row[i - step] if i >= step else 0
            up, corner = above[i], above[i - step] if i >= step else 0
            guess = left + up - corner
            nearest = min((abs(guess - it), rank, it) for rank, it in enumerate((left, up, corner)))[2]
            row[i] = (value + (0, left, up, (left + up) // 2, nearest)[kind]) % 256
        yield row
        above = row


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def shrink(png):
    parts = list(chunks(png))
    width, height, _, colour = struct.unpack(">IIBB", parts[0][1][:10])
    step = {2: 3, 6: 4}[colour]
    data = zlib.decompress(b"".join(data for name, data in parts if name == b"IDAT"))
    # Sixteen shades of each colour; white stays white.
    shade = [(value // 16) * 17 for value in range(256)]
    palette, lines = {}, []
    for row in rows(data, height, width * step, step):
        pixels = (tuple(shade[row[i + j]] for j in range(3)) for i in range(0, width * step, step))
        lines.append(b"\0" + bytes(min(palette.setdefault(it, len(palette)), 255) for it in pixels))
    colours = bytes(value for colour in list(palette)[:256] for value in colour)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    body = zlib.compress(b"".join(lines), 9)
    return png[:8] + chunk(b"IHDR", head) + chunk(b"PLTE", colours) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


source, target = sys.argv[1:]
with open(source, "rb") as file:
    png = file.read()
with open(target, "wb") as file:
    file.write(shrink(png))
