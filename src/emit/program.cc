// SPDX-License-Identifier: Apache-2.0
#include "emit/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "base/names.h"
#include "emit/sizes.h"

namespace orrery::emit {
namespace {

using graph::Node;
using simulate::Span;
/// A node of a rank: which of its instances, which node of the instance's template.
using Place = std::pair<std::size_t, int>;
using InstanceKey = std::tuple<int, int, std::int64_t, std::int64_t>;
/// Sender, receiver, channel.
using Line = std::tuple<std::int64_t, std::int64_t, std::uint32_t>;

InstanceKey key_of(const graph::Instance& instance) {
  return {instance.template_index, instance.chunk, instance.microbatch, instance.step};
}

bool is_alone(const graph::Workload& workload, const Node& node, std::int64_t rank) {
  const graph::Members& members = workload.group(node.group).members;
  return !members.holds(rank) || members.group(rank).size() < 2;
}

/// A RankBuilder makes the list of one rank.
class RankBuilder {
 public:
  RankBuilder(const graph::Workload& workload, const simulate::Timeline& timeline,
              std::int64_t rank, std::int64_t shrink)
      : workload_(workload), rank_(rank), role_(workload.role_of(rank)), shrink_(shrink) {
    instances_ = &timeline.instances[static_cast<std::size_t>(role_)];
    for (std::size_t i = 0; i < instances_->size(); ++i) {
      instance_of_[key_of((*instances_)[i])] = i;
      const std::vector<Node>& nodes = nodes_of(i);
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        const Place place{i, static_cast<int>(n)};
        auto& stream = streams_[*nodes[n].stream];
        before_[place] = stream.empty() ? Place{i, -1} : stream.back();
        stream.push_back(place);
        if (nodes[n].kind == Node::Kind::receive) {
          receives_[{rank_ + nodes[n].peer, rank_, nodes[n].channel}].push_back(place);
        }
      }
    }
  }

  /// Adds the call of a span, if it makes one. `sent`: of a receive, the sender's span.
  void add(const Span& span, const Span* sent) {
    const Place place = sent == nullptr ? place_of(span) : next_receive(*sent);
    const Node& node = node_at(place);
    if (node.kind == Node::Kind::wait ||
        (node.kind == Node::Kind::collective && is_alone(workload_, node, rank_))) {
      return;
    }
    Call call = call_of(node);
    std::set<int> needed;
    if (call.kind != Call::Kind::receive) {  // posted when its message begins, before it may wait
      gather(place, true, needed);
    }
    for (const int earlier : needed) {
      if (waited_.insert(earlier).second) {
        call.waits.push_back(earlier);
      }
    }
    if (call.kind != Call::Kind::compute) {
      number_of_[place] = static_cast<int>(calls_.size());
    }
    calls_.push_back(std::move(call));
  }

  std::vector<Call> take() { return std::move(calls_); }

 private:
  const std::vector<Node>& nodes_of(std::size_t instance) const {
    return workload_.shape(role_, (*instances_)[instance]).nodes;
  }
  const Node& node_at(const Place& place) const {
    return nodes_of(place.first)[static_cast<std::size_t>(place.second)];
  }
  Place place_of(const Span& span) const {
    return {instance_of_.at({span.template_index, span.chunk, span.microbatch, span.step}),
            span.node};
  }
  /// Messages between two ranks with one channel are received in the order sent.
  Place next_receive(const Span& sent) {
    const Node& send =
        workload_.shape(workload_.role_of(sent.rank), {.template_index = sent.template_index})
            .nodes[static_cast<std::size_t>(sent.node)];
    const Line line{sent.rank, rank_, send.channel};
    return receives_.at(line)[received_[line]++];
  }

  Call call_of(const Node& node) const {
    Call call;
    call.name = node.name;
    call.works = works_of(node, shrink_);
    if (node.kind == Node::Kind::collective) {
      call.kind = Call::Kind::collective;
      call.collective = node.collective;
      call.group = static_cast<int>(*node.group);
      const auto members =
          static_cast<std::int64_t>(workload_.group(node.group).members.group(rank_).size());
      call.elements = elements_of(node, members, shrink_);
    } else if (node.kind == Node::Kind::send || node.kind == Node::Kind::receive) {
      call.kind = node.kind == Node::Kind::send ? Call::Kind::send : Call::Kind::receive;
      call.elements = elements_of(node, 1, shrink_);
      call.peer = node.peer;
      call.tag = static_cast<int>(node.channel);
    }
    return call;
  }

  /// Adds the calls that must be over before the node begins (`begins`), or that are over once it
  /// is. A kernel is over when the program has come past it; a wait, when what it waits for is, and
  /// what its stream ran before.
  void gather(const Place& place, bool begins, std::set<int>& needed) {
    if (place.second < 0) {
      return;
    }
    const Node& node = node_at(place);
    if (!begins) {
      const auto own = number_of_.find(place);
      if (own != number_of_.end()) {
        needed.insert(own->second);
        return;
      }
      if (node.kind == Node::Kind::compute || !seen_.insert(place).second) {
        return;
      }
    }
    for (const int earlier : node.after) {
      gather({place.first, earlier}, false, needed);
    }
    if (workload_.streams[*node.stream].order == graph::Order::issue) {
      gather(before_.at(place), false, needed);
    }
  }

  const graph::Workload& workload_;
  std::int64_t rank_;
  int role_;
  std::int64_t shrink_;
  const std::vector<graph::Instance>* instances_ = nullptr;
  std::map<InstanceKey, std::size_t> instance_of_;
  std::map<std::size_t, std::vector<Place>> streams_;
  std::map<Place, Place> before_;  ///< on its stream
  std::map<Line, std::vector<Place>> receives_;
  std::map<Line, std::size_t> received_;
  std::map<Place, int> number_of_;
  std::set<Place> seen_;  ///< waits that an earlier call has waited for
  std::set<int> waited_;
  std::vector<Call> calls_;
};

/// Returns the family of communicators, of all ranks.
Family family_of(const graph::Group& group, std::int64_t ranks) {
  Family family{group.name, {}, {}};
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const bool in = group.members.holds(rank);
    const std::vector<std::int64_t> members = group.members.group(rank);
    family.colors.push_back(in ? static_cast<int>(*std::ranges::min_element(members)) : -1);
    family.keys.push_back(in ? static_cast<int>(group.members.coordinate(rank)) : 0);
  }
  return family;
}

/// Numbers groups by first use, instead of by rows of the workload's table.
void take_groups(const graph::Workload& workload, std::vector<std::vector<Call>>& lists,
                 Program& program) {
  std::map<int, int> number;
  for (std::vector<Call>& list : lists) {
    for (Call& call : list) {
      if (call.kind != Call::Kind::collective) {
        continue;
      }
      const auto [found, is_new] = number.try_emplace(call.group, static_cast<int>(number.size()));
      if (is_new) {
        program.groups.push_back(
            family_of(workload.groups[static_cast<std::size_t>(call.group)], workload.ranks));
      }
      call.group = found->second;
    }
  }
}

void take_lists(std::vector<std::vector<Call>> lists, Program& program) {
  for (std::vector<Call>& list : lists) {
    const auto same = std::find(program.lists.begin(), program.lists.end(), list);
    program.list_of.push_back(static_cast<std::size_t>(same - program.lists.begin()));
    if (same == program.lists.end()) {
      program.lists.push_back(std::move(list));
    }
  }
}

Error too_large(const std::vector<std::vector<Call>>& lists) {
  Error mistakes;
  for (const std::vector<Call>& list : lists) {
    for (const Call& call : list) {
      if (call.elements > std::numeric_limits<int>::max() && mistakes.empty()) {
        mistakes.add(
            {"--shrink",
             {},
             fmt::format("{} elements of '{}'", call.elements, call.name),
             "no message of more than 2147483647 elements, which MPI counts: divide more"});
      }
    }
  }
  return mistakes;
}

}  // namespace

Result<Program> program_of(const graph::Workload& workload, const simulate::Timeline& timeline,
                           std::int64_t shrink) {
  std::vector<RankBuilder> builders;
  builders.reserve(static_cast<std::size_t>(workload.ranks));
  for (std::int64_t rank = 0; rank < workload.ranks; ++rank) {
    builders.emplace_back(workload, timeline, rank, shrink);
  }
  for (const Span& span : timeline.spans) {
    const bool receives = span.kind == Node::Kind::receive;
    builders[static_cast<std::size_t>(span.rank)].add(
        span, receives ? &timeline.spans[span.cause] : nullptr);
  }
  std::vector<std::vector<Call>> lists;
  lists.reserve(builders.size());
  for (RankBuilder& builder : builders) {
    lists.push_back(builder.take());
  }
  if (Error mistakes = too_large(lists); !mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  Program program;
  program.ranks = workload.ranks;
  take_groups(workload, lists, program);
  take_lists(std::move(lists), program);
  return program;
}

std::int64_t exchanges_of(const Program& program) {
  std::int64_t calls = 0;
  for (const std::size_t list : program.list_of) {
    calls += std::ranges::count_if(
        program.lists[list], [](const Call& call) { return call.kind != Call::Kind::compute; });
  }
  return calls;
}

std::string simulated_order(const graph::Workload& workload, const simulate::Timeline& timeline,
                            std::int64_t shrink) {
  std::string text;
  for (const Span& span : timeline.spans) {
    const bool receives = span.kind == Node::Kind::receive;
    const Span& own = receives ? timeline.spans[span.cause] : span;
    const Node& node =
        workload.shape(workload.role_of(own.rank), {.template_index = own.template_index})
            .nodes[static_cast<std::size_t>(own.node)];
    if (node.kind == Node::Kind::send) {
      const std::int64_t peer = receives ? own.rank : own.rank + node.peer;
      text += fmt::format("{} {} {} {}\n", span.rank, receives ? "receive" : "send", peer,
                          elements_of(node, 1, shrink));
    } else if (node.kind == Node::Kind::collective && !is_alone(workload, node, span.rank)) {
      const graph::Group& group = workload.group(node.group);
      const auto members = static_cast<std::int64_t>(group.members.group(span.rank).size());
      const bool shifts = node.collective == graph::CollectiveKind::send_recv;
      text +=
          fmt::format("{} {} {} {}\n", span.rank, shifts ? "ring_shift" : name_of(node.collective),
                      group.name, elements_of(node, members, shrink));
    }
  }
  return text;
}

}  // namespace orrery::emit
