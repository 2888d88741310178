// SPDX-License-Identifier: Apache-2.0
#include "machine/read_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include "base/fields.h"

namespace orrery::machine {
namespace {

constexpr std::int64_t kMostParts = 1 << 16;  // arrays, rows, banks ...
/// The fields without which a device of the model says nothing.
constexpr std::array<std::string_view, 16> kNeeded{
    "rows",     "cols",  "dataflow",     "input_sram",  "filter_sram", "output_sram",
    "channels", "banks", "lanes",        "row",         "t_rcd",       "t_rp",
    "t_ras",    "t_rfc", "vector_lanes", "vector_cycle"};

template <class T>
void check_value(Reader& read, std::string_view name, const T& value) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    read.require(value >= 1 && value <= kMostParts, name,
                 fmt::format("a whole number from 1 to {}", kMostParts));
  } else if constexpr (std::is_same_v<T, double>) {
    read.require(value >= 0 && value <= 1e6, name, "a number from 0 to 1e6");
  } else if constexpr (std::is_same_v<T, Time>) {
    read.require(value <= 1_s, name, "at most 1 s");
  } else if constexpr (std::is_same_v<T, Bytes>) {
    read.require(value > Bytes(0) && value <= 1024_GiB, name, "a size above 0, at most 1 TiB");
  } else if constexpr (std::is_same_v<T, Bandwidth>) {
    read.require(value > Bandwidth(0), name, "a rate above 0");
  }
}

bool is_needed(std::string_view name) {
  return std::find(kNeeded.begin(), kNeeded.end(), name) != kNeeded.end();
}

template <class Map>
void read_map(Reader& read, Map& map) {
  Map::fields([&](std::string_view name, auto, std::string_view) {
    if (is_needed(name)) {
      read.child(name, true);
    }
  });
  read_fields(read, map);
  Map::fields([&](std::string_view name, auto member, std::string_view) {
    if (read.node().find(name) != nullptr) {
      check_value(read, name, map.*member);
    }
  });
}

}  // namespace

void read_model(Reader& read_device, compute::Device& device) {
  device.model = read_device.optional("model", device.model);
  for (const std::string& name : names_of<compute::ComputeModel>()) {
    const bool own = name == name_of(device.model);
    if (name == name_of(compute::ComputeModel::roofline)) {
      continue;
    }
    const ConfigNode* node = read_device.child(name, own);
    if (node == nullptr) {
      continue;
    }
    read_device.require(own, name, fmt::format("nothing; only model {} has this", name));
    if (!own) {
      continue;
    }
    Reader read(*node);
    compute::model_map(device, [&](auto& map) { read_map(read, map); });
    const compute::PimDevice& pim = device.pim;
    read.require(pim.t_refi == Time(0) || pim.t_refi > pim.t_rfc, "t_refi",
                 "longer than t_rfc, or 0: no refresh");
    read_device.absorb(read.finish(0));
  }
}

}  // namespace orrery::machine
