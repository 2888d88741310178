#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experts over devices: how they are split, and how their tokens travel.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")

# simulate FLAGS...: step time in s, exposed and hidden token exchange in s, memory in GiB.
simulate() {
  "$orrery" simulate --csv --allow-oom --zero 1 --attention flash --sequence 4096 "$@" |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
             { printf "%9.3f %9.3f %9.3f %11.1f\n", $at["step_time_s"], $at["breakdown_s.ep_exposed"],
                      $at["hidden_s.ep"], $at["memory_bytes.total"] / 1024 ^ 3 }'
}

echo "# Mixtral 8x7B on 64 H100s, tp 2: experts over ep devices, each split over etp"
printf '%-24s %9s %9s %9s %11s\n' "" "step s" "exposed" "hidden" "memory GiB"
for split in "1 2" "2 2" "4 2" "8 2" "4 1" "8 1"; do
  ep=${split% *}
  etp=${split#* }
  printf '%-24s ' "ep $ep, etp $etp"
  simulate --model mixtral-8x7b --machine dgx-h100 --tp 2 --dp 32 --sequence-parallel \
    --global-batch 256 --overlap-grad-reduce --overlap-param-gather --ep "$ep" --etp "$etp"
done

# deepseek NAME FLAGS...
deepseek() {
  printf '%-24s ' "$1"
  shift
  simulate --model deepseek-v3 --machine dgx-h800 --pp 16 --dp 16 --ep 16 --global-batch 512 \
    --recompute full --stage-layers auto --overlap-p2p "$@"
}
echo "# DeepSeek-V3 on 256 H800s, pp 16, ep 16: how tokens travel"
printf '%-24s %9s %9s %9s %11s\n' "" "step s" "exposed" "hidden" "memory GiB"
deepseek alltoall --moe-dispatch alltoall
deepseek hierarchical --moe-dispatch hierarchical
deepseek "alltoall, overlap_ep" --moe-dispatch alltoall --overlap-ep
deepseek "hierarchical, overlap_ep" --moe-dispatch hierarchical --overlap-ep
