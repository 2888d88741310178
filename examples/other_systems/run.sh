#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A composition of experts on two machines, Llama-2-70B at home, one image on eight GPUs.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")

"$orrery" compose --model llama-2-7b --machine sn40l --devices 8
"$orrery" compose --model llama-2-7b --machine dgx-h100 --devices 8 --switch-bandwidth '64 GB/s'
"$orrery" home --model llama-2-70b
"$orrery" patches --resolution 3840 --devices 8
