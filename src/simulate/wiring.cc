// SPDX-License-Identifier: Apache-2.0
#include "simulate/wiring.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace orrery::simulate {

Wiring::Wiring(const graph::Workload& workload, const Binding& bound, const Fold& fold)
    : ranks_(fold.ranks),
      folded_(fold.folded),
      mirrors_(fold.mirrors),
      groups_(workload.groups.size()) {
  build_communicators(workload);
  build_routes(workload, bound, fold);
}

void Wiring::build_communicators(const graph::Workload& workload) {
  communicator_of_.assign(ranks_.size() * groups_, kNone);
  for (std::size_t g = 0; g < groups_; ++g) {
    const graph::Members& members = workload.groups[g].members;
    if (members.size() < 2) {
      continue;
    }
    std::map<std::int64_t, CommunicatorIndex> by_first_member;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (!members.holds(ranks_[i])) {
        continue;
      }
      const auto next = static_cast<CommunicatorIndex>(communicators_.size());
      const auto [entry, is_new] = by_first_member.emplace(members.member(ranks_[i], 0), next);
      if (is_new) {
        communicators_.push_back({graph::GroupIndex(g), {}});
      }
      communicator_of_[i * groups_ + g] = entry->second;
      communicators_[static_cast<std::size_t>(entry->second)].members.push_back(
          static_cast<RankIndex>(i));
    }
  }
}

void Wiring::build_routes(const graph::Workload& workload, const Binding& bound, const Fold& fold) {
  const auto program_of = [&](std::size_t rank) {
    return workload.role(workload.role_of(ranks_[rank])).program;
  };
  std::size_t end = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    first_end_.push_back(end);
    end += bound.flows(program_of(i)).size();
  }
  ends_.resize(end);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const std::vector<Flow>& flows = bound.flows(program_of(i));
    for (std::size_t f = 0; f < flows.size(); ++f) {
      ends_[first_end_[i] + f] = flows[f].sends ? 0 : static_cast<std::uint32_t>(mailboxes_++);
    }
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const std::vector<Flow>& flows = bound.flows(program_of(i));
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (!flows[f].sends) {
        continue;
      }
      const std::int64_t to = ranks_[i] + flows[f].peer;
      const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), fold.representative(to));
      assert(found != ranks_.end() && "every class of ranks has its representative");
      const auto target = static_cast<std::size_t>(found - ranks_.begin());
      const int received =
          bound.flow(program_of(target), {false, -flows[f].peer, flows[f].channel});
      const auto number = static_cast<std::uint32_t>(routes_.size());
      ends_[first_end_[i] + f] = number;
      routes_.push_back({number, static_cast<RankIndex>(i), static_cast<RankIndex>(target),
                         ranks_[i], to, mailbox_of(static_cast<RankIndex>(target), received)});
    }
  }
}

}  // namespace orrery::simulate
