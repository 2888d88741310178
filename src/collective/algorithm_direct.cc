// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

/// Every member sends its buffer to the next, the last one to the first: one message on one link.
StepCount shift_counts(const Fabric& fabric) {
  const bool one_port = fabric.form == Fabric::Form::switched;
  return {.steps = 1,
          .further_hops = std::max(fabric.hops, fabric.wrap_hops) - 1,
          .load = one_port ? 1 : fabric.links};
}

/// A broadcast: the root's own links carry everything.
double root_load(std::int64_t members, const Fabric& fabric) {
  const std::int64_t farther_side = fabric.form == Fabric::Form::cycle ? members / 2 : members - 1;
  return fabric.form == Fabric::Form::switched   ? static_cast<double>(members) - 1
         : fabric.form == Fabric::Form::complete ? fabric.links
                                                 : fabric.links * static_cast<double>(farther_side);
}

std::optional<StepCount> direct_counts(graph::CollectiveKind kind, std::int64_t members,
                                       const Fabric& fabric) {
  if (kind == graph::CollectiveKind::send_recv) {
    return shift_counts(fabric);
  }
  const auto p = static_cast<double>(members);
  const double passes = passes_of(kind);
  return StepCount{.steps = passes,
                   .further_messages = passes * (p - 2),
                   .further_hops = passes * (fabric.diameter - 1),
                   .load = kind == graph::CollectiveKind::broadcast
                               ? root_load(members, fabric)
                               : passes * exchange_load(members, fabric)};
}

/// A rank and the next differ in the innermost dimension, at its end in the next one too: then the
/// buffer takes the port of the outermost in which they differ. Some rank does so in every one. Of
/// an exchange all is sent at once: only the outermost dimension's latency counts.
std::optional<StepCount> direct_part(graph::CollectiveKind kind, const Place& at,
                                     const Fabric& fabric) {
  if (!exchanges(kind)) {
    return std::nullopt;
  }
  const auto members = static_cast<std::int64_t>(at.count);
  StepCount count = direct_counts(kind, members, fabric).value_or(StepCount{});
  count.steps = at.outermost ? 1 : 0;
  count.further_hops *= count.steps;
  if (kind == graph::CollectiveKind::all_to_all) {
    count.load *= at.exchanged();
    count.further_messages = at.inside * (at.count - 1) - count.steps;
  }
  return count;
}

/// Everyone to everyone at once; in round i rank r serves rank r+i, so that no receiver is a target
/// of two senders at the same time.
MessageSchedule direct_sums(graph::CollectiveKind kind, int ranks) {
  MessageSchedule schedule = MessageSchedule::sharded(kind, ranks);
  std::vector<std::vector<int>> arrived(static_cast<std::size_t>(ranks));
  for (int i = 1; reduces(kind) && i < ranks; ++i) {
    for (int r = 0; r < ranks; ++r) {
      const int to = (r + i) % ranks;
      const int index = schedule.add(
          {.sender = r, .receiver = to, .step = 0, .reduce = true, .blocks = {to}, .after = {}});
      arrived[static_cast<std::size_t>(to)].push_back(index);
    }
  }
  for (int i = 1; gathers(kind) && i < ranks; ++i) {
    for (int r = 0; r < ranks; ++r) {
      schedule.add({.sender = r,
                    .receiver = (r + i) % ranks,
                    .step = kind == graph::CollectiveKind::all_reduce ? 1 : 0,
                    .blocks = {r},
                    .after = arrived[static_cast<std::size_t>(r)]});
    }
  }
  return schedule;
}

MessageSchedule direct_broadcast(int ranks) {
  MessageSchedule schedule{
      .kind = graph::CollectiveKind::broadcast, .ranks = ranks, .messages = {}};
  for (int r = 1; r < ranks; ++r) {
    schedule.add({.sender = 0, .receiver = r, .blocks = {0}, .after = {}});
  }
  return schedule;
}

/// Block r is rank r's buffer.
MessageSchedule shift_messages(int ranks) {
  MessageSchedule schedule{
      .kind = graph::CollectiveKind::send_recv, .ranks = ranks, .blocks = ranks, .messages = {}};
  for (int r = 0; r < ranks; ++r) {
    schedule.add({.sender = r, .receiver = (r + 1) % ranks, .blocks = {r}, .after = {}});
  }
  return schedule;
}

std::optional<MessageSchedule> direct_messages(graph::CollectiveKind kind,
                                               std::span<const int> counts, int /*chunks*/) {
  switch (kind) {
    case graph::CollectiveKind::all_to_all:
      return exchange_schedule(counts, false);
    case graph::CollectiveKind::send_recv:
      return shift_messages(ranks_of(counts));
    case graph::CollectiveKind::broadcast:
      return direct_broadcast(ranks_of(counts));
    case graph::CollectiveKind::all_reduce:
    case graph::CollectiveKind::all_gather:
    case graph::CollectiveKind::reduce_scatter:
      break;
  }
  return direct_sums(kind, ranks_of(counts));
}

Gap direct_load(graph::CollectiveKind kind, std::int64_t members, std::int64_t gap) {
  if (kind == graph::CollectiveKind::send_recv) {
    return {};
  }
  if (kind == graph::CollectiveKind::broadcast) {
    return {static_cast<double>(members - gap - 1) / static_cast<double>(members - 1), 0};
  }
  return exchange_gap(kind, members, gap);
}

}  // namespace

AlgorithmRow direct_row() {
  return {
      .value = CollectiveAlgorithm::direct,
      .name = "direct",
      .sentence = "2 steps, p-1 messages of S/p each",
      .counts = direct_counts,
      .part = direct_part,
      .by_dimension = [](graph::CollectiveKind kind) { return !exchanges(kind); },
      .at_once = true,
      .messages = direct_messages,
      .load = direct_load,
      .left_out = [](graph::CollectiveKind kind, const std::vector<Extent>&) -> std::string_view {
        return exchanges(kind) ? "" : "NCCL has no direct algorithm for it";
      }};
}

}  // namespace orrery::collective
