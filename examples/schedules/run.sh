#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One model, one machine, eight pipeline schedules: step time, bubble and memory of the fullest stage.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")

# Columns of the CSV line by their names in the header.
columns() {
  awk -F, -v name="$1" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { printf "%-12s %8.1f %9.1f %9.1f\n", name, 1e3 * $at["step_time_s"],
             1e3 * $at["breakdown_s.bubble"], $at["memory_bytes.total"] / 1024 ^ 3 }'
}

printf '%-12s %8s %9s %9s\n' schedule "step ms" "bubble ms" "memory GiB"
for schedule in gpipe 1f1b interleaved zb-h1 zb-v v-half v-min dualpipe; do
  case $schedule in
    interleaved | zb-v | v-half | v-min) chunks=2 ;;
    *) chunks=1 ;;
  esac
  "$orrery" simulate --model llama-2-70b --machine dgx-h100 --tp 8 --pp 8 --sequence-parallel true \
    --attention flash --global-batch 32 --overlap-p2p true --schedule "$schedule" \
    --chunks "$chunks" --csv | columns "$schedule"
done
