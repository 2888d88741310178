// SPDX-License-Identifier: Apache-2.0
#include "estimate/issue_lists.h"

#include <algorithm>
#include <limits>

namespace orrery::estimate {
namespace {

constexpr std::int64_t kLeastRounds = 3;  // fewer are not worth a comparison

/// Shortest period of the middle half of the list: its length less its longest border (Knuth,
/// Morris, Pratt 1977). The half itself when it repeats nothing.
std::int64_t middle_period(const std::vector<int>& list) {
  const std::vector<int> half(list.begin() + std::ssize(list) / 4,
                              list.end() - std::ssize(list) / 4);
  std::vector<std::size_t> border(half.size(), 0);
  for (std::size_t i = 1; i < half.size(); ++i) {
    std::size_t length = border[i - 1];
    while (length > 0 && half[i] != half[length]) {
      length = border[length - 1];
    }
    border[i] = length + (half[i] == half[length] ? 1 : 0);
  }
  return half.empty() ? 0 : std::ssize(half) - static_cast<std::int64_t>(border.back());
}

/// Grows from the middle of every list as far as it repeats; length 0 when some list has less than
/// kLeastRounds of it.
Repetition repetition_of(const std::vector<std::vector<int>>& lists, std::int64_t length) {
  Repetition repetition{.length = length, .from = {}, .until = {}};
  for (const std::vector<int>& list : lists) {
    const auto same = [&](std::int64_t i) { return list[at(i)] == list[at(i + length)]; };
    std::int64_t from = std::max<std::int64_t>(0, (std::ssize(list) - length) / 2);
    std::int64_t until = from;
    while (from > 0 && same(from - 1)) {
      --from;
    }
    while (until + length < std::ssize(list) && same(until)) {
      ++until;
    }
    repetition.from.push_back(from);
    repetition.until.push_back(until + length);
    if (length == 0 || until + length - from < kLeastRounds * length) {
      repetition.length = 0;
      break;
    }
  }
  return repetition;
}

/// The last stage has the shortest warm-up, the first one the longest.
Repetition repetition_of(const std::vector<std::vector<int>>& lists) {
  Repetition repetition;
  for (const std::vector<int>* list : {&lists.back(), &lists.front()}) {
    repetition = repetition_of(lists, middle_period(*list));
    if (repetition.length > 0) {
      break;
    }
  }
  return repetition;
}

constexpr std::size_t kDirections = 5;  // of schedule.h
constexpr std::size_t kPlaces = 4;      // first or not, last or not

}  // namespace

std::int64_t Repetition::rounds() const {
  std::int64_t rounds = std::numeric_limits<std::int64_t>::max();
  for (std::size_t s = 0; s < from.size(); ++s) {
    rounds = std::min(rounds, (until[s] - from[s]) / length);
  }
  return rounds;
}

ShortPlan shortened(const plan::Plan& plan) {
  constexpr std::int64_t kRounds = 8;
  constexpr std::int64_t kPairs = 24;
  const plan::PipelineShape shape = plan::pipeline_shape(plan);
  if (shape.schedule != plan::Schedule::one_f_one_b &&
      shape.schedule != plan::Schedule::interleaved) {
    return {plan, 0};
  }
  const std::int64_t round = shape.chunks > 1 ? shape.stages : 1;
  // At least a quarter of the list is then as long as the warm-up: its middle half repeats.
  const std::int64_t kept =
      shape.chunks > 1 ? kRounds * shape.stages : (shape.pairs ? 6 : 2) * shape.stages + kPairs;
  const std::int64_t omitted = std::max<std::int64_t>(0, shape.microbatches - kept) / round;
  ShortPlan shorter{plan, omitted};
  shorter.plan.global_batch -= omitted * round * plan.dp * plan.microbatch;
  return shorter;
}

IssueLists issue_lists(const graph::IssueList& source, std::size_t stages) {
  IssueLists lists;
  for (int role = 0; role < static_cast<int>(stages); ++role) {
    std::vector<int>& list = lists.templates.emplace_back();
    const std::int64_t length = source.length(role);
    const auto period = source.period(role).value_or(graph::Period{});
    list.reserve(at(length));
    for (std::int64_t i = 0; i < length; ++i) {
      const bool again = i >= period.first + period.length && i < period.end;
      list.push_back(again ? list[at(i - period.length)] : source.at(role, i).template_index);
    }
  }
  lists.repetition = repetition_of(lists.templates);
  return lists;
}

std::size_t IssueRules::kind_of(const plan::PipelineShape& shape,
                                const plan::PipelineSlot& slot) const {
  const std::size_t place =
      (slot.microbatch == 0 ? 1U : 0U) + (slot.microbatch + 1 == shape.microbatches ? 2U : 0U);
  const std::size_t chunks = at(slot.chunk * shape.chunks + slot.backward_chunk);
  return (chunks * kDirections + static_cast<std::size_t>(slot.direction)) * kPlaces + place;
}

IssueRules::IssueRules(const graph::IssueList& source, const plan::Plan& plan) {
  const plan::PipelineShape shape = plan::pipeline_shape(plan);
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    const plan::StageSchedule schedule(shape, stage);
    auto& kinds =
        templates_.emplace_back(at(shape.chunks * shape.chunks) * kDirections * kPlaces, -1);
    const auto issued = [&](std::int64_t i) {
      return source.at(static_cast<int>(stage), i).template_index;
    };
    for (std::int64_t i = 0; i < schedule.size(); ++i) {
      kinds[kind_of(shape, schedule[i])] = issued(i);
    }
    last_.push_back(issued(schedule.size()));
  }
}

std::optional<IssueLists> IssueRules::lists(const plan::Plan& plan) const {
  const plan::PipelineShape shape = plan::pipeline_shape(plan);
  IssueLists lists;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    const plan::StageSchedule schedule(shape, stage);
    std::vector<int>& list = lists.templates.emplace_back();
    list.reserve(at(schedule.size() + 1));
    for (std::int64_t i = 0; i < schedule.size(); ++i) {
      list.push_back(templates_[at(stage)][kind_of(shape, schedule[i])]);
      if (list.back() < 0) {
        return std::nullopt;
      }
    }
    list.push_back(last_[at(stage)]);
  }
  lists.repetition = repetition_of(lists.templates);
  return lists;
}

}  // namespace orrery::estimate
