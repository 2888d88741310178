// SPDX-License-Identifier: Apache-2.0
/// Links that one communicator alone uses in a run, for undisturbed() of a transport (transport.h).
#pragma once

#include <cstdint>
#include <vector>

#include "machine/topology/link_map.h"
#include "simulate/bind.h"
#include "simulate/wiring.h"

namespace orrery::simulate {

class LinkUsers {
 public:
  bool counted() const { return !user_of_.empty(); }

  /// Counts who passes one of so many links. `of_collective(communicator, collective)` is to call
  /// use() with each link of a collective of the communicator's group.
  template <class OfCollective>
  void count(std::size_t links, const Wiring& wiring, const Binding& binding,
             const OfCollective& of_collective) {
    user_of_.assign(links, kNobody);
    for (std::size_t c = 0; c < wiring.communicator_count(); ++c) {
      const auto number = static_cast<CommunicatorIndex>(c);
      for (int i = 0; i < std::ssize(binding.collectives()); ++i) {
        const BoundCollective& collective = binding.collective(i);
        if (!collective.is_copy && collective.group == wiring.communicator(number).group) {
          of_collective(number, i);
        }
      }
    }
  }
  /// Messages and copies are kSeveral.
  void use(topology::LinkId link, CommunicatorIndex user) {
    CommunicatorIndex& known = user_of_[link];
    known = known == kNobody || known == user ? user : kSeveral;
  }
  bool only(topology::LinkId link, CommunicatorIndex user) const { return user_of_[link] == user; }

  static constexpr CommunicatorIndex kSeveral = -2;

 private:
  static constexpr CommunicatorIndex kNobody = -1;

  std::vector<CommunicatorIndex> user_of_;
};

}  // namespace orrery::simulate
