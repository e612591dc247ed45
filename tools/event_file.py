#!/usr/bin/env python3
"""Prints what a file of TensorBoard holds, one JSON object per value: event_file.py FILE...

Reads the format with Python's standard library alone, from its description (TFRecord, event.proto, summary.proto), and
checks every checksum. A last record that was cut short is left out. Exit status 1: a file is damaged."""
import json
import struct
import sys

TABLE = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
    TABLE.append(i)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The payload of each whole record."""
    at = 0
    while at + 12 <= len(data):
        length, check = struct.unpack_from("<QI", data, at)
        if masked_crc(data[at:at + 8]) != check:
            raise ValueError(f"byte {at}: the checksum of the length is wrong")
        end = at + 12 + length
        if end + 4 > len(data):
            return
        payload = data[at + 12:end]
        if masked_crc(payload) != struct.unpack_from("<I", data, end)[0]:
            raise ValueError(f"byte {at + 12}: the checksum of {length} bytes is wrong")
        yield payload
        at = end + 4


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = struct.unpack_from("<d" if kind == 1 else "<f", data, at)[0], at + size
        else:
            raise ValueError(f"a field of type {kind}")
        if at > len(data):
            raise ValueError("a field goes beyond its message")
        yield key >> 3, value


def rows(payload):
    """What an event says: {"time", "step", "tag", "value"} or {"time", "step", "version"} or the like."""
    event = {"time": 0.0, "step": 0}
    said = []
    for number, value in fields(payload):
        if number == 1:
            event["time"] = value
        elif number == 2:
            event["step"] = value
        elif number == 3:
            said.append({"version": value.decode()})
        elif number == 7:
            said.append({"session": dict(fields(value)).get(1, 0)})
        elif number == 5:
            for _, one in fields(value):
                parts = dict(fields(one))
                row = {"tag": parts[1].decode()}
                if 2 in parts:
                    row["value"] = parts[2]
                if 8 in parts:
                    tensor = dict(fields(parts[8]))
                    row["text"] = tensor[8].decode()
                    row["plugin"] = dict(fields(dict(fields(parts[9]))[1]))[1].decode()
                    row["dtype"] = tensor[1]
                    row["size"] = dict(fields(dict(fields(tensor[2]))[2]))[1]
                said.append(row)
    return [dict(event, **row) for row in said]


def read(path):
    with open(path, "rb") as file:
        return [row for payload in records(file.read()) for row in rows(payload)]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try:
            for found in read(name):
                print(json.dumps(found))
        except (OSError, ValueError, KeyError, IndexError, struct.error) as error:
            sys.exit(f"{name}: {error}")
