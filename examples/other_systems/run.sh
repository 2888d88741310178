#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A composition of experts on two machines, and Llama-2-70B at home.
set -e
orrery=${ORRERY:-orrery}

"$orrery" compose --model llama-2-7b --machine sn40l --devices 8
"$orrery" compose --model llama-2-7b --machine dgx-h100 --devices 8 --switch-bandwidth '64 GB/s'
"$orrery" home --model llama-2-70b
