// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/profile.h"

#include <cassert>

#include "base/file.h"
#include "base/reader.h"

namespace orrery::spmd {

Bandwidth Profile::bandwidth(Operation collective) const {
  assert(collective != Operation::slice && "a slice moves nothing");
  return collective == Operation::all_gather       ? all_gather
         : collective == Operation::all_reduce     ? all_reduce
         : collective == Operation::reduce_scatter ? reduce_scatter
                                                   : all_to_all;
}

namespace {

/// Reads a rate with its unit, or as the published profiles have it: a number of FLOP/s or B/s.
template <class Rate>
Rate read_rate(Reader& read, std::string_view field) {
  const auto text = read.required<std::string>(field);
  if (const auto number = parse_number(text)) {
    return Rate(*number);
  }
  const auto rate = parse_value<Rate>(text);
  if (!rate) {
    read.reject(field, rate.error());
  }
  return rate.value_or(Rate(0));
}

}  // namespace

Result<Profile> parse_profile(const ConfigNode& node) {
  Reader read(node);
  Profile profile{.name = read.optional("name", std::string("profile")),
                  .description = read.optional("description", std::string()),
                  .device_flops = read_rate<FlopRate>(read, "device_flops"),
                  .all_gather = read_rate<Bandwidth>(read, "all_gather"),
                  .all_reduce = read_rate<Bandwidth>(read, "all_reduce"),
                  .reduce_scatter = read_rate<Bandwidth>(read, "reduce_scatter"),
                  .all_to_all = read_rate<Bandwidth>(read, "all_to_all")};
  read.require(profile.device_flops > FlopRate(0), "device_flops", "a rate above 0");
  for (const Operation kind : kConversions) {
    if (layout::moves(kind)) {
      read.require(profile.bandwidth(kind) > Bandwidth(0), name_of(kind), "a rate above 0");
    }
  }
  return read.finish(std::move(profile));
}

Result<Profile> load_profile(const std::string& name_or_path) {
  const auto path = find_config("spmd", name_or_path);
  if (!path) {
    return fail(path.error());
  }
  const auto node = load_config(*path);
  return node ? parse_profile(*node) : fail(node.error());
}

}  // namespace orrery::spmd
