#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# HiDup's questions to its search, each a table of comma-separated values: strategies by network, search time,
# wrong inputs. Arguments: which of them; none: all.
set -eo pipefail
orrery=${ORRERY:-orrery}

# fields NAME...: of JSON on standard input, every value of each name, comma-separated.
fields() {
  awk -F': ' -v names="$*" '
    BEGIN { count = split(names, name, " ") }
    { key = $1; gsub(/[ "]/, "", key); value = $2; gsub(/[ ",]/, "", value)
      for (i = 1; i <= count; i++) if (key == name[i]) all[i] = all[i] "," value }
    END { for (i = 1; i <= count; i++) line = line all[i]; print substr(line, 2) }'
}

# By network: seconds of the estimate with forward overlap, without, with backward too, and of strategies that are
# fixed beforehand (the last four).
strategies() {
  echo "model,network,forward,none,both,data_parallel,fsdp,expert_parallel,expert_parallel_fsdp"
  for model in Rmoe Rswitch Vmoe Vswitch; do
    for profile in 64c8m 8c8m 4c4m nvl4 nvl8 2m_unres 2m_30g 2m_10g 2m_8g; do
      on="--graph $model --devices 8 --layers 8 --profile $profile --json"
      # shellcheck disable=SC2086  # several words
      echo "$model,$profile,$("$orrery" spmd $on | fields optimum_s),$(
        "$orrery" spmd $on --overlap none | fields optimum_s),$(
        "$orrery" spmd $on --overlap both | fields optimum_s),$(
        "$orrery" spmd $on | fields time_s)"
    done
  done
}

# Seconds of the search over layers and devices (VI.F).
search_time() {
  echo "layers,8 devices,64 devices,4096 devices"
  for layers in 2 4 8 16 24 48 96; do
    row=$layers
    for devices in 8 64 4096; do
      row="$row,$("$orrery" spmd --graph Rmoe --devices $devices --layers $layers --profile 64c8m --json |
        fields search_s)"
    done
    echo "$row"
  done
}

# True cost of what is found when every input is wrong by up to a share (VI.E, Table I): six seeds.
noise() {
  echo "network,noise,mean,worst"
  for profile in 64c8m 2m_10g 2m_unres; do
    for share in 0 0.2 0.4 0.6 0.8; do
      for seed in 1 2 3 4 5 6; do
        "$orrery" spmd --graph Rmoe --profile $profile --noise $share --seed $seed --json | fields optimum_s
      done | awk -v row="$profile,$share" '{ sum += $1; if ($1 > worst) worst = $1 }
                                           END { printf "%s,%.4f,%.4f\n", row, sum / NR, worst }'
    done
  done
}

for table in ${*:-strategies search_time noise}; do
  [ $# -eq 1 ] || echo "# $table"
  $table
done
