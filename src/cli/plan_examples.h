// SPDX-License-Identifier: Apache-2.0
/// `orrery plan --help` ends with these examples.
#pragma once

namespace orrery::cli {

inline constexpr const char* kPlanExamples =
    "The fastest plan for so many devices: of all plans that the fields below leave open, by "
    "branch\n"
    "and bound, judged by simulation. Fields that are given stay as they are; --only tries the\n"
    "values it names. Ctrl-C ends the search with the best plan so far.\n"
    "Examples:\n"
    "  orrery plan --model llama-3-8b --machine dgx-h100 --devices 8 --batch 64 --sequence 8192\n"
    "  orrery plan --model gpt-22b --machine dgx-a100-80g --devices 64 --batch 128 --pp 1 \\\n"
    "              --only tp=2,4,8 --only zero=1,3 --top 3 --json\n"
    "  orrery plan --model llama-3-8b --machine dgx-h100 --devices 16 --batch 64 --explain \\\n"
    "              --plot memory.svg --minmax-regret --elastic\n"
    "  orrery plan --model llama-3-8b --machine dgx-h100 --devices 64 --batch 256 \\\n"
    "              --vary network.1.bandwidth=25GB/s..100GB/s --vary devices=32,64 \\\n"
    "              --vary device.price_per_hour=2.5 --price network.1.bandwidth=0.01/GB/s "
    "--budget 150\n"
    "  orrery plan --model llama-3-8b --machine dgx-h100 --devices 16 --batch 64 \\\n"
    "              --framework torchtitan --export ./\n"
    "  orrery plan --model llama-3-8b --machine aws-p5 --devices 64 --batch 256 --tokens 300B\n"
    "  orrery plan --model llama-3-70b --machine dgx-h100 --devices 128 --batch 256 --tokens 1T "
    "\\\n"
    "              --also llama-3-8b,tokens=4T,batch=512\n"
    "  orrery plan --table megatron_sc21_table2 --estimates 300\n";

}  // namespace orrery::cli
