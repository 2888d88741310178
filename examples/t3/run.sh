#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# T3's published sub-layers, training and prompts beside this simulator's. Rows: a name of 34 characters, then numbers.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# step MODEL SEQUENCES TP TECHNIQUE [FLAG...]: one microbatch on the example's machine, as JSON.
step() {
  "$orrery" simulate --model "$1" --machine "$here/machine.yaml" --tp "$3" --sequence-parallel false --microbatch "$2" \
    --global-batch "$2" --attention flash --tp-algorithm ring --overlap-tensor "$4" --allow-oom --json "${@:5}"
}

# products MODEL SEQUENCES TP TECHNIQUE: of the four sub-layers name, ideal gain, gain, and the gathered memory traffic.
products() {
  step "$@" | awk -F': ' '
    /"products": \[/ { inside = 1 }
    !inside { next }
    { gsub(/[",]/, "", $2) }
    /"name"/ { name = $2 }
    /"sequential_s"/ { sequential = $2 } /"ideal_s"/ { ideal = $2 } /"overlapped_s"/ { overlapped = $2 }
    /"unfused_bytes"/ { unfused = 1 } /"fused_bytes"/ && !/unfused/ { unfused = 0 }
    /"total"/ && unfused { before = $2 }
    /"total"/ && !unfused {
      if (name ~ /^(proj_gemm|fc2_gemm|fc1_gemm_input_gradient|qkv_gemm_input_gradient)$/)
        print name, sequential / ideal, sequential / overlapped, $2 / before
      name = ""
    }'
}

# sublayers MODEL SEQUENCES TP LABEL: rows of ideal, T3, T3-MCA and memory traffic over that without.
sublayers() {
  products "$1" "$2" "$3" tracked | sort >"$work/tracked"
  products "$1" "$2" "$3" tracked_mca | sort >"$work/mca"
  join "$work/tracked" "$work/mca" | awk -v label="$4" \
    '{ printf "%-34s %8.3f %8.3f %8.3f %8.3f\n", label " " $1, $2, $3, $6, $4 }' | tee -a "$work/rows"
}

# summary LABEL: geometric means and largest of the rows since the last summary; of traffic the mean and the least.
summary() {
  awk -v label="$1" '{ for (i = 0; i < 4; ++i) { v = $(NF - 3 + i); s[i] += log(v); t[i] += v
      if (NR == 1 || (i < 3 ? v > m[i] : v < m[i])) m[i] = v } }
    END { printf "%-34s", label " geomean"; for (i = 0; i < 3; ++i) printf " %8.3f", exp(s[i] / NR)
          printf " %8.3f\n%-34s", t[3] / NR, label " largest"; for (i = 0; i < 4; ++i) printf " %8.3f", m[i]; print "" }' \
    "$work/rows"
  rm "$work/rows"
}

# training MODEL SEQUENCES TP LABEL: step time without, and the gains of cu_split, T3 and T3-MCA.
training() {
  for technique in none cu_split tracked tracked_mca; do
    step "$1" "$2" "$3" "$technique" | awk -F': ' '/"step_time_s"/ && !n++ { print $2 + 0 }'
  done | awk -v label="$4" 'NR == 1 { base = $1; printf "%-34s %8.4f", label, base } NR > 1 { printf " %8.3f", base / $1 }
    END { print "" }'
}

# prompts MODEL SEQUENCES TOKENS TP LABEL: the time of one pass over prompts, and the gains of the three.
prompts() {
  cat >"$work/engine.yaml" <<END
engine: vllm@0.19
parallel: {tp: $4, all_reduce: ring}
scheduler: {max_num_seqs: $2, max_num_batched_tokens: $(($2 * $3)), max_model_len: $3}
cache: {blocks: 4096}
END
  for technique in none cu_split tracked tracked_mca; do
    "$orrery" serve --model "$1" --machine "$here/machine.yaml" --engine "$work/engine.yaml" --requests "$2" \
      --arrival infinite --input $(($3 - 1)) --output 1 --overlap-tensor "$technique" --json |
      awk -F': ' '/"duration_s"/ && !n++ { print $2 + 0 }'
  done | awk -v label="$5" 'NR == 1 { base = $1; printf "%-34s %8.4f", label, base } NR > 1 { printf " %8.3f", base / $1 }
    END { print "" }'
}

echo "hypothetical hardware: a tracker near the memory and sums in it (machine.yaml)"
printf '%-34s %8s %8s %8s %8s\n' "gain over one after the other" ideal T3 T3-MCA traffic
for tp in 8 16; do
  sublayers "$here/mega-gpt-2.json" 16 "$tp" "gpt-2/$tp"
  sublayers "$here/t-nlg.json" 8 "$tp" "t-nlg/$tp"
done
summary "TP 8 and 16"
sublayers gpt3-175b 3 32 "gpt-3/32"
sublayers "$here/palm-shape.json" 2 32 "palm/32"
sublayers mt-nlg-530b 2 32 "mt-nlg/32"
summary "TP 32, recalled shapes,"
printf '\n%-34s %8s %8s %8s %8s\n' "training: step, gains" seconds cu_split T3 T3-MCA
for tp in 8 16; do
  training "$here/mega-gpt-2.json" 16 "$tp" "training gpt-2/$tp"
  training "$here/t-nlg.json" 8 "$tp" "training t-nlg/$tp"
done
training gpt3-175b 3 32 "training gpt-3/32"
training mt-nlg-530b 2 32 "training mt-nlg/32"
printf '\n%-34s %8s %8s %8s %8s\n' "prompts: a pass, gains" seconds cu_split T3 T3-MCA
for tp in 8 16; do
  prompts "$here/mega-gpt-2.json" 16 1024 "$tp" "prompts gpt-2/$tp"
  prompts "$here/t-nlg.json" 8 1024 "$tp" "prompts t-nlg/$tp"
done
prompts gpt3-175b 3 2048 32 "prompts gpt-3/32"
prompts mt-nlg-530b 2 2048 32 "prompts mt-nlg/32"
