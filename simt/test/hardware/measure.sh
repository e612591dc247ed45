#!/usr/bin/env bash
# measure.sh - a GPU's counters for the launches of a program, read with Nsight Compute; on a machine with a GPU.
#
#   measure.sh OUT                        builds launches.cu for the GPU here and writes OUT/launches.csv
#   measure.sh OUT NAME PROGRAM [ARG..]   the same for a program that is already built: OUT/NAME.csv
#
# Beside the .csv lie NAME.ncu.txt.gz, what ncu printed, and for launches.cu its machine code. A launch is replayed some
# ten times. NCU_ARGS adds options (--launch-count 200, say). The clocks are left as they are: no counter here depends on them.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || [ $# -ge 3 ] || {
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
out=$1
mkdir -p "$out"
if [ $# -eq 1 ]; then
  name=launches
  arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
  nvcc -O3 -arch="sm_$arch" -o "$out/launches.bin" "$here/launches.cu" || exit 1
  cuobjdump --dump-sass "$out/launches.bin" | gzip -9 >"$out/launches.sass.gz"
  program=("$out/launches.bin")
else
  name=$2
  shift 2
  program=("$@")
fi

metrics=(
  l1tex__t_{requests,sectors}_pipe_lsu_mem_global_op_{ld,st,red,atom}.sum
  smsp__inst_executed_op_shared_{ld,st,atom}.sum
  l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{ld,st}.sum
  l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{ld,st}.sum
)
optional=(
  smsp__sass_branch_targets{,_threads_uniform,_threads_divergent}.sum
  smsp__inst_executed.sum smsp__thread_inst_executed{,_pred_on}.sum
  smsp__inst_executed_op_branch.sum smsp__inst_executed_op_local_{ld,st}.sum
  smsp__sass_data_bytes_mem_global_op_{ld,st}.sum
  smsp__sass_inst_executed_op_shared_{ld,st}.sum
  smsp__inst_executed_op_{ldgsts,ldsm}.sum
  smsp__sass_l1tex_t_{requests,sectors}_pipe_lsu_mem_global_op_ldgsts{,_cache_access,_cache_bypass}.sum
  smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{ldgsts,ldsm}.sum
  smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_{ldgsts,ldsm}.sum
)
# A metric that this GPU does not have would make ncu refuse all of them.
ncu --query-metrics >"$out/metrics.txt" 2>&1
for metric in "${optional[@]}"; do
  if grep -q "^${metric%.sum}[[:space:]]" "$out/metrics.txt"; then
    metrics+=("$metric")
  else
    echo "measure.sh: no metric $metric here" >&2
  fi
done
rm -f "$out/metrics.txt"

list=$(IFS=,; echo "${metrics[*]}")
# shellcheck disable=SC2086
ncu --csv --print-units base --print-kernel-base function --clock-control none ${NCU_ARGS:-} --metrics "$list" \
  --log-file "$out/$name.ncu.txt" "${program[@]}" >"$out/$name.out.txt" 2>&1
status=$?
rm -f "$out/launches.bin"
python3 "$here/compare.py" compact "$out/$name.ncu.txt" >"$out/$name.csv" || {
  tail -n 20 "$out/$name.ncu.txt" "$out/$name.out.txt" >&2
  exit 1
}
gzip -9 -f "$out/$name.ncu.txt"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
nvcc --version | grep release
echo "$name: ncu exit $status, $(($(wc -l <"$out/$name.csv") - 1)) launches, $(head -n 1 "$out/$name.csv" | tr , '\n' | grep -c _) counters"
head -n 4 "$out/$name.csv" | cut -c 1-160
