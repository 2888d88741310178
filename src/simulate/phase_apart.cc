// SPDX-License-Identifier: Apache-2.0
#include "simulate/phase_apart.h"

#include <map>

#include "collective/on_links.h"

namespace orrery::simulate {
bool may_run_apart(const PhasePlan& phase) {
  constexpr Bytes kMost{4096};  // more is not looked at: no link is that fast
  if (phase.size > kMost) {
    return false;
  }
  std::map<topology::LinkId, Time> taken;
  for (std::uint32_t group = 0; group < phase.groups; ++group) {
    for (std::uint32_t message = 0; message < phase.list->size(); ++message) {
      for (const topology::Hop& hop : phase.way(group, message)) {
        Time& of_link = taken[hop.link];
        of_link += phase.bytes(message) / hop.bandwidth;
        if (of_link > kMostApart) {
          return false;
        }
      }
    }
  }
  return true;
}

Time time_apart(const PhasePlan& phase) {
  return collective::flow_time(
      {*phase.list, phase.size, phase.groups,
       [&](std::uint32_t group, std::uint32_t message) { return phase.way(group, message); }});
}

}  // namespace orrery::simulate
