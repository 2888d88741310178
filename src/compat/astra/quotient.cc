// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/quotient.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "compat/astra/colours.h"

namespace orrery::astra {
namespace {

/// Sets that grow together.
class Unions {
 public:
  explicit Unions(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  std::size_t find(std::size_t at) {
    while (parent_[at] != at) {
      at = parent_[at] = parent_[parent_[at]];
    }
    return at;
  }
  void unite(std::size_t a, std::size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace

Quotient::Quotient(const RunInput& input, Communicators& communicators,
                   std::vector<std::uint32_t> colour_of)
    : communicators_(communicators), traces_(input.traces), colour_of_(std::move(colour_of)) {
  for (std::size_t rank = 0; rank < colour_of_.size(); ++rank) {
    if (colour_of_[rank] == ranks_.size()) {
      ranks_.push_back(static_cast<std::int64_t>(rank));
    }
  }
  unite(input, communicators);
}

/// Members whose communicators share a rank are of one class.
void Quotient::unite(const RunInput& input, Communicators& communicators) {
  std::vector<Member> members;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> index;
  for (std::uint32_t each = 0; each < ranks_.size(); ++each) {
    const std::uint32_t program = input.traces.program_of[static_cast<std::size_t>(ranks_[each])];
    std::set<std::uint32_t> kinds;
    for (std::uint32_t node = 0; node < input.traces.programs[program].nodes.size(); ++node) {
      kinds.insert(communicators.kind(program, node));
    }
    kinds.erase(Communicators::kUnknown);
    for (std::uint32_t kind : kinds) {
      index[{each, kind}] = members.size();
      members.push_back({each, kind, communicators.find(ranks_[each], kind)});
    }
  }
  Unions unions(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    const Shape& shape = communicators.shape_of(member.real.communicator);
    for (std::uint32_t local = 0; local < shape.members; ++local) {
      const std::int64_t partner = communicators.rank_of(member.real.communicator, local);
      const std::uint32_t kind = kind_of_partner(
          traces_, communicators, ranks_[member.representative], member.kind, partner);
      const auto found = index.find({colour_of_[static_cast<std::size_t>(partner)], kind});
      if (found != index.end()) {
        unions.unite(i, found->second);
      }
    }
  }
  std::map<std::size_t, std::uint32_t> class_of;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto [place, added] =
        class_of.try_emplace(unions.find(i), static_cast<std::uint32_t>(classes_.size()));
    if (added) {
      classes_.emplace_back();
    }
    std::vector<Member>& all = classes_[place->second];
    places_[{members[i].representative, members[i].kind}] = {
        place->second, static_cast<std::uint32_t>(all.size())};
    all.push_back(members[i]);
  }
}

Communicators::Membership Quotient::membership(std::uint32_t representative,
                                               std::uint32_t kind) const {
  const Place place = places_.at({representative, kind});
  return {place.first, place.second, 0};
}

const Shape& Quotient::shape(std::uint32_t of) const {
  return communicators_.shape_of(classes_[of][0].real.communicator);
}

std::uint32_t Quotient::position(std::uint32_t of, std::uint32_t local, const Axis& axis) const {
  return classes_[of][local].real.local / axis.local_stride % static_cast<std::uint32_t>(axis.size);
}

Quotient::Table Quotient::table_of(std::uint32_t of, const Phase& phase) const {
  const std::vector<Member>& members = classes_[of];
  Table table(members.size());
  for (std::uint32_t local = 0; local < members.size(); ++local) {
    const Member& member = members[local];
    const std::uint32_t own = position(of, local, phase.axis);
    for (const Sender& sender : senders_of(phase, own)) {
      const auto distance = static_cast<std::int64_t>(sender.position) - own;
      const std::int64_t rank = communicators_.rank_of(
          member.real.communicator,
          static_cast<std::uint32_t>(member.real.local + distance * phase.axis.local_stride));
      const std::uint32_t kind = kind_of_partner(traces_, communicators_,
                                                 ranks_[member.representative], member.kind, rank);
      const auto place = places_.find({colour_of_[static_cast<std::size_t>(rank)], kind});
      if (place == places_.end()) {
        continue;  // it never takes part: a deadlock, as without folding
      }
      std::vector<std::vector<Recipient>>& messages = table[place->second.second];
      messages.resize(std::max<std::size_t>(messages.size(), sender.message + 1));
      messages[sender.message].push_back({local, rank, ranks_[member.representative]});
    }
  }
  return table;
}

const std::vector<Quotient::Recipient>& Quotient::recipients(std::uint32_t of, const Phase& phase,
                                                             std::uint32_t local,
                                                             std::uint32_t message) {
  auto found = tables_.find({of, &phase});
  if (found == tables_.end()) {
    found = tables_.emplace(std::pair{of, &phase}, table_of(of, phase)).first;
  }
  const std::vector<std::vector<Recipient>>& messages = found->second[local];
  return message < messages.size() ? messages[message] : nobody_;
}

std::vector<std::uint32_t> Quotient::receivers(std::uint32_t representative,
                                               std::int64_t offset) const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t each = 0; each < ranks_.size(); ++each) {
    const std::int64_t sender = ranks_[each] - offset;
    if (sender >= 0 && sender < static_cast<std::int64_t>(colour_of_.size()) &&
        colour_of_[static_cast<std::size_t>(sender)] == representative) {
      all.push_back(each);
    }
  }
  return all;
}

}  // namespace orrery::astra
