// SPDX-License-Identifier: Apache-2.0
/// SCALE-Sim's files and figures.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "machine/compute/systolic.h"

namespace orrery::scalesim {

/// A configuration. Words are of one byte, as the tool's are.
struct Configuration {
  std::string run_name;
  compute::SystolicArray array;
  /// InterfaceBandwidth USER: words per cycle of each operand. CALC: none, nothing ever waits.
  std::optional<compute::Feed> feed;
  bool sparse = false;  ///< the topology's column of sparsity counts
  compute::Sparsity::Format format = compute::Sparsity::Format::ellpack_block;
  /// Settings that have no effect here although they would have one there, a sentence each.
  std::vector<std::string> warnings;
};

/// Parses INI text: sections, `key : value` or `key = value`, keys without case, lines of '#' or
/// ';' are comments. Mistakes: unknown sections and keys, what is missing or out of range, keys
/// twice. Offsets, banks and row sizes are read over; DRAM traces, custom layouts and row-wise
/// sparsity give a warning.
Result<Configuration> parse_configuration(std::string_view text, const std::string& file);

struct Layer {
  std::string name;
  std::optional<compute::Convolution> convolution;  ///< none: a product
  graph::GemmShape gemm{};                          ///< of a convolution: as it is, not rounded up
  compute::Sparsity sparsity{};
};

/// Parses a topology: a header, then a layer per line; trailing commas are nothing. Products have
/// the columns layer, M, N, K; convolutions layer, input height and width, filter height and width,
/// channels, filters, stride; or two strides, of height and width, which must be equal. What stands
/// after a row's last comma and begins with # is left out. One further column "Sparsity" may say
/// N:M.
Result<std::vector<Layer>> parse_topology(std::string_view text, const std::string& file);

/// Compatibility says whose figures count as right.
enum class Compatibility : std::uint8_t { none, scale_sim };
constexpr auto named_values(Compatibility) {
  return std::to_array<Named<Compatibility>>({
      {Compatibility::none, "none", "cycles as RTL takes them; windows that fit"},
      {Compatibility::scale_sim, "scale-sim", "a cycle less, outputs rounded up, padding written"},
  });
}

struct LayerReport {
  compute::SystolicCost cost;
  double padding_words = 0;  ///< in cost.sram_words.output; scale_sim: folds (rows + cols) of os
};
/// Reports on a layer. With compat scale_sim it takes a cycle less, convolutions rounded up,
/// padding in the output writes of os. Where nothing waits (CALC), memory traffic is every element
/// once, inputs of convolutions without repetition; else that of the folds, inputs in GEMM form.
LayerReport report(const Configuration& configuration, const Layer& layer, Compatibility compat);

}  // namespace orrery::scalesim
