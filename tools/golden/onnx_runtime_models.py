#!/usr/bin/env python3
"""Small ONNX models for the tests of phase5_production/10_onnx_runtime; needs python3-onnx.

    tools/golden/onnx_runtime_models.py phase5_production/10_onnx_runtime/testdata

colours.onnx    (N,3,8,8) -> the mean of each channel, and of all three: classes red, green, blue, bright
twice.onnx      (N,3,H,W) -> (N,3,2H,2W), each pixel four times
twice_luma.onnx (N,1,H,W) -> (N,1,2H,2W), the same for one channel
shares.onnx     (N,3,8,8) -> Softmax of the root of the mean of each channel: NaN where it is negative
one_width.onnx  (N,3,H,W) -> the same; it fails where W is not 20, and does not say so
logarithm.onnx  (2,3,8,8), a fixed batch -> the logarithm of the mean of each channel: -inf where it is black
"""
import json
import os
import sys

import onnx
from onnx import TensorProto, helper


def save(folder, name, nodes, x, y, constants=(), metadata=()):
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
        [helper.make_tensor(label, TensorProto.FLOAT, shape, values) for label, shape, values in constants])
    model = helper.make_model(graph, producer_name="nn", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, dict(metadata))
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(folder, name + ".onnx"))


def plain(resize):
    return json.dumps({"layout": "NCHW", "channels": "rgb", "height": 8, "width": 8, "resize": resize,
                       "mean": [0, 0, 0], "stddev": [1, 1, 1]})


def main(folder):
    means = [helper.make_node("GlobalAveragePool", ["x"], ["mean"]), helper.make_node("Flatten", ["mean"], ["means"])]
    third = 1 / 3 + 0.01
    save(folder, "colours", means + [helper.make_node("Gemm", ["means", "w"], ["y"])], ["N", 3, 8, 8], ["N", 4],
         [("w", [3, 4], [20, 0, 0, 20 * third, 0, 20, 0, 20 * third, 0, 0, 20, 20 * third])],
         {"class_names": json.dumps(["red", "green", "blue", 'bright, or "white"']), "preprocessing": plain(8)})
    for name, channels in (("twice", 3), ("twice_luma", 1)):
        save(folder, name, [helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest",
                                             coordinate_transformation_mode="asymmetric", nearest_mode="floor")],
             ["N", channels, "H", "W"], ["N", channels, "H2", "W2"], [("scales", [4], [1, 1, 2, 2])])
    save(folder, "shares", means + [helper.make_node("Sqrt", ["means"], ["roots"]),
                                    helper.make_node("Softmax", ["roots"], ["y"], axis=1)],
         ["N", 3, 8, 8], ["N", 3], (), {"preprocessing": plain(8)})
    save(folder, "one_width", [helper.make_node("Add", ["x", "zeros"], ["y"])],
         ["N", 3, "H", "W"], ["N", 3, "H", "W2"], [("zeros", [20], [0] * 20)])
    save(folder, "logarithm", means + [helper.make_node("Log", ["means"], ["y"])], [2, 3, 8, 8], [2, 3], (),
         {"preprocessing": plain(0)})


if __name__ == "__main__":
    main(sys.argv[1])
