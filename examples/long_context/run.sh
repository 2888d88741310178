#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sequences of 131,072 tokens over cp devices, with each way to exchange keys and values.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")

# run CP EXCHANGE FLAGS...
run() {
  printf '%4d %-11s ' "$1" "$2"
  cp=$1
  exchange=$2
  shift 2
  "$orrery" simulate --model llama-3-8b --machine dgx-h100 --sequence 131072 --global-batch 4 \
    --attention flash --recompute full --zero 1 --allow-oom --csv --cp "$cp" \
    --cp-exchange "$exchange" "$@" |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
             { printf "%9.2f %7.1f %13.3f %11.1f\n", $at["step_time_s"], 100 * $at["mfu"],
                      $at["breakdown_s.cp_exposed"], $at["memory_bytes.total"] / 1024 ^ 3 }'
}

printf '%4s %-11s %9s %7s %13s %11s\n' cp exchange "step s" "MFU %" "exchange s" "memory GiB"
for cp in 4 8 16; do
  run "$cp" p2p
  run "$cp" all_gather
  # The all-to-all deals out heads, and there are 8 key-value heads.
  if [ "$cp" -le 8 ]; then run "$cp" a2a; else run "$cp" a2a+p2p --cp-a2a 8; fi
done
