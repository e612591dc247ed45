#!/usr/bin/env python3
"""Compares the inspector's counters with a GPU's, launch by launch.

  compare.py compact NCU.csv > h200.csv                     what ncu printed, one line per launch
  compare.py check h200.csv REPORT.json                     fails where they differ and exceptions.txt does not say why
  compare.py inspected h200.csv REPORT.json > inspected.csv   the inspector's figures, one line per launch
  compare.py table h200.csv inspected.csv > h200.md         both as Markdown tables
  compare.py tables                                         the tables of all *h200.csv, *h100.csv and *inspected.csv
                                                            beside this script; with --check it only reports those
                                                            that differ

REPORT.json is what an inspected program writes with SIMT_INSPECT_LAUNCHES=1 SIMT_REPORT=json:REPORT.json.
Launches are paired in order among those of the same kernel, grid and block. Kernels that only the GPU ran (a library's)
are left out, unless the program launched one through a pointer `kernel`, which is the name that the inspector knows.
exceptions.txt, beside this script, has on each line a kernel, a counter (or * for all) and the cause.
"""
import csv
import glob
import json
import os
import re
import sys
from collections import defaultdict

# Short name, Nsight Compute's name, and the inspector's where it does not give the former. The first ten are compared.
GLOBAL = "l1tex__t_%s_pipe_lsu_mem_global_op_%s.sum"
WAVES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_%s.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_%s.sum"
COUNTERS = [
    ("load requests", GLOBAL % ("requests", "ld")),
    ("load sectors", GLOBAL % ("sectors", "ld")),
    ("store requests", GLOBAL % ("requests", "st")),
    ("store sectors", GLOBAL % ("sectors", "st")),
    ("shared loads", "smsp__inst_executed_op_shared_ld.sum"),
    ("wavefronts", WAVES % "ld"),
    ("conflicts", CONFLICTS % "ld"),
    ("shared stores", "smsp__inst_executed_op_shared_st.sum"),
    ("wavefronts", WAVES % "st"),
    ("conflicts", CONFLICTS % "st"),
]
ATOMICS = [
    (GLOBAL % ("requests", "red"), GLOBAL % ("requests", "atom"), "global_atomic_requests"),
    (GLOBAL % ("sectors", "red"), GLOBAL % ("sectors", "atom"), "global_atomic_sectors"),
    ("smsp__inst_executed_op_shared_atom.sum", None, "shared_atomic_requests"),
]
BRANCHES = "smsp__sass_branch_targets.sum"
UNIFORM = "smsp__sass_branch_targets_threads_uniform.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
LANES = "smsp__thread_inst_executed.sum"
LANES_ON = "smsp__thread_inst_executed_pred_on.sum"
# What inspected.csv holds of each launch: what is compared, and two figures as the table shows them.
UNIFORM_PERCENT, LANES_PER_STEP = "uniform_branches_percent", "lanes_per_step"
FIGURES = [metric for _, metric in COUNTERS] + [name for _, _, name in ATOMICS]


HERE = os.path.dirname(os.path.abspath(__file__))


def base_name(kernel):
    """'void ns::copy<(int)4>(const float *)' and 'ns::copy<4>' are both 'copy'."""
    depth, name = 0, ""
    for character in kernel.replace("(anonymous namespace)::", ""):
        if character == "(" and depth == 0:
            break
        depth += (character == "<") - (character == ">")
        if depth == 0 and character != ">":
            name += character
    return re.split(r"[\s:*&]+", name.strip())[-1]


def triple(text):
    """'(4, 4, 1)', '4x4x1' and [4, 4, 1] as (4, 4, 1)."""
    if isinstance(text, dict):
        return (text["x"], text["y"], text["z"])
    if isinstance(text, str):
        text = re.findall(r"\d+", text)
    return tuple((list(map(int, text)) + [1, 1])[:3])


def compact(path):
    """ncu's long form, a line for each launch and metric, between lines of other output."""
    launches, names = {}, []
    with open(path, newline="") as lines:
        rows = csv.reader(line for line in lines if line.startswith('"'))
        header = next(rows)
        column = {name: i for i, name in enumerate(header)}
        for row in rows:
            if len(row) != len(header) or row == header:
                continue
            cell = lambda name: row[column[name]]
            launch = launches.setdefault(int(cell("ID")), {
                "kernel": base_name(cell("Kernel Name")),
                "grid": "x".join(map(str, triple(cell("Grid Size")))),
                "block": "x".join(map(str, triple(cell("Block Size")))),
            })
            launch[cell("Metric Name")] = cell("Metric Value").replace(",", "")
            if cell("Metric Name") not in names:
                names.append(cell("Metric Name"))
    if not launches:
        sys.exit("compare.py: error: %s holds no launch: did ncu fail? Its messages are in the same file." % path)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["kernel", "grid", "block"] + names)
    for _, launch in sorted(launches.items()):
        out.writerow([launch.get(name, "") for name in ["kernel", "grid", "block"] + names])


def number(text):
    value = float(text)
    return int(value) if value == int(value) else value


def read_gpu(path):
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            yield (row["kernel"], triple(row["grid"]), triple(row["block"])), {
                name: number(value) for name, value in row.items()
                if name not in ("kernel", "grid", "block") and value not in ("", "n/a", None)
            }


def read_ours(path):
    """REPORT.json or inspected.csv."""
    if path.endswith(".csv"):
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                figures = {name: number(row[name]) for name in FIGURES if row[name]}
                figures.update({name: row[name] for name in (UNIFORM_PERCENT, LANES_PER_STEP)})
                yield (row["kernel"], triple(row["grid"]), triple(row["block"])), figures
        return
    with open(path) as file:
        for kernel in json.load(file)["kernels"]:
            counters = dict(kernel["counters"])
            counters.update(kernel.get("nsight", {}))
            yield (base_name(kernel["name"]), triple(kernel["grid"]), triple(kernel["block"])), counters


def read_exceptions():
    path = os.path.join(HERE, "exceptions.txt")
    found = []
    with open(path) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                kernel, counter, cause = line.split(None, 2)
                found.append((kernel, counter, cause.strip()))
    return found


def pair(gpu_path, our_path):
    """The launches in the GPU's order: (name, grid, block), theirs, ours."""
    queues, pairs, foreign, missing = defaultdict(list), [], defaultdict(int), []
    known = set()
    for signature, counters in read_ours(our_path):
        queues[signature].append(counters)
        known.add(signature[0])
    for signature, counters in read_gpu(gpu_path):
        pointer = ("kernel",) + signature[1:]
        if signature[0] not in known and queues[pointer]:
            pairs.append((signature, counters, queues[pointer].pop(0)))
        elif signature[0] not in known:
            foreign[signature[0]] += 1
        elif not queues[signature]:
            missing.append(signature)
        else:
            pairs.append((signature, counters, queues[signature].pop(0)))
    left = {signature: len(queue) for signature, queue in queues.items() if queue}
    return pairs, foreign, missing, left


def differences(pairs):
    """For each pair the list of (counter, ours, theirs) that differ, and how many figures were compared."""
    result, compared = [], 0
    for signature, gpu, ours in pairs:
        differs = []
        figures = [(metric, ours.get(metric), gpu.get(metric)) for _, metric in COUNTERS]
        for one, other, name in ATOMICS:
            if one in gpu:
                figures.append((name, ours.get(name), gpu[one] + gpu.get(other, 0)))
        for name, mine, theirs in figures:
            if mine is None or theirs is None:
                continue
            compared += 1
            if mine != theirs:
                differs.append((name, mine, theirs))
        result.append(differs)
    return result, compared


def cause_of(exceptions, kernel, counter):
    for index, (name, which, cause) in enumerate(exceptions):
        if name in (kernel, "*") and which in (counter, "*"):
            return index
    return None


def sort_out(pairs, differs):
    exceptions, used, unexplained = read_exceptions(), set(), []
    for (signature, _, _), list_ in zip(pairs, differs):
        for counter, mine, theirs in list_:
            index = cause_of(exceptions, signature[0], counter)
            if index is None:
                unexplained.append((signature, counter, mine, theirs))
            else:
                used.add(index)
    ran = {signature[0] for signature, _, _ in pairs}
    # A cause "before gcc N" need not be there with a newer one.
    stale = [e for i, e in enumerate(exceptions) if i not in used and e[0] in ran and "before gcc" not in e[2]]
    return exceptions, unexplained, stale


def shape(signature):
    size = lambda v: "x".join(map(str, v)).removesuffix("x1").removesuffix("x1")
    return "%s <<<%s, %s>>>" % (signature[0], size(signature[1]), size(signature[2]))


def check(gpu_path, our_path):
    pairs, foreign, missing, left = pair(gpu_path, our_path)
    differs, compared = differences(pairs)
    _, unexplained, stale = sort_out(pairs, differs)
    unequal = sum(map(len, differs))
    for signature, counter, mine, theirs in unexplained:
        print("DIFFERS %s: %s: inspector %s, GPU %s" % (shape(signature), counter, mine, theirs))
    for signature in missing:
        print("MISSING %s: the inspector has no such launch" % shape(signature))
    for kernel, counter, cause in stale:
        print("EQUAL NOW, take it out of exceptions.txt: %s %s %s" % (kernel, counter, cause))
    if foreign:
        print("only on the GPU: %s" % ", ".join("%s (%d)" % item for item in sorted(foreign.items())))
    if left:
        print("only inspected: %d launches of %d shapes" % (sum(left.values()), len(left)))
    print("%d launches, %d of %d figures equal, %d explained, %d not" %
          (len(pairs), compared - unequal, compared, unequal - len(unexplained), len(unexplained)))
    return 1 if unexplained or missing or stale or not pairs else 0


def percent(part, whole):
    return "%.1f" % (100.0 * part / whole) if whole else ""


def inspected(gpu_path, our_path):
    pairs, _, _, _ = pair(gpu_path, our_path)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["kernel", "grid", "block"] + FIGURES + [UNIFORM_PERCENT, LANES_PER_STEP])
    for signature, _, ours in pairs:
        steps = ours.get("steps")
        out.writerow([signature[0]] + ["x".join(map(str, size)) for size in signature[1:]] +
                     [ours.get(name, "") for name in FIGURES] +
                     [percent(ours.get("uniform_branches", 0), ours.get("branches", 0)),
                      "%.1f" % (ours["step_lanes"] / steps) if steps else ""])
    return 0 if pairs else 1


def beside(gpu_path, ending):
    """The name of another file of the same comparison: x_h200.csv, or x_h100.csv, and x_inspected.csv."""
    return re.sub(r"h[12]00\.csv$", ending, gpu_path)


def table(gpu_path, our_path):
    """The text of the tables, and whether all differences are explained."""
    pairs, _, _, _ = pair(gpu_path, our_path)
    differs, compared = differences(pairs)
    exceptions, unexplained, _ = sort_out(pairs, differs)
    unequal = sum(map(len, differs))
    out = []
    preface = os.path.basename(beside(gpu_path, "preface.md"))
    with open(os.path.join(HERE, preface)) as file:
        out.append(file.read().rstrip())
    out.append("\n**%d launches, %d figures: %d equal to the last digit, %d differ.**\n" %
               (len(pairs), compared, compared - unequal, unequal))
    out.append("## What differs, and why\n")
    out.append("| launch | counter | inspector | GPU | cause |\n|---|---|---:|---:|---|")
    for (signature, _, _), list_ in zip(pairs, differs):
        for counter, mine, theirs in list_:
            index = cause_of(exceptions, signature[0], counter)
            cause = exceptions[index][2] if index is not None else "**not explained**"
            out.append("| %s | `%s` | %s | %s | %s |" % (shape(signature), counter, mine, theirs, cause))
    out.append("\n## All launches\n")
    out.append("One figure where both agree, else inspector / **GPU**; empty where both are 0. Device memory: requests and "
               "sectors of loads and of stores. Shared memory: instructions, wavefronts and bank conflicts of loads and of "
               "stores. Atomic operations: requests and sectors of device memory, requests of shared memory.\n")
    heads = [name for name, _ in COUNTERS] + ["atomics", "sectors", "shared atomics"]
    out.append("| launch | %s |\n|---|%s" % (" | ".join(heads), "---:|" * len(heads)))
    for signature, gpu, ours in pairs:
        cells = [(ours.get(metric, 0), gpu.get(metric, 0)) for _, metric in COUNTERS]
        cells += [(ours.get(name, 0), gpu.get(one, 0) + gpu.get(other, 0)) for one, other, name in ATOMICS]
        text = [("%s" % a if a else "") if a == b else "%s / **%s**" % (a, b) for a, b in cells]
        out.append("| %s | %s |" % (shape(signature), " | ".join(text)))
    out.append("\n## Divergence\n")
    out.append("The share of branches that all active lanes took in the same direction, in per cent; and the number of active "
               "lanes per step: for the inspector a step is a basic block, for the GPU an instruction (in brackets without "
               "the lanes that are predicated off). Compilers choose where to branch and where to predicate, so the two "
               "need not be equal.\n")
    out.append("| launch | uniform branches, inspector | GPU | lanes per step, inspector | GPU |\n|---|---:|---:|---:|---:|")
    for signature, gpu, ours in pairs:
        instructions = gpu.get(INSTRUCTIONS)
        theirs = "%.1f (%.1f)" % (gpu[LANES] / instructions, gpu.get(LANES_ON, 0) / instructions) if instructions else ""
        out.append("| %s | %s | %s | %s | %s |" % (
            shape(signature), ours[UNIFORM_PERCENT], percent(gpu.get(UNIFORM, 0), gpu.get(BRANCHES, 0)),
            ours[LANES_PER_STEP], theirs))
    return "\n".join(out) + "\n", not unexplained


def print_table(gpu_path, our_path):
    text, explained = table(gpu_path, our_path)
    sys.stdout.write(text)
    return 0 if explained else 1


def tables(only_check):
    failed, found = 0, sorted(glob.glob(os.path.join(HERE, "*h[12]00.csv")))
    for gpu_path in found:
        text, explained = table(gpu_path, beside(gpu_path, "inspected.csv"))
        path = gpu_path[:-len("csv")] + "md"
        name = os.path.basename(path)
        if not explained:
            print("compare.py: %s: a difference has no cause in exceptions.txt" % name)
            failed = 1
        if not only_check:
            with open(path, "w") as file:
                file.write(text)
        else:
            with open(path) as file:
                if file.read() != text:
                    print("compare.py: %s is not what `compare.py tables` writes: run it, do not edit the file" % name)
                    failed = 1
    print("%d tables%s" % (len(found), " checked" if only_check else " written"))
    return failed or not found


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "compact":
        return compact(sys.argv[2])
    if sys.argv[1:] in (["tables"], ["tables", "--check"]):
        return tables(len(sys.argv) == 3)
    commands = {"check": check, "inspected": inspected, "table": print_table}
    if len(sys.argv) == 4 and sys.argv[1] in commands:
        return commands[sys.argv[1]](sys.argv[2], sys.argv[3])
    print(__doc__.strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
