#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# TPI-LLM's four laptops: seconds a token beside the published ones, equal shares and shares by power.
set -eo pipefail
here=$(dirname "$0")
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
token() { # model machines powers
  powers=${3:+--powers $3}
  # shellcheck disable=SC2086
  "$orrery" home --model "$1" --machine "$2" --window 4 $powers --json |
    awk -F'[:,]' '/"next_token_s"/ { printf "%8.2f", $2 }'
}
four="$here/m1.yaml,$here/i5.yaml,$here/i7.yaml,$here/i7.yaml"
three="$here/m1.yaml,$here/i5.yaml,$here/i7.yaml"
printf '%-24s %9s %8s %8s\n' "s a token, w = 4" "published" "equal" "by power"
while read -r model published three_published; do
  printf '%-24s %9s' "$model, 4 laptops" "$published"
  token "$model" "$four" 1,1,1,1
  token "$model" "$four"
  printf '\n%-24s %9s' "$model, 3 laptops" "$three_published"
  token "$model" "$three" 1,1,1
  token "$model" "$three"
  printf '\n'
done <<ROWS
llama-2-7b 5 6
llama-2-13b 9 12
llama-3.1-8b 8 9
ROWS
