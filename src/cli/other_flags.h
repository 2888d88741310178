// SPDX-License-Identifier: Apache-2.0
/// Flags of other tools that Orrery has under another name or in another form, for the message of
/// an unknown option. Names of equal meaning and unit are aliases (workload/plan/aliases.h).
#pragma once

#include <array>
#include <string_view>

namespace orrery::cli {

struct OtherFlags {
  std::string_view others;  ///< between blanks
  std::string_view own;     ///< only commands that have this option give the hint
  std::string_view hint;
};

inline constexpr auto kOtherFlags = std::to_array<OtherFlags>({
    {"--gpus --num-gpus --n-gpus --gpu-count --world-size --num-processes --accelerators",
     "--devices", "--devices is the number of all accelerators together"},
    {"--nodes --nnodes --num-nodes --num-machines --nproc-per-node --gpus-per-node", "--devices",
     "--devices is nodes x accelerators of a node"},
    {"--gpu --gpu-type --gpu-name --hardware --system --cluster --accelerator", "--machine",
     "--machine names the device with its network; see `orrery list machines`"},
    {"--model-name --model-path --model-name-or-path --hf-model --checkpoint", "--model",
     "--model is a name of `orrery list models` or a Hugging Face config.json"},
    {"--num-layers --hidden-size --num-attention-heads --ffn-hidden-size --vocab-size", "--model",
     "a model's shape is in its config.json, which --model names"},
    {"--gradient-checkpointing --activation-checkpointing --checkpoint-activations "
     "--recompute-activations --remat",
     "--recompute", "--recompute full, or selective for the attention cores alone"},
    {"--fsdp --fsdp2 --use-fsdp --fully-shard --hsdp", "--zero",
     "--zero 3 shards parameters too (FULL_SHARD), --zero 2 is SHARD_GRAD_OP"},
    {"--ddp --no-shard", "--zero", "--zero 0 replicates everything"},
    {"--use-distributed-optimizer", "--zero", "--zero 1 shards the optimizer states"},
    {"--deepspeed --deepspeed-config --ds-config", "--zero",
     "--zero 1, 2 or 3; `orrery import` reads DeepSpeed's configurations"},
    {"--cpu-offload --offload --offload-to-cpu", "--offload-optimizer",
     "--offload-optimizer cpu for the states, --offload-activations SHARE for activations"},
    {"--bf16 --fp16 --fp32 --tf32 --dtype --precision --mixed-precision", "--compute-type",
     "--compute-type bf16 (the default), fp16, tf32 or fp32"},
    {"--fp8 --fp8-format --fp8-recipe --nvfp4 --mxfp8", "--compute-type",
     "--quantization fp8-delayed, fp8-current, fp8-block, mxfp8 or nvfp4"},
    {"--dtype --precision --fp8 --quant", "--engine",
     "--weights, --activations and --kv are fp8, bf16 ..."},
    {"--use-flash-attn --flash-attention --flash-attn --attn-implementation", "--attention",
     "--attention flash, flash2, fa3, cudnn or unfused"},
    {"--gradient-accumulation-steps --grad-accum", "--global-batch",
     "--global-batch is sequences per step: microbatch x dp x accumulation steps"},
    {"--batch-size --bs --tokens-per-batch", "--global-batch",
     "--global-batch is sequences per step, --microbatch those of a replica at once"},
    {"--max-length --context-length --block-size --ctx", "--sequence",
     "--sequence is tokens per sequence"},
    {"--num-layers-per-virtual-pipeline-stage --virtual-pipeline-size", "--chunks",
     "--chunks is model chunks per device; `orrery import` reads whole launch lines"},
    {"--qps --request-rate --requests-per-second", "--rate", "--rate is requests per second"},
    {"--num-prompts --num-requests", "--requests", "--requests is how many are sent"},
    {"--input-len --isl --random-input-len --prompt-length", "--input",
     "--input is tokens per prompt"},
    {"--output-len --osl --random-output-len --max-tokens", "--output",
     "--output is tokens per answer"},
    {"--port --host", "--listen",
     "--listen is the port on this machine, after HOST: that of others"},
    {"--bytes --size --sizes --msg-size --minbytes --maxbytes --begin --end", "--factor",
     "--min is the first size and --max the last"},
    {"--traffic --injection-rate", "--pattern",
     "--pattern says who sends to whom, --rate is flits per node and cycle"},
    {"--tp --pp --dp --cp --ep --zero --recompute --schedule --microbatch --global-batch --batch "
     "--sequence --plan",
     "--measured", "every RUN is a plan's file, which has its fields"},
});

/// Returns whether the row is about the flag. Requires a name that begins with two dashes.
constexpr bool has_flag(const OtherFlags& row, std::string_view name) {
  for (std::size_t at = row.others.find(name); at != std::string_view::npos;
       at = row.others.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (end == row.others.size() || row.others[end] == ' ') {
      return true;
    }
  }
  return false;
}

}  // namespace orrery::cli
