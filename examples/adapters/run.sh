#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What adapters, frozen weights in fewer bits and other optimizers save: trained parameters, step time, memory.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")

# row NAME FLAG...: trained adapters, step, memory of weights, of the optimizer and of all.
row() {
  "$orrery" simulate --allow-oom --json "${@:2}" | awk -v name="$1" -F': ' '
    { gsub(/[",]/, "", $2) }
    /"adapter_parameters"/ { adapters = $2 } /"step_time_s"/ && !step { step = $2 }
    /"memory_bytes": \[/ { inside = 1 }
    inside && /"parameters"/ { weights = $2 } inside && /"optimizer"/ { states = $2 }
    inside && /"total"/ { total = $2 } inside && /"capacity"/ { inside = 0; fits = total + 0 <= $2 + 0 }
    END { gib = 2 ^ 30
          printf "%-26s %12d %8.3f %9.2f %9.2f %8.2f%s\n", name, adapters, step, weights / gib, states / gib, total / gib,
                 (fits ? "" : "  does not fit") }'
}
heading() { printf '%-26s %12s %8s %9s %9s %8s\n' "$1" adapters "step s" weights states "all GiB"; }

one="--microbatch 4 --global-batch 4 --sequence 1024 --recompute full"
heading "RTX 4090, rank 16"
for model in llama-2-7b llama-3-8b; do
  # shellcheck disable=SC2086  # several words
  row "$model, trained whole" --model "$model" --machine rtx-4090 $one
  for type in compute_type fp8 int8 int4 nf4; do
    # shellcheck disable=SC2086
    row "$model, $type" --model "$model" --machine rtx-4090 $one --lora-rank 16 --frozen-type "$type" \
      --autograd hugging_face
  done
  # shellcheck disable=SC2086
  row "$model, q k v as one" --model "$model" --machine rtx-4090 $one --lora-rank 16
done

echo
heading "8 A100, llama-2-7b"
for optimizer in adam adamw_8bit adafactor lion muon sgd; do
  row "$optimizer" --model llama-2-7b --machine dgx-a100-80g --dp 8 --zero 1 --global-batch 8 --optimizer "$optimizer"
done
