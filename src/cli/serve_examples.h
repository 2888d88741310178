// SPDX-License-Identifier: Apache-2.0
/// `orrery serve --help` ends with these examples.
#pragma once

namespace orrery::cli {

inline constexpr const char* kServeExamples =
    "An inference engine serves requests: those of a trace, or drawn ones. Lengths: 1000,\n"
    "'uniform(500, 1500)', 'lognormal(1000, 0.6)' (mean, sigma). Engines: `orrery list engines`,\n"
    "`orrery show engine vllm@0.19`; a file or a flag of its field, also by the name of vLLM, "
    "SGLang\n"
    "or TensorRT-LLM, states what differs from one of them.\n"
    "Examples:\n"
    "  orrery serve --model llama-3-70b --machine dgx-h100 --devices 8 --rate 5 \\\n"
    "               --input 1000 --output 250 --requests 3000\n"
    "  orrery serve --model llama-3.1-8b --machine dgx-h100 --trace mooncake.jsonl --json\n"
    "  orrery serve --model llama-3.1-8b --machine dgx-h100 --arrival infinite \\\n"
    "               --max-concurrency 64 --requests 1000 --requests-out requests.csv\n"
    "  orrery serve --model llama-3.1-8b --machine dgx-h100 --search rate \\\n"
    "               --slo 'ttft=500 ms,tpot=20 ms' --input 1000 --output 250\n"
    "  orrery serve --model llama-3.1-8b --machine dgx-h100 --prefill 1 --replicas 3 --rate 40\n"
    "  orrery serve --model llama-3-70b --machine dgx-h100 --devices 8 --power-cap 500W\n"
    "  orrery serve --model llama-3-70b --machine dgx-h100 --devices 8 --network flow\n"
    "  orrery serve --model llama-3.1-8b --machine dgx-h100 --stages '2:60 s,40:120 s' \\\n"
    "               --replicas 4 --router least_requests\n"
    "  orrery serve --model llama-3.1-8b --machine dgx-h100 --rate 0.3 --turns 5 --think '20 s'\n"
    "  orrery serve --model llama-3.1-8b --machine rtx-4090 --rate 10 \\\n"
    "               --kernels dense.csv,per_sequence.csv,attention.csv\n"
    "  orrery serve --model llama-3-70b --machine dgx-h100,dgx-b200 --devices 8 --search plan \\\n"
    "               --formats bf16,w8a8 --input 1000 --output 250 --plot front.svg\n"
    "  orrery serve --model meta-llama/Llama-3.1-8B-Instruct --machine dgx-h100,dgx-h200 \\\n"
    "               --search gpus --rate 50 --slo 'ttft=500 ms,tpot=30 ms' --formats fp8 --price "
    "aws\n"
    "  orrery serve --model llama-3.1-8b --machine dgx-h100 --listen 127.0.0.1:8000\n"
    "  orrery serve --model llama-3.1-8b --machine dgx-h100 --rate 5 --requests 100 \\\n"
    "               --observe http://127.0.0.1:8000\n";

}  // namespace orrery::cli
