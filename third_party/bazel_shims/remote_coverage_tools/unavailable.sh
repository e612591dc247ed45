#!/bin/sh
echo "bazel coverage needs Bazel's coverage tools, which this offline workspace leaves out" >&2
exit 1
