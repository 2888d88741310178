#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Llama-3.1-8B on H100: sessions whose beginnings are found in lower memory tiers, many adapters on
# one engine, a load that comes in stages to engines that start and stop, and a queue by what was
# computed.
set -eo pipefail
here=$(dirname "$0")
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
serve() { "$orrery" serve --model llama-3.1-8b --machine dgx-h100 --json "$@"; }
values() { # name field...
  awk -F'[:,]' -v name="$1" -v fields="$2" '
    /^  "[a-z0-9_]*": {/ { of = $1 } /^  }/ { of = "" }
    { key = $1; gsub(/[ "]/, "", key); top = of; gsub(/[ "]/, "", top)
      value[(top == "" ? "" : top ".") key] = $2 }
    END { n = split(fields, each, " "); printf "%-24s", name
          for (i = 1; i <= n; ++i) {
            number = value[each[i]]
            printf (number == int(number) ? " %11d" : " %11.3f"), number }
          printf "\n" }'
}

printf '%-24s %11s %11s %11s\n' "5 turns of a session" "TTFT (s)" "found" "fetched"
sessions="--turns 5 --think 20s --input 800 --output 200 --requests 1000"
for engine in small host disk; do
  serve $sessions --rate 0.3 --engine "$here/$engine.yaml" |
    values "$engine" "ttft_s.mean cached_tokens fetched_tokens"
done
for engine in host store; do
  serve $sessions --rate 1.2 --replicas 4 --engine "$here/$engine.yaml" |
    values "4 engines, $engine" "ttft_s.mean cached_tokens fetched_tokens"
done

printf '\n%-24s %11s %11s %11s\n' "adapters, 8 in memory" "TTFT (s)" "TPOT (s)" "copied"
for adapters in 0 1 8 64; do
  serve --rate 10 --input 500 --output 200 --requests 1000 --engine "$here/adapters.yaml" \
    --adapters $adapters | values "$adapters" "ttft_s.mean tpot_s.mean copied_adapters"
done

printf '\n%-24s %11s %11s %11s\n' "2, 40, 2 requests/s" "TTFT p50" "TTFT p99" "engine s"
stages="--stages 2:60s,40:120s,2:240s --input 1000 --output 250"
for replicas in 1 4; do
  serve $stages --replicas $replicas --router least_requests |
    values "$replicas fixed" "ttft_s.median ttft_s.p99 duration_s" |
    awk -v engines=$replicas '{ printf "%-24s %11s %11s %11.3f\n", $1 " " $2, $3, $4, $5 * engines }'
done
serve $stages --engine "$here/scaling.yaml" |
  values "1 to 4" "ttft_s.median ttft_s.p99 engine_seconds"

printf '\n%-24s %11s %11s %11s\n' "short and long answers" "TTFT p50" "E2E p50" "E2E p99"
for engine in fastserve orca vllm@0.10; do
  serve --rate 60 --input 'lognormal(300, 1)' --output 'lognormal(300, 1.2)' --requests 3000 \
    --engine $engine | values "$engine" "ttft_s.median e2e_s.median e2e_s.p99"
done
