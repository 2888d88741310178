// SPDX-License-Identifier: Apache-2.0
/// Calculon's systems: a processor, two memories and networks, and what it makes of them.
///
///   compute   flops / (peak * efficiency(flops))
///   memory    bytes / (bandwidth * efficiency(bytes))
///   network   latency + scale * bytes * (1 + offset / members) / (bandwidth * efficiency)
///
/// An efficiency is that of the largest step that the size reaches. A kernel takes the sum of
/// compute and memory ("no_overlap") or the longer one ("roofline"). Source: Calculon (Isaev et
/// al., SC'23, doi 10.1145/3581784.3607102), its published program.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/units.h"

namespace orrery::calculon {

enum class NumberType : std::uint8_t { float8, float16, bfloat16, float32 };
constexpr auto named_values(NumberType) {
  return std::to_array<Named<NumberType>>({
      {NumberType::float8, "float8", "1 byte"},
      {NumberType::float16, "float16", "2 bytes"},
      {NumberType::bfloat16, "bfloat16", "2 bytes"},
      {NumberType::float32, "float32", "4 bytes"},
  });
}
Bytes size_of(NumberType type);

enum class ProcessingMode : std::uint8_t { roofline, no_overlap };
constexpr auto named_values(ProcessingMode) {
  return std::to_array<Named<ProcessingMode>>({
      {ProcessingMode::roofline, "roofline", "the longer of compute and memory"},
      {ProcessingMode::no_overlap, "no_overlap", "compute, then memory"},
  });
}

/// Shares of a peak by the size of an operation, the largest first, the last from 0.
template <class Amount>
struct Efficiency {
  struct Step {
    Amount from{};
    double share = 1;
  };
  std::vector<Step> steps;

  double of(Amount size) const {
    for (const Step& step : steps) {
      if (size >= step.from) {
        return step.share;
      }
    }
    return steps.back().share;
  }
};

struct Processor {
  FlopRate peak{0};
  Efficiency<Flops> efficiency;

  Time time(Flops flops) const { return flops / (peak * efficiency.of(flops)); }
};

struct Memory {
  Bytes capacity{0};
  Bandwidth bandwidth{0};
  Efficiency<Bytes> efficiency;

  Time time(Bytes bytes) const { return bytes / (bandwidth * efficiency.of(bytes)); }
};

enum class Operation : std::uint8_t { p2p, reduce_scatter, all_gather, all_reduce };
constexpr auto named_values(Operation) {
  return std::to_array<Named<Operation>>({
      {Operation::p2p, "p2p", "one rank to another"},
      {Operation::reduce_scatter, "reduce_scatter", "a sum, cut"},
      {Operation::all_gather, "all_gather", "parts to the whole"},
      {Operation::all_reduce, "all_reduce", "a whole sum"},
  });
}

struct Network {
  struct Volume {
    double scale = 1;
    double offset = 0;  ///< in parts of one member
  };
  Bandwidth bandwidth{0};
  double efficiency = 1;
  std::int64_t size = 0;  ///< members at most
  Time latency{0};
  std::array<Volume, kNames<Operation>.size()> volumes{};  ///< by Operation
  bool must_be_filled = false;                             ///< only groups that divide its size
  double processor_usage = 0;                              ///< of the compute rate, while it runs

  Time time(Operation operation, Bytes bytes, std::int64_t members) const;
};

struct System {
  Processor matrix;
  Processor vector;
  Memory memory;
  Memory lower_memory;  ///< capacity 0: there is none
  ProcessingMode mode = ProcessingMode::no_overlap;
  std::vector<Network> networks;
  NumberType type = NumberType::float16;

  Time kernel(Time compute, Time memory_time) const {
    return mode == ProcessingMode::roofline ? std::max(compute, memory_time)
                                            : compute + memory_time;
  }
};

/// Reads a system file (JSON), unchanged, for one number type. Mistakes: unknown and missing
/// fields, values out of range, steps that do not fall to 0, a type that a processor lacks.
Result<System> load_system(const std::string& file, NumberType type);

}  // namespace orrery::calculon
