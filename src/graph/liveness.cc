// SPDX-License-Identifier: Apache-2.0
#include "graph/liveness.h"

#include <optional>

#include "base/lists.h"
#include "graph/workload.h"

namespace orrery::graph {
namespace {

using Lifetime = Tensor::Lifetime;

void note(const Allocation& allocation, Liveness& result) {
  if (allocation.shared > 0) {
    result.shared.push_back(allocation);
  } else if (allocation.lifetime == Lifetime::leaves) {
    result.taken[lower_row(allocation.tier)] += allocation.bytes;
  } else if (allocation.lifetime == Lifetime::enters) {
    result.given[lower_row(allocation.tier)] += allocation.bytes;
  }
}

/// Returns the bytes held at each moment; notes what does not count there and what is left.
std::vector<MemoryBytes> held_by_moment(std::span<const Allocation> allocations,
                                        std::size_t moments, Liveness& result) {
  result.moments = moments;
  std::vector<MemoryBytes> begins(moments + 1);  // held from this moment on
  std::vector<MemoryBytes> ends(moments + 1);    // held until this moment
  for (const Allocation& allocation : allocations) {
    if (allocation.tier != 0 || allocation.shared > 0) {
      note(allocation, result);
      continue;
    }
    if (allocation.lifetime != Lifetime::enters) {
      begins[std::min(allocation.first, moments)][allocation.memory] += allocation.bytes;
    }
    if (allocation.lifetime != Lifetime::leaves) {
      ends[std::min(allocation.last, moments)][allocation.memory] += allocation.bytes;
    }
  }
  std::vector<MemoryBytes> held;
  for (std::size_t moment = 0; moment <= moments; ++moment) {
    result.change += begins[moment];
    held.push_back(result.change);
    result.change -= ends[moment];
  }
  result.change_total = result.change.total();
  return held;
}

void consider(const MemoryBytes& held, std::size_t moment, bool first, Liveness& result) {
  const Bytes total = held.total();
  if (first || total > result.most_total) {
    result.most = held;
    result.most_total = total;
    result.moment = moment;
  }
  result.highest.raise_to(held);
}

/// Adds to `result` what is left after `other` too.
void end_concurrent(const Liveness& other, Liveness& result) {
  result.change += other.change;
  result.change_total = result.change.total();
  for (std::size_t row = 0; row < result.taken.size(); ++row) {
    result.taken[row] += other.taken[row];
    result.given[row] += other.given[row];
  }
  result.shared.insert(result.shared.end(), other.shared.begin(), other.shared.end());
}

/// First and last moments of each tensor's uses.
std::vector<std::optional<std::pair<std::size_t, std::size_t>>> used(const Template& t,
                                                                     std::size_t& moments) {
  std::vector<std::optional<std::pair<std::size_t, std::size_t>>> spans(t.tensors.size());
  moments = 0;
  for (const Node& node : t.nodes) {
    for (const auto* uses : {&node.reads, &node.writes}) {
      for (const Use& use : *uses) {
        const std::size_t moment = moments + static_cast<std::size_t>(use.at);
        auto& span = spans[static_cast<std::size_t>(use.tensor)];
        span = span ? std::pair(std::min(span->first, moment), std::max(span->second, moment))
                    : std::pair(moment, moment);
      }
    }
    moments += std::max<std::size_t>(1, node.operators.size());
  }
  return spans;
}

}  // namespace

Liveness& Liveness::then(const Liveness& next) {
  if (change.total() + next.most_total > most_total) {
    most = change + next.most;
    most_total = most.total();
    moment = moments + next.moment;
  }
  moments += next.moments;
  highest.raise_to(change + next.highest);
  end_concurrent(next, *this);
  return *this;
}

Liveness liveness(std::span<const Allocation> allocations, std::size_t moments) {
  Liveness result;
  const std::vector<MemoryBytes> held = held_by_moment(allocations, moments, result);
  for (std::size_t moment = 0; moment < moments; ++moment) {
    consider(held[moment], moment, moment == 0, result);
  }
  return result;
}

Liveness concurrent_liveness(std::span<const Allocation> first, std::size_t first_moments,
                             std::span<const Allocation> second, std::size_t second_moments) {
  Liveness result;
  Liveness other;
  const std::vector<MemoryBytes> ahead = held_by_moment(first, first_moments, result);
  const std::vector<MemoryBytes> behind = held_by_moment(second, second_moments, other);
  for (std::size_t k = 0; k < std::max<std::size_t>(1, first_moments); ++k) {
    for (std::size_t j = k; j < second_moments; ++j) {
      consider(ahead[k] + behind[j], j, j == 0, result);
    }
    consider(ahead[k] + other.change, second_moments + k, second_moments == 0 && k == 0, result);
  }
  result.moments = first_moments + second_moments;
  end_concurrent(other, result);
  return result;
}

Liveness liveness(const Template& t) {
  std::size_t moments = 0;
  const auto spans = used(t, moments);
  std::vector<Allocation> allocations;
  for (std::size_t i = 0; i < t.tensors.size(); ++i) {
    const Tensor& tensor = t.tensors[i];
    if (!tensor.memory.none()) {
      const auto [first, last] = spans[i].value_or(std::pair(moments, moments));
      allocations.push_back({.name = tensor.name,
                             .memory = tensor.memory,
                             .bytes = tensor.bytes,
                             .first = first,
                             .last = last,
                             .lifetime = tensor.lifetime,
                             .tier = tensor.tier,
                             .shared = tensor.shared});
    }
  }
  return liveness(allocations, moments);
}

std::int64_t Followed::changes(const Allocation& allocation, std::int64_t more) {
  auto known = std::find_if(in_flight_.begin(), in_flight_.end(),
                            [&](const auto& one) { return one.first == allocation.shared; });
  if (known == in_flight_.end()) {
    known = in_flight_.insert(known, {allocation.shared, 0});
  }
  const bool before = known->second > 0;
  known->second += more;
  const bool after = known->second > 0;
  return static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
}

void MemoryLevel::begin(const Liveness& instance, std::int64_t times) {
  followed_.begin(instance, times, [this](const Allocation& allocation, std::int64_t sign) {
    level_[allocation.memory] += allocation.bytes * sign;
  });
}

void MemoryLevel::end(const Liveness& instance, std::int64_t times) {
  MemoryBytes change = instance.change;
  level_ += change *= times;
  followed_.end(instance, times, [this](const Allocation& allocation, std::int64_t sign) {
    level_[allocation.memory] += allocation.bytes * sign;
  });
}

MemoryBytes MemoryLevel::run(const Liveness& instance) {
  begin(instance, 1);
  MemoryBytes fullest = level_;
  if (instance.moments > 0) {
    fullest += instance.most;
    highest_.raise_to(level_ + instance.highest);
  }
  end(instance, 1);
  return fullest;
}

void MemoryLevel::skip(const Liveness& instance, std::int64_t times) {
  begin(instance, times);
  end(instance, times);
}

MemoryBytes state_of(const Role& role) {
  MemoryBytes state;
  for (const Tensor& tensor : role.state) {
    if (tensor.tier == 0) {
      state[tensor.memory] += tensor.bytes;
    }
  }
  return state;
}

MemoryPeak memory_peak(const Workload& workload, int role) {
  LowerTiers lower{};
  for (const Tensor& tensor : workload.role(role).state) {
    if (tensor.tier != 0) {
      lower[lower_row(tensor.tier)] += tensor.bytes;
    }
  }
  MemoryLevel level(state_of(workload.role(role)), lower);
  const std::vector<Liveness> pieces =
      mapped(workload.program_of(role).templates, [&](const Template& t) { return liveness(t); });
  const IssueList& list = *workload.source->list();
  MemoryPeak peak;
  peak.bytes = level.level();
  for (std::int64_t i = 0; i < list.length(role); ++i) {
    const auto piece = static_cast<std::size_t>(list.at(role, i).template_index);
    const MemoryBytes now = level.run(pieces[piece]);
    if (now.total() > peak.bytes.total()) {
      peak.bytes = now;
      peak.instance = i;
    }
  }
  peak.highest = level.highest();
  peak.lower = level.most_lower();
  peak.end = level.level();
  return peak;
}

}  // namespace orrery::graph
