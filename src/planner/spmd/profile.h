// SPDX-License-Identifier: Apache-2.0
/// A profile is what the published search knows of a machine: one rate, and a bandwidth for each
/// collective.
#pragma once

#include <string>

#include "base/config_node.h"
#include "base/result.h"
#include "base/units.h"
#include "planner/spmd/form.h"

namespace orrery::spmd {

/// Bandwidths are bytes of the whole tensor by the time of the collective, for some number of
/// devices: all-to-all, of which a device moves little, looks fast.
struct Profile {
  std::string name;
  std::string description;
  FlopRate device_flops{0};
  Bandwidth all_gather{0};
  Bandwidth all_reduce{0};
  Bandwidth reduce_scatter{0};
  Bandwidth all_to_all{0};

  /// Requires a collective other than none.
  Bandwidth bandwidth(Operation collective) const;

  friend bool operator==(const Profile&, const Profile&) = default;
};

/// Reads {name, description, device_flops, all_gather, all_reduce, reduce_scatter, all_to_all},
/// rates with units or plain numbers of FLOP/s and B/s, as HiDup's own profiles have them; all but
/// the name and the description required and positive.
Result<Profile> parse_profile(const ConfigNode& node);
/// A shipped name ("64c8m", configs/spmd/) or a path.
Result<Profile> load_profile(const std::string& name_or_path);

}  // namespace orrery::spmd
