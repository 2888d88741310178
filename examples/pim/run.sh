#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# GPT-2 on PIM-GPT and on a T4, one request and many.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")

"$orrery" gemm --machine pim-gpt --m 1 --n 3072 --k 768
printf '%-10s %-10s %10s %16s %16s\n' machine engine requests "mean TPOT (ms)" "tokens/s"
for requests in 1 4 32; do
  for setting in pim-gpt:engine t4:graphs t4:eager; do
    "$orrery" serve --model gpt2 --machine "${setting%:*}" --engine "$here/${setting#*:}.yaml" \
      --arrival infinite --max-concurrency "$requests" --requests "$requests" --input 8 --output 512 |
      awk -v machine="${setting%:*}" -v engine="${setting#*:}" -v requests="$requests" '
        /Mean TPOT/ { tpot = $NF } /Output token throughput/ { tokens = $NF }
        END { printf "%-10s %-10s %10d %16s %16s\n", machine, engine, requests, tpot, tokens }'
  done
done
