// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/in_flight.h"

#include <algorithm>
#include <utility>

#include "workload/memory/memory_timeline.h"
#include "workload/plan/schedule_row.h"

namespace orrery::footprint {
namespace {

bool has_as_much(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](auto x, auto y) { return x >= y; });
}

/// Leaves out those than which another has as much of everything.
void leave_out_less(std::vector<std::vector<std::int64_t>>& all) {
  std::vector<std::vector<std::int64_t>> most;
  for (std::vector<std::int64_t>& one : all) {
    if (std::ranges::any_of(most, [&](const auto& other) { return has_as_much(other, one); })) {
      continue;
    }
    std::erase_if(most, [&](const auto& other) { return has_as_much(one, other); });
    most.push_back(std::move(one));
  }
  all = std::move(most);
}

}  // namespace

/// The issue list of one stage.
class InFlight::Walk {
 public:
  Walk(InFlight& into, const std::vector<std::size_t>& groups, bool resident)
      : into_(into),
        groups_(groups),
        resident_(resident),
        by_chunk_(groups.size()),
        held_(into.group_count_) {}

  void run(const plan::PipelineShape& all, std::int64_t stage) {
    plan::PipelineShape shape = all;
    shape.microbatches = replayed_microbatches(all);
    if (row_of(all.schedule).forwards_first && shape.microbatches < all.microbatches) {
      by_chunk_[0] = all.microbatches - 1;
      before(PieceSort::Work::forward, 0);
      by_chunk_[0] = all.microbatches;
      before(PieceSort::Work::backward, 0);
    } else {
      const plan::StageSchedule schedule(shape, stage);
      for (std::int64_t i = 0; i < schedule.size(); ++i) {
        perform(schedule[i]);
      }
    }
    end();
  }

 private:
  using Work = PieceSort::Work;

  void perform(const plan::PipelineSlot& slot) {
    const auto chunk = static_cast<std::size_t>(slot.chunk);
    switch (slot.direction) {
      case plan::Direction::forward:
        before(Work::forward, chunk);
        ++by_chunk_[chunk];
        return;
      case plan::Direction::backward:
        before(Work::backward, chunk);
        --by_chunk_[chunk];
        return;
      case plan::Direction::input_gradient:
        before(Work::input_gradient, chunk);
        --by_chunk_[chunk];
        ++held_[groups_[chunk]];
        return;
      case plan::Direction::weight_gradient:
        before(Work::weight_gradient, chunk);
        --held_[groups_[chunk]];
        return;
      case plan::Direction::forward_backward:
        const auto other = static_cast<std::size_t>(slot.backward_chunk);
        before(Work::pair, chunk, other);
        ++by_chunk_[chunk];
        --by_chunk_[other];
        return;
    }
  }

  Counts now(const PieceSort& sort, std::size_t chunk) const {
    const std::size_t groups = into_.group_count_;
    Counts counts(groups * (1 + (into_.splits_ ? 1 : 0) + (resident_ ? 1 : 0)));
    for (std::size_t c = 0; c < groups_.size(); ++c) {
      counts[groups_[c]] += by_chunk_[c];
      const bool some = by_chunk_[c] > 0 || (sort.runs_forward() && c == chunk);
      if (resident_ && some) {
        ++counts[counts.size() - groups + groups_[c]];
      }
    }
    if (into_.splits_) {
      std::copy(held_.begin(), held_.end(), counts.begin() + static_cast<std::ptrdiff_t>(groups));
    }
    return counts;
  }

  void before(Work work, std::size_t chunk, std::size_t other = 0) {
    const PieceSort sort{work, groups_[chunk], work == Work::pair ? groups_[other] : 0};
    auto line = std::ranges::find(lines_, sort, &Line::sort);
    if (line == lines_.end()) {
      lines_.push_back({.sort = sort, .counts = {}, .step = {}});
      line = std::prev(lines_.end());
    }
    line->add(now(sort, chunk));
  }

  void end() {
    for (Line& line : lines_) {
      auto known = std::ranges::find(into_.sorts_, line.sort, &Moments::sort);
      if (known == into_.sorts_.end()) {
        into_.sorts_.push_back({line.sort, {}});
        known = std::prev(into_.sorts_.end());
      }
      std::ranges::move(line.counts, std::back_inserter(known->counts));
      leave_out_less(known->counts);
    }
  }

  /// A Line holds pieces of one sort, without what lies between two others.
  struct Line {
    PieceSort sort;
    std::vector<Counts> counts;
    Counts step;  // to the last one

    void add(Counts next) {
      if (counts.empty()) {
        counts.push_back(std::move(next));
        return;
      }
      Counts to_next(next.size());
      std::ranges::transform(next, counts.back(), to_next.begin(), std::minus<>());
      if (to_next == step) {
        counts.back() = std::move(next);
        return;
      }
      counts.push_back(std::move(next));
      step = std::move(to_next);
    }
  };

  InFlight& into_;
  const std::vector<std::size_t>& groups_;
  bool resident_;
  std::vector<std::int64_t> by_chunk_;
  std::vector<std::int64_t> held_;  // by group
  std::vector<Line> lines_;
};

InFlight::InFlight(const plan::PipelineShape& shape, std::span<const std::int64_t> stages,
                   std::vector<std::size_t> groups, bool resident)
    : group_count_(*std::ranges::max_element(groups) + 1),
      splits_(plan::splits_backward(shape.schedule)) {
  for (const std::int64_t stage : stages) {
    Walk(*this, groups, resident).run(shape, stage);
  }
}

Bytes InFlight::most_before(std::size_t number, std::span<const GroupBytes> groups) const {
  Bytes most{0};
  for (const Counts& counts : sorts_[number].counts) {
    Bytes sum{0};
    for (std::size_t g = 0; g < groups.size(); ++g) {
      sum += groups[g].kept * counts[g];
    }
    std::size_t at = group_count_;
    for (std::size_t g = 0; splits_ && g < groups.size(); ++g) {
      sum += groups[g].held * counts[at++];
    }
    for (std::size_t g = 0; at < counts.size(); ++g) {
      sum += groups[g].resident * counts[at++];
    }
    most = std::max(most, sum);
  }
  return most;
}

Bytes InFlight::most_on_host(std::size_t number, std::span<const Bytes> by_group) const {
  const Moments& moments = sorts_[number];
  Bytes most{0};
  for (const Counts& counts : moments.counts) {
    Bytes sum = moments.sort.runs_forward() ? by_group[moments.sort.group] : Bytes(0);
    for (std::size_t g = 0; g < by_group.size(); ++g) {
      sum += by_group[g] * counts[g];
    }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace orrery::footprint
