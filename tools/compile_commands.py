#!/usr/bin/env python3
"""Writes compile_commands.json for clangd: tools/compile_commands.py [--config=cuda]

Options go to Bazel, so the file describes that backend. Bazel's own record of its commands (aquery) is the source;
nvcc's are turned into what clang understands.
"""
import json
import os
import re
import subprocess
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    sys.exit(print(__doc__))
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GCC_ONLY = {"-fno-canonical-system-headers", "-Wno-free-nonheap-object"}
TAKES_VALUE = {"-I", "-D", "-isystem", "-iquote", "-include"}


def bazel(*arguments):
    result = subprocess.run(["bazel", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit("compile_commands.py: bazel failed; its message stands above")
    return result.stdout


def from_gcc(arguments):
    return [a for a in arguments if a not in GCC_ONLY]


def from_nvcc(arguments):
    """clang compiles CUDA itself; it wants the toolkit's place, one architecture, includes and defines."""
    toolkit = os.path.dirname(os.path.dirname(os.path.realpath(arguments[0])))
    command = ["clang++", "-x", "cuda", "--cuda-path=" + toolkit, "-nocudalib", "--cuda-gpu-arch=sm_80"]
    command += ["-std=c++17", "-fopenmp"]
    arguments = iter(arguments[1:])
    for a in arguments:
        if a in TAKES_VALUE:
            command += [a, next(arguments)]
        elif a[:2] in ("-I", "-D"):
            command.append(a)
        elif a == "-c":
            command += [a, next(arguments)]
    return command


def source_of(arguments):
    """The file after -c; the cpu backend's copy of x.cu stands for x.cu itself."""
    source = arguments[arguments.index("-c") + 1]
    parts = source.split("/")
    if "_cpu" in parts:  # bazel-out/CONFIG/bin/PACKAGE/_cpu/NAME/x.cu.cpp
        at = parts.index("_cpu")
        return "/".join(parts[3:at] + [parts[-1][: -len(".cpp")]])
    return source


def main():
    record = json.loads(
        bazel("aquery", "--output=jsonproto", *sys.argv[1:], 'mnemonic("CppCompile|CudaCompile", //...)')
    )
    external = bazel("info", "output_base").strip() + "/external/"
    entries = {}
    for action in record.get("actions", []):
        arguments = action["arguments"]
        source = source_of(arguments)
        if source.startswith("external/"):
            continue
        command = from_nvcc(arguments) if action["mnemonic"] == "CudaCompile" else from_gcc(arguments)
        command[command.index("-c") + 1] = source
        if source.endswith(".cu") and "-x" not in command:
            command[1:1] = ["-x", "c++"]
        command = [re.sub("^(-I)?external/", r"\1" + external, a) for a in command]
        entries.setdefault(source, {"directory": ROOT, "file": source, "arguments": command})
    if not entries:
        sys.exit("compile_commands.py: bazel compiles nothing here")
    with open(os.path.join(ROOT, "compile_commands.json"), "w", encoding="utf-8") as out:
        json.dump(list(entries.values()), out, indent=1)
    print("compile_commands.json: %d files" % len(entries))


if __name__ == "__main__":
    main()
