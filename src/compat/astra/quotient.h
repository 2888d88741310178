// SPDX-License-Identifier: Apache-2.0
/// A system with one rank for each colour.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compat/astra/communicators.h"
#include "compat/astra/run.h"
#include "compat/astra/senders.h"

namespace orrery::astra {

/// One representative, the lowest rank, stands for each colour (see colours.h). What a
/// representative sends is delivered to every representative whose own sender has that colour.
///
/// Representatives that send to each other in one collective form a *class of communicators*; it
/// stands for the communicators of all their ranks.
class Quotient {
 public:
  struct Recipient {
    std::uint32_t local = 0;  ///< in the class
    std::int64_t from = 0;    ///< real ranks: who sends the message that it receives
    std::int64_t to = 0;
  };

  Quotient(const RunInput& input, Communicators& communicators,
           std::vector<std::uint32_t> colour_of);

  std::size_t count() const { return ranks_.size(); }
  std::int64_t rank(std::uint32_t representative) const { return ranks_[representative]; }
  const std::vector<std::uint32_t>& colour_of() const { return colour_of_; }

  std::size_t classes() const { return classes_.size(); }
  /// `communicator` is a class, `local` an index in it.
  Communicators::Membership membership(std::uint32_t representative, std::uint32_t kind) const;
  std::uint32_t members(std::uint32_t of) const {
    return static_cast<std::uint32_t>(classes_[of].size());
  }
  const Shape& shape(std::uint32_t of) const;
  /// Returns the real position of a member on an axis.
  std::uint32_t position(std::uint32_t of, std::uint32_t local, const Axis& axis) const;

  /// Returns who receives a member's message of a phase (numbered as in Sender).
  const std::vector<Recipient>& recipients(std::uint32_t of, const Phase& phase,
                                           std::uint32_t local, std::uint32_t message);

  /// Representatives that receive what `representative` sends to the rank `offset` further on.
  std::vector<std::uint32_t> receivers(std::uint32_t representative, std::int64_t offset) const;

 private:
  struct Member {
    std::uint32_t representative = 0;
    std::uint32_t kind = 0;
    Communicators::Membership real;
  };
  using Place = std::pair<std::uint32_t, std::uint32_t>;           ///< class, local
  using Table = std::vector<std::vector<std::vector<Recipient>>>;  ///< by member and message

  void unite(const RunInput& input, Communicators& communicators);
  Table table_of(std::uint32_t of, const Phase& phase) const;

  const Communicators& communicators_;
  const chakra::TraceSet& traces_;
  std::vector<std::uint32_t> colour_of_;
  std::vector<std::int64_t> ranks_;  ///< by colour
  std::vector<std::vector<Member>> classes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Place> places_;  ///< representative, kind
  std::map<std::pair<std::uint32_t, const Phase*>, Table> tables_;
  std::vector<Recipient> nobody_;  ///< always empty
};

}  // namespace orrery::astra
