// SPDX-License-Identifier: Apache-2.0
#include "machine/read_systolic.h"

#include <fmt/format.h>

#include "base/fields.h"

namespace orrery::machine {

void read_systolic(Reader& read_device, compute::Device& device) {
  constexpr std::int64_t kMostCells = 1 << 16;  // of a row or column; arrays too
  device.model = read_device.optional("model", device.model);
  const bool systolic = device.model == compute::ComputeModel::systolic;
  const ConfigNode* node = read_device.child("systolic", systolic);
  if (node == nullptr) {
    return;
  }
  read_device.require(systolic, "systolic", "nothing; only model systolic has arrays");
  Reader read(*node);
  for (const char* name :
       {"rows", "cols", "dataflow", "input_sram", "filter_sram", "output_sram"}) {
    read.child(name, true);
  }
  compute::SystolicArray& array = device.systolic;
  read_fields(read, array);
  compute::SystolicArray::fields([&](std::string_view name, auto member, std::string_view) {
    if constexpr (std::is_same_v<decltype(array.*member), std::int64_t&>) {
      read.require(array.*member >= 1 && array.*member <= kMostCells, name,
                   fmt::format("a whole number from 1 to {}", kMostCells));
    }
  });
  read_device.absorb(read.finish(0));
}

}  // namespace orrery::machine
