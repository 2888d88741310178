// SPDX-License-Identifier: Apache-2.0
/// A MemoryCategory says what the bytes of a device are for.
#pragma once

#include <cstdint>

#include "base/names.h"
#include "graph/index.h"

namespace orrery::plan {

enum class MemoryCategory : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  activations,
  buffers,
  logits,
  framework
};
constexpr auto named_values(MemoryCategory) {
  return std::to_array<Named<MemoryCategory>>({
      {MemoryCategory::parameters, "parameters", "in the compute type, and their quantised copies"},
      {MemoryCategory::gradients, "gradients", "accumulation buffer"},
      {MemoryCategory::optimizer, "optimizer", "master parameters and Adam's two moments"},
      {MemoryCategory::activations, "activations", "kept for backward, all microbatches in flight"},
      {MemoryCategory::buffers, "buffers",
       "messages, buckets, gathered parameters, work of a block"},
      {MemoryCategory::logits, "logits", "logits and probabilities, kept for backward"},
      {MemoryCategory::framework, "framework", "driver, libraries, buffers of communicators"},
  });
}

constexpr graph::MemoryRow row_of(MemoryCategory /*category*/) {
  return {};
}

}  // namespace orrery::plan
