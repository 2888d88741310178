// SPDX-License-Identifier: Apache-2.0
/// A device whose matrix units are systolic arrays, as its machine file states it.
#pragma once

#include <cstdint>

#include "base/names.h"
#include "base/units.h"

namespace orrery::compute {

enum class Dataflow : std::uint8_t { output_stationary, weight_stationary, input_stationary, best };
constexpr auto named_values(Dataflow) {
  return std::to_array<Named<Dataflow>>({
      {Dataflow::output_stationary, "os", "sums stay in the array: M on rows, N on columns"},
      {Dataflow::weight_stationary, "ws", "weights stay in the array: K on rows, N on columns"},
      {Dataflow::input_stationary, "is", "inputs stay in the array: K on rows, M on columns"},
      {Dataflow::best, "best", "the fastest of the three for every product"},
  });
}

/// `arrays` arrays of rows x cols multiply-accumulate cells, each with its own SRAMs, which share
/// the device's memory bandwidth. SRAMs are double buffered: half of each holds what is being
/// computed, half is being filled. The clock is peak / (2 rows cols arrays), by data type.
struct SystolicArray {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Dataflow dataflow = Dataflow::output_stationary;
  std::int64_t arrays = 1;
  Bytes input_sram{0};
  Bytes filter_sram{0};
  Bytes output_sram{0};
  Energy mac_energy{0};          ///< of one multiply-accumulate; 0 = not known
  EnergyPerByte sram_energy{0};  ///< read or written; 0 = not known

  template <class V>
  static void fields(V&& visit) {
    visit("rows", &SystolicArray::rows, "cells of a column");
    visit("cols", &SystolicArray::cols, "cells of a row");
    visit("dataflow", &SystolicArray::dataflow, "what stays in the array: os, ws, is, best");
    visit("arrays", &SystolicArray::arrays, "arrays of one device");
    visit("input_sram", &SystolicArray::input_sram, "of one array, both halves");
    visit("filter_sram", &SystolicArray::filter_sram, "of one array, both halves");
    visit("output_sram", &SystolicArray::output_sram, "of one array, both halves");
    visit("mac_energy", &SystolicArray::mac_energy, "of one multiply-accumulate; 0 = not known");
    visit("sram_energy", &SystolicArray::sram_energy, "read or written; 0 = not known");
  }

  friend bool operator==(const SystolicArray&, const SystolicArray&) = default;
};

}  // namespace orrery::compute
