// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/collect.h"
#include "graph/verify_tables.h"
#include "graph/verify_tensors.h"
#include "graph/workload.h"

namespace orrery::graph {
namespace {

struct Place {
  const Workload& workload;
  int role = 0;
  const Template& t;
  std::size_t node = 0;

  std::string text() const {
    return fmt::format("{}, template '{}', node {} '{}'", workload.role(role).name, t.name, node,
                       t.nodes[node].name);
  }
};

class Mistakes {
 public:
  void add(std::string sentence) { mistakes_.add(Mistake{{}, {}, {}, std::move(sentence)}); }
  void require(bool ok, const Place& place, std::string_view law) {
    if (!ok) {
      add(fmt::format("{}: {}", place.text(), law));
    }
  }
  bool none() const { return mistakes_.empty(); }
  Result<void> finish() { return or_mistakes(mistakes_.take()); }

 private:
  FileMistakes mistakes_{""};
};

// ---- One node at a time.

bool sane(const Operator& op) {
  return op.duration >= Time(0) && !op.duration.is_overflow() && op.bytes >= Bytes(0) &&
         !op.bytes.is_overflow() && std::isfinite(op.flops.value()) && op.flops >= Flops(0) &&
         op.kernels >= 0 && op.pieces >= 1 && op.piece >= 0 && op.piece < op.pieces &&
         op.gemm.batch >= 0 && op.gemm.m >= 0 && op.gemm.n >= 0 && op.gemm.k >= 0;
}

bool slower_with_others(const Operator& op) {
  const auto slows = [](double factor) { return std::isfinite(factor) && factor >= 1; };
  return slows(op.beside_collective) && slows(op.beside_message);
}

/// Times of other kernels depend on their bytes, of which a piece has only its own.
bool may_be_in_pieces(const Operator& op) {
  const bool product = op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm;
  return op.pieces == 1 ? op.tracking == Tracking::none
                        : is_divisible(op) && (op.tracking == Tracking::none || product);
}

bool is_message(const Node& node) {
  return node.kind == Node::Kind::send || node.kind == Node::Kind::receive;
}

void check_rows(const Place& place, const Node& node, Mistakes& mistakes) {
  const Workload& workload = place.workload;
  const bool counts = node.kind != Node::Kind::compute && node.kind != Node::Kind::wait;
  mistakes.require(*node.stream < workload.streams.size(), place,
                   "is on a stream that is not there");
  mistakes.require(*node.phase < workload.phases.size(), place, "is in a phase that is not there");
  mistakes.require(!counts || *node.group < workload.groups.size(), place,
                   "names a group that is not there");
  mistakes.require(node.sharers.none() || *node.sharers < workload.groups.size(), place,
                   "names sharers that are not there");
  mistakes.require((node.kind == Node::Kind::compute) ? node.stream == kComputeStream
                   : node.kind == Node::Kind::wait    ? true
                                                      : node.stream != kComputeStream,
                   place, "is on a stream that is not its own");
}

void check_node(const Place& place, Mistakes& mistakes) {
  const Node& node = place.t.nodes[place.node];
  const int own = static_cast<int>(place.node);
  const auto earlier = [&](int d) { return d >= 0 && d < own; };
  mistakes.require(std::all_of(node.after.begin(), node.after.end(), earlier), place,
                   "depends on a node that is not earlier in the template");
  mistakes.require(std::all_of(node.operators.begin(), node.operators.end(), sane), place,
                   "has an operator with a negative or overflowing size");
  mistakes.require(std::all_of(node.operators.begin(), node.operators.end(), slower_with_others),
                   place, "has an operator that communication would speed up");
  mistakes.require(std::all_of(node.operators.begin(), node.operators.end(), may_be_in_pieces),
                   place, "is a piece of a kernel that is neither a product nor of known duration");
  mistakes.require(!node.continues || node.kind == Node::Kind::copy, place,
                   "goes on with another copy but is none");
  mistakes.require(!node.by_engine || node.kind == Node::Kind::collective, place,
                   "is moved by an engine but is no collective");
  mistakes.require(!node.background || node.kind == Node::Kind::collective, place,
                   "runs beside whole steps but is no collective");
  mistakes.require(node.bytes >= Bytes(0) && !node.bytes.is_overflow(), place,
                   "has a negative or overflowing size");
  mistakes.require(
      node.operators.empty() || node.kind == Node::Kind::compute || node.kind == Node::Kind::host,
      place, "has operators but computes nothing");
  mistakes.require(!is_message(node) || node.peer != 0, place, "is a message to its own rank");
  check_rows(place, node, mistakes);
}

// ---- Across roles.

/// Returns a rank of each role; of listed roles every rank, since their neighbours may differ.
std::vector<std::int64_t> telling_ranks(const Workload& workload) {
  std::vector<std::int64_t> ranks;
  if (!workload.role_map.list.empty()) {
    for (std::int64_t rank = 0; rank < workload.ranks; ++rank) {
      ranks.push_back(rank);
    }
    return ranks;
  }
  for (std::size_t role = 0; role < workload.roles.size(); ++role) {
    ranks.push_back(replaced(workload.role_map.digits, 0, static_cast<std::int64_t>(role)));
  }
  return ranks;
}

struct CollectiveCall {
  CollectiveKind kind;
  Bytes bytes;
  friend bool operator==(const CollectiveCall&, const CollectiveCall&) = default;
};

using Flow = std::pair<std::int64_t, std::uint32_t>;  // peer, channel

/// Traffic is what a role, over its issue list, exchanges with others, in order.
struct Traffic {
  std::map<Flow, std::vector<Bytes>> sent;
  std::map<Flow, std::vector<Bytes>> received;
  std::map<std::size_t, std::vector<CollectiveCall>> collectives;  ///< by group
};

/// Groups whose communicators hold ranks of several roles: all members of the others run one
/// program.
std::vector<bool> groups_between_roles(const Workload& workload,
                                       const std::vector<std::int64_t>& ranks) {
  std::vector<bool> between(workload.groups.size());
  for (std::size_t g = 0; g < between.size(); ++g) {
    const Members& members = workload.groups[g].members;
    if (members.size() < 2) {
      continue;
    }
    between[g] = std::any_of(ranks.begin(), ranks.end(), [&](std::int64_t rank) {
      const std::vector<std::int64_t> group = members.group(rank);
      return std::any_of(group.begin(), group.end(), [&](std::int64_t member) {
        return workload.role_of(member) != workload.role_of(rank);
      });
    });
  }
  return between;
}

class TrafficReader {
 public:
  TrafficReader(const Workload& workload, const std::vector<bool>& between, Mistakes& mistakes)
      : workload_(workload),
        between_(between),
        excerpt_(*workload.source->list(), workload.roles.size(), 2),
        mistakes_(mistakes) {}

  Traffic read(int role) {
    const Program& program = workload_.program_of(role);
    const auto nodes = nodes_between_ranks(program);
    Traffic traffic;
    bool bad = false;
    std::int64_t number = -1;
    excerpt_.for_each(role, [&](const Instance& instance, std::int64_t) {
      ++number;
      if (bad) {
        return;
      }
      if (instance.template_index < 0 ||
          static_cast<std::size_t>(instance.template_index) >= nodes.size()) {
        bad = true;
        mistakes_.add(fmt::format("{}: instance {} has a template index out of range",
                                  workload_.role(role).name, number));
        return;
      }
      for (const Node* node : nodes[static_cast<std::size_t>(instance.template_index)]) {
        record(*node, traffic);
      }
    });
    return traffic;
  }

 private:
  std::vector<std::vector<const Node*>> nodes_between_ranks(const Program& program) const {
    std::vector<std::vector<const Node*>> nodes(program.templates.size());
    for (std::size_t t = 0; t < nodes.size(); ++t) {
      for (const Node& node : program.templates[t].nodes) {
        if (is_message(node) || (node.kind == Node::Kind::collective && between_[*node.group])) {
          nodes[t].push_back(&node);
        }
      }
    }
    return nodes;
  }

  static void record(const Node& node, Traffic& traffic) {
    if (node.kind == Node::Kind::send) {
      traffic.sent[{node.peer, node.channel}].push_back(node.bytes);
    } else if (node.kind == Node::Kind::receive) {
      traffic.received[{node.peer, node.channel}].push_back(node.bytes);
    } else {
      traffic.collectives[*node.group].push_back({node.collective, node.bytes});
    }
  }

  const Workload& workload_;
  const std::vector<bool>& between_;
  Excerpt excerpt_;
  Mistakes& mistakes_;
};

class RoleCheck {
 public:
  RoleCheck(const Workload& workload, Mistakes& mistakes)
      : workload_(workload), mistakes_(mistakes), ranks_(telling_ranks(workload)) {}

  void run() {
    const std::vector<bool> between = groups_between_roles(workload_, ranks_);
    TrafficReader reader(workload_, between, mistakes_);
    for (std::size_t role = 0; role < workload_.roles.size(); ++role) {
      traffic_.push_back(reader.read(static_cast<int>(role)));
    }
    if (!mistakes_.none()) {
      return;
    }
    for (const std::int64_t rank : ranks_) {
      check_messages(rank);
      check_memberships(rank);
    }
    for (std::size_t g = 0; g < between.size(); ++g) {
      if (between[g]) {
        check_collectives(g);
      }
    }
  }

 private:
  const Traffic& traffic(int role) const { return traffic_[static_cast<std::size_t>(role)]; }
  const std::string& name(int role) const { return workload_.role(role).name; }

  /// Messages of one channel arrive in the order sent, so the i-th receive takes the i-th send.
  void check_messages(std::int64_t rank) {
    const int role = workload_.role_of(rank);
    for (const auto& [flow, sent] : traffic(role).sent) {
      check_flow(rank, role, flow, sent);
    }
    for (const auto& [flow, received] : traffic(role).received) {
      const std::int64_t from = rank + flow.first;
      const Flow back{-flow.first, flow.second};
      if (from < 0 || from >= workload_.ranks ||
          !traffic(workload_.role_of(from)).sent.contains(back)) {
        mistakes_.add(
            fmt::format("{} receives {} messages of channel {} from rank {:+}, which "
                        "sends none",
                        name(role), received.size(), flow.second, flow.first));
      }
    }
  }

  void check_flow(std::int64_t rank, int role, const Flow& flow, const std::vector<Bytes>& sent) {
    const std::int64_t to = rank + flow.first;
    if (to < 0 || to >= workload_.ranks) {
      mistakes_.add(
          fmt::format("{} sends to rank {:+}, which is not there", name(role), flow.first));
      return;
    }
    const int target = workload_.role_of(to);
    if (!seen_.insert({role, flow, target}).second) {
      return;
    }
    const auto& all = traffic(target).received;
    const auto found = all.find({-flow.first, flow.second});
    const std::vector<Bytes> received = found == all.end() ? std::vector<Bytes>{} : found->second;
    if (sent.size() != received.size()) {
      mistakes_.add(fmt::format("channel {}: {} sends {} messages, {} receives {}", flow.second,
                                name(role), sent.size(), name(target), received.size()));
      return;
    }
    const auto [one, other] = std::mismatch(sent.begin(), sent.end(), received.begin());
    if (one != sent.end()) {
      mistakes_.add(fmt::format("channel {}: message {} from {} to {} has {} bytes, its receive {}",
                                flow.second, one - sent.begin(), name(role), name(target),
                                one->value(), other->value()));
    }
  }

  /// A rank that is left out of a group's communicators cannot take part.
  void check_memberships(std::int64_t rank) {
    const int role = workload_.role_of(rank);
    for (const Template& t : workload_.program_of(role).templates) {
      for (std::size_t n = 0; n < t.nodes.size(); ++n) {
        const Node& node = t.nodes[n];
        if (node.kind == Node::Kind::collective &&
            !workload_.group(node.group).members.holds(rank)) {
          mistakes_.add(fmt::format("{}: is a collective of {}, which does not hold rank {}",
                                    Place{workload_, role, t, n}.text(),
                                    workload_.group(node.group).name, rank));
        }
      }
    }
  }

  void check_collectives(std::size_t group) {
    std::set<std::pair<int, int>> compared;
    for (const std::int64_t rank : ranks_) {
      const std::vector<std::int64_t> members = workload_.groups[group].members.group(rank);
      for (const std::int64_t member : members) {
        const int one = workload_.role_of(members.front());
        const int other = workload_.role_of(member);
        if (compared.insert({one, other}).second && calls(one, group) != calls(other, group)) {
          mistakes_.add(
              fmt::format("{} and {} do not issue the same collectives on {} in the same "
                          "order",
                          name(one), name(other), workload_.groups[group].name));
        }
      }
    }
  }
  std::vector<CollectiveCall> calls(int role, std::size_t group) const {
    const auto& all = traffic(role).collectives;
    const auto found = all.find(group);
    return found == all.end() ? std::vector<CollectiveCall>{} : found->second;
  }

  const Workload& workload_;
  Mistakes& mistakes_;
  std::vector<std::int64_t> ranks_;
  std::vector<Traffic> traffic_;
  std::set<std::tuple<int, Flow, int>> seen_;
};

void check_tensors(const Workload& workload, int role, const Template& t, Mistakes& mistakes) {
  for (const std::string& mistake : tensor_mistakes(workload, t)) {
    mistakes.add(workload.role(role).name + ", " + mistake);
  }
}

void check_nodes(const Workload& workload, Mistakes& mistakes) {
  std::set<std::size_t> seen;
  for (int role = 0; role < static_cast<int>(workload.roles.size()); ++role) {
    if (!seen.insert(workload.role(role).program).second) {
      continue;
    }
    for (const Template& t : workload.program_of(role).templates) {
      for (std::size_t n = 0; n < t.nodes.size(); ++n) {
        check_node({workload, role, t, n}, mistakes);
      }
      if (mistakes.none()) {
        check_tensors(workload, role, t, mistakes);
      }
    }
  }
}

}  // namespace

Result<void> verify(const Workload& workload) {
  Mistakes mistakes;
  for (std::string& mistake : table_mistakes(workload)) {
    mistakes.add(std::move(mistake));
  }
  if (mistakes.none()) {
    check_nodes(workload, mistakes);
  }
  if (mistakes.none() && workload.source->list() != nullptr) {
    RoleCheck(workload, mistakes).run();
  }
  return mistakes.finish();
}

}  // namespace orrery::graph
