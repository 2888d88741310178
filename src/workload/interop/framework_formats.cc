// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "workload/interop/framework.h"

namespace orrery::interop {
namespace {

constexpr std::array kFormats{
    FrameworkFormat{"accelerate", "accelerate's configuration"},
    FrameworkFormat{"trainer", "arguments of Hugging Face's Trainer"},
    FrameworkFormat{"nemo", "NeMo's or Megatron-Bridge's configuration"},
    FrameworkFormat{"axolotl", "axolotl's configuration"},
    FrameworkFormat{"llama-factory", "LLaMA-Factory's configuration"},
    FrameworkFormat{"maxtext", "MaxText's configuration"},
    FrameworkFormat{"primus", "Primus' configuration"},
    FrameworkFormat{"llm-foundry", "llm-foundry's configuration"},
};

}  // namespace

std::span<const FrameworkFormat> framework_formats() {
  return kFormats;
}

}  // namespace orrery::interop
