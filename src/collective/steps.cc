// SPDX-License-Identifier: Apache-2.0
#include "collective/steps.h"

#include <algorithm>
#include <bit>

#include "collective/tree_schedule.h"

namespace orrery::collective {
namespace {

using Form = Fabric::Form;

bool is_grid(const Fabric& fabric) {
  return fabric.form == Form::cycle || fabric.form == Form::line;
}

/// all_reduce is a reduce_scatter and an all_gather.
double passes_of(graph::CollectiveKind kind) {
  return kind == graph::CollectiveKind::all_reduce ? 2 : 1;
}

/// Messages times links that they pass when a line of n members, all on one side of each cut, talks
/// to the members on the other side: the middle link separates floor(n/2) from ceil(n/2).
double across_the_middle(std::int64_t n) {
  const std::int64_t pairs = n * n / 4;
  return static_cast<double>(pairs);
}

/// Links that a member's messages to all that it reaches forwards on a cycle of n pass.
double half_way_round(std::int64_t n) {
  const std::int64_t half = n / 2;
  return static_cast<double>(half * (half + 1)) / 2;
}

/// Load when every member sends S/p to every other on the shortest way, all at once.
double exchange_load(std::int64_t members, const Fabric& fabric) {
  const auto p = static_cast<double>(members);
  const auto longest = static_cast<double>(fabric.longest);
  switch (fabric.form) {
    case Form::switched:
      return (p - 1) / p;
    case Form::complete:
      return fabric.links / p;
    case Form::cycle:  // distances 1 ... floor(n/2) go forwards, the half way of even n too
      return fabric.links * half_way_round(fabric.longest) / longest;
    case Form::line:
      return fabric.links * across_the_middle(fabric.longest) / longest;
  }
  return 0;
}

std::optional<StepCount> ring(graph::CollectiveKind kind, std::int64_t members,
                              const Fabric& fabric) {
  if (kind == graph::CollectiveKind::all_to_all || kind == graph::CollectiveKind::send_recv) {
    return std::nullopt;
  }
  const auto p = static_cast<double>(members);
  const double passes = passes_of(kind);
  const bool chain =
      kind == graph::CollectiveKind::broadcast;  // pipelined, never comes back to the root
  const double share = chain ? 1 : (p - 1) / p;
  const double links =
      chain ? (p - 1) * fabric.hops : (p - 2) * fabric.hops + fabric.wrap_hops;  // slowest chunk
  return StepCount{.steps = passes * (p - 1),
                   .further_hops = passes * (links - (p - 1)),
                   .load = passes * share * fabric.ring_load};
}

/// Every member sends its buffer to the next, the last one to the first: one message on one link.
StepCount shift(const Fabric& fabric) {
  const bool one_port = fabric.form == Form::switched;
  return {.steps = 1,
          .further_hops = std::max(fabric.hops, fabric.wrap_hops) - 1,
          .load = one_port ? 1 : fabric.links};
}

std::optional<StepCount> direct(graph::CollectiveKind kind, std::int64_t members,
                                const Fabric& fabric) {
  if (kind == graph::CollectiveKind::send_recv) {
    return shift(fabric);
  }
  const auto p = static_cast<double>(members);
  const double passes = passes_of(kind);
  double load = passes * exchange_load(members, fabric);
  if (kind == graph::CollectiveKind::broadcast) {  // the root's own links carry everything
    const std::int64_t farther_side = fabric.form == Form::cycle ? members / 2 : members - 1;
    load = fabric.form == Form::switched   ? p - 1
           : fabric.form == Form::complete ? fabric.links
                                           : fabric.links * static_cast<double>(farther_side);
  }
  return StepCount{.steps = passes,
                   .further_messages = passes * (p - 2),
                   .further_hops = passes * (fabric.diameter - 1),
                   .load = load};
}

/// Every member reads the buffers of all others, and adds them up itself.
std::optional<StepCount> one_shot(graph::CollectiveKind kind, std::int64_t members,
                                  const Fabric& fabric) {
  if (kind != graph::CollectiveKind::all_reduce) {
    return std::nullopt;
  }
  const auto p = static_cast<double>(members);
  return StepCount{.steps = 1,
                   .further_messages = p - 2,
                   .further_hops = fabric.diameter - 1,
                   .load = p * exchange_load(members, fabric)};
}

std::optional<StepCount> pairwise(graph::CollectiveKind kind, std::int64_t members,
                                  const Fabric& fabric) {
  if (kind != graph::CollectiveKind::all_to_all) {
    return std::nullopt;
  }
  const auto p = static_cast<double>(members);
  const double cut = across_the_middle(fabric.longest);
  StepCount count{.steps = p - 1, .load = (p - 1) / p};
  if (fabric.form == Form::complete) {  // one partner, hence one link, at a time
    count.load *= fabric.links;
  }
  if (is_grid(fabric)) {  // all go the same way round in one step
    count.load = fabric.links * cut / static_cast<double>(fabric.longest);
    const double one_axis = fabric.form == Form::cycle ? cut : p * (p - 1) - cut;
    const double links =
        fabric.longest == members ? one_axis * fabric.hops : (p - 1) * fabric.diameter;
    count.further_hops = links - (p - 1);
  }
  return count;
}

/// The lower power of two takes part; the others hand their buffer to a partner before and get the
/// sum after (Thakur, Rabenseifner, Gropp 2005, section 4.1).
std::optional<StepCount> halving_doubling(graph::CollectiveKind kind, std::int64_t members,
                                          const Fabric& fabric) {
  const bool reduces = kind == graph::CollectiveKind::all_reduce;
  const bool power = std::has_single_bit(static_cast<std::uint64_t>(members));
  if (!reduces && kind != graph::CollectiveKind::all_gather &&
      kind != graph::CollectiveKind::reduce_scatter) {
    return std::nullopt;
  }
  if (!power && !reduces) {
    return std::nullopt;
  }
  const auto core = static_cast<double>(std::bit_floor(static_cast<std::uint64_t>(members)));
  const double rounds = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(members))) - 1;
  const double passes = passes_of(kind);
  StepCount count{.steps = passes * rounds, .load = passes * (core - 1) / core};
  if (fabric.form == Form::complete) {  // one partner, hence one link, at a time
    count.load *= fabric.links;
  }
  if (is_grid(fabric)) {
    // Partners 2^j apart exchange S/2^(j+1); 2^j such messages cross the middle of a block: S/2.
    count.load = passes * rounds * fabric.links / 2;
    count.further_hops = passes * std::max(0.0, fabric.span - rounds);
  }
  if (!power) {
    const double one_link = fabric.form == Form::switched ? 1 : fabric.links;
    count.steps += 2;
    count.further_hops += is_grid(fabric) ? 2 * (fabric.hops - 1) : 0;
    count.load += 2 * one_link;
  }
  return count;
}

/// Bytes through the busiest port, in units of S: an inner rank of one tree sends S/2 up and S/2 to
/// each of two children, and S/2 up as a leaf of the other tree. Two and three members have no rank
/// with two children.
double tree_port_load(std::int64_t members) {
  return members == 2 ? 1 : members == 3 ? 1.5 : 2;
}

/// The busiest link of a line or ring. Over several axes: a level's edges do not overlap, two trees
/// send S/2 on each.
double tree_line_load(graph::CollectiveKind kind, std::int64_t members, const Fabric& fabric) {
  if (fabric.longest != members) {
    return ceil_log2(members) + 0.5;
  }
  double busiest = 0;
  for (const GapLoad& gap :
       tree_gap_loads(kind, static_cast<int>(members), fabric.form == Form::cycle)) {
    busiest = std::max({busiest, gap.forward, gap.backward});
  }
  return busiest;
}

std::optional<StepCount> double_binary_tree(graph::CollectiveKind kind, std::int64_t members,
                                            const Fabric& fabric) {
  const bool all_reduce = kind == graph::CollectiveKind::all_reduce;
  if (!all_reduce && kind != graph::CollectiveKind::broadcast) {
    return std::nullopt;
  }
  // Broadcast: the root stands above both trees of the others.
  const double depth = all_reduce ? ceil_log2(members) : 1 + ceil_log2(members - 1);
  StepCount count{.steps = passes_of(kind) * depth,
                  .load = all_reduce ? tree_port_load(members) : 1};
  if (fabric.form == Form::complete) {  // both trees may use a link in the same direction
    count.load = fabric.links;
  }
  if (is_grid(fabric)) {
    count.load = fabric.links * tree_line_load(kind, members, fabric);
    count.further_hops = passes_of(kind) * std::max(0.0, fabric.span - depth);
  }
  return count;
}

/// The switch reads a shard from every member, adds, and hands it to the shard's owner; then every
/// owner's sum goes out to all. A port carries S + S/p each way.
std::optional<StepCount> in_switch(graph::CollectiveKind kind, std::int64_t members,
                                   const Fabric& fabric) {
  if (kind != graph::CollectiveKind::all_reduce || fabric.form != Form::switched) {
    return std::nullopt;
  }
  return StepCount{.steps = 2, .load = 1 + 1 / static_cast<double>(members)};
}

}  // namespace

int ceil_log2(std::int64_t n) {
  return n <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
}

std::optional<StepCount> count_steps(graph::CollectiveKind kind, CollectiveAlgorithm algorithm,
                                     std::int64_t members, const Fabric& fabric) {
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return ring(kind, members, fabric);
    case CollectiveAlgorithm::direct:
      return direct(kind, members, fabric);
    case CollectiveAlgorithm::halving_doubling:
      return halving_doubling(kind, members, fabric);
    case CollectiveAlgorithm::double_binary_tree:
      return double_binary_tree(kind, members, fabric);
    case CollectiveAlgorithm::pairwise:
      return pairwise(kind, members, fabric);
    case CollectiveAlgorithm::in_switch:
      return in_switch(kind, members, fabric);
    case CollectiveAlgorithm::one_shot:
      return one_shot(kind, members, fabric);
    case CollectiveAlgorithm::two_shot:
      return kind == graph::CollectiveKind::all_reduce ? direct(kind, members, fabric)
                                                       : std::nullopt;
    case CollectiveAlgorithm::custom:
    case CollectiveAlgorithm::custom_eager:
    case CollectiveAlgorithm::custom_trtllm:
    case CollectiveAlgorithm::automatic:
    case CollectiveAlgorithm::hierarchical:
    case CollectiveAlgorithm::themis:
    case CollectiveAlgorithm::rail:
      return std::nullopt;  // not one algorithm, or not in one dimension
  }
  return std::nullopt;
}

}  // namespace orrery::collective
