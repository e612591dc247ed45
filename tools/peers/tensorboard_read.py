#!/usr/bin/env python3
"""Reads the folder of a training run with TensorBoard's own EventAccumulator, and compares each scalar with log.csv:

    python3 tools/peers/tensorboard_read.py runs/mlp_mnist...

A value in log.csv has 17 digits; TensorBoard's is the nearest float32. Exit status 1: something differs."""
import csv
import math
import os
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

# The column of log.csv, the name in TensorBoard, and whether the rows of all splits have it or those of training alone.
COLUMNS = (("loss", "loss/{}", True), ("accuracy", "accuracy/{}", True),
           ("images_per_second", "images_per_second/{}", True), ("lr", "lr", False),
           ("gradient_norm", "gradient_norm", False))


def float32(text):
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


def expected_scalars(folder):
    """{name: [(step, time, value)]} of log.csv."""
    scalars = {}
    with open(os.path.join(folder, "log.csv"), newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for column, name, everywhere in COLUMNS:
                if row[column] and (everywhere or row["split"] == "train"):
                    found = (int(row["step"]), float(row["time"]), float32(row[column]))
                    scalars.setdefault(name.format(row["split"]), []).append(found)
    return scalars


def read_scalars(accumulator):
    """The same of the event files, and the names of what is text."""
    tags = accumulator.Tags()
    scalars = {tag: [(e.step, e.wall_time, e.value) for e in accumulator.Scalars(tag)] for tag in tags["scalars"]}
    texts = []
    for tag in tags["tensors"]:
        for event in accumulator.Tensors(tag):
            value = tensor_util.make_ndarray(event.tensor_proto)
            if value.dtype.kind == "f":  # a version that turns scalars into tensors
                scalars.setdefault(tag, []).append((event.step, event.wall_time, float(value.item())))
            else:
                texts.append((tag, value.item() if value.size == 1 else value))
    return scalars, texts


def check(folder):
    accumulator = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    expected, (read, texts) = expected_scalars(folder), read_scalars(accumulator)
    wrong = [f"{tag} is only in the event file" for tag in sorted(set(read) - set(expected))]
    for tag, rows in sorted(expected.items()):
        found = read.get(tag, [])
        if len(found) != len(rows):
            wrong.append(f"{tag}: {len(found)} values, log.csv has {len(rows)}")
        for have, want in zip(found, rows):
            if have[0] != want[0] or not math.isclose(have[1], want[1], abs_tol=1e-6) or have[2] != want[2]:
                wrong.append(f"{tag}: step, time, value {have}, log.csv has {want}")
                break
    for tag, text in texts:
        if not text:
            wrong.append(f"the text {tag} is empty")
    print(f"{folder}: {sum(map(len, read.values()))} values of {len(read)} scalars, {len(texts)} texts "
          f"({', '.join(tag for tag, _ in texts)}): {'as in log.csv' if not wrong else 'NOT as in log.csv'}")
    for line in wrong:
        print("  " + line)
    return not wrong and bool(read)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(0 if all([check(folder) for folder in sys.argv[1:]]) else 1)
