// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/footprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>

namespace orrery::chakra {
namespace {

/// First and last uses of a tensor.
struct Ends {
  std::optional<Time> first_write;
  std::optional<Time> first_read;
  Time last_write{0};
  std::optional<Time> last_read;

  void add(const NodeTime& node, bool writes) {
    if (writes) {
      first_write = first_write ? std::min(*first_write, node.start) : node.start;
      last_write = std::max(last_write, node.start);
    } else {
      first_read = first_read ? std::min(*first_read, node.start) : node.start;
      last_read = last_read ? std::max(*last_read, node.end) : node.end;
    }
  }

  TensorLifetime lifetime(Time end_of_run) const {
    TensorLifetime life;
    life.initial = !first_write || (first_read && *first_read < *first_write);
    life.result = first_write && (!last_read || *last_read <= last_write);
    life.from = life.initial ? Time(0) : *first_write;
    life.until = life.result || !last_read ? end_of_run : *last_read;
    return life;
  }
};

struct Change {
  Time at{0};
  bool comes = false;  ///< what ends at an instant leaves first
  Bytes size{0};
};

/// Fills the peak of lifetimes that are known.
void find_peak(const TensorUses& tensors, Footprint& result) {
  std::vector<Change> changes;
  for (std::size_t t = 0; t < tensors.tensors.size(); ++t) {
    const TensorLifetime& life = result.lifetimes[t];
    if (life.from < life.until) {
      changes.push_back({life.from, true, tensors.tensors[t].size});
      changes.push_back({life.until, false, tensors.tensors[t].size});
    }
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.at != b.at ? a.at < b.at : a.comes < b.comes;
  });
  Bytes now{0};
  for (const Change& change : changes) {
    now = change.comes ? now + change.size : now - change.size;
    if (now > result.peak) {
      result.peak = now;
      result.peak_at = change.at;
    }
  }
  for (std::uint32_t t = 0; t < result.lifetimes.size(); ++t) {
    const TensorLifetime& life = result.lifetimes[t];
    if (life.from <= result.peak_at && result.peak_at < life.until) {
      result.at_peak.push_back(t);
    }
  }
}

}  // namespace

Result<std::size_t> position_of(const Program& program, const TensorUses& tensors,
                                const TensorUses::Use& use) {
  const auto found =
      std::lower_bound(program.nodes.begin(), program.nodes.end(), use.node,
                       [](const Node& node, std::uint64_t wanted) { return node.id < wanted; });
  if (found == program.nodes.end() || found->id != use.node) {
    return fail(fmt::format("tensor '{}' is used by node {}, which the trace does not have",
                            tensors.tensors[use.tensor].name, use.node));
  }
  return static_cast<std::size_t>(found - program.nodes.begin());
}

Result<Footprint> footprint(const Program& program, const TensorUses& tensors,
                            std::span<const NodeTime> times) {
  assert(times.size() == program.nodes.size() && "a time for every node");
  Time end_of_run{0};
  for (const NodeTime& time : times) {
    end_of_run = std::max(end_of_run, time.end);
  }
  std::vector<Ends> ends(tensors.tensors.size());
  for (const TensorUses::Use& use : tensors.uses) {
    const auto position = position_of(program, tensors, use);
    if (!position) {
      return fail(position.error());
    }
    ends[use.tensor].add(times[*position], use.writes);
  }
  Footprint result;
  for (const Ends& tensor : ends) {
    result.lifetimes.push_back(tensor.lifetime(end_of_run));
  }
  find_peak(tensors, result);
  return result;
}

std::vector<NodeTime> one_after_the_other(const Program& program) {
  std::vector<NodeTime> times;
  times.reserve(program.nodes.size());
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const Time start = 1_ns * static_cast<std::int64_t>(i);
    times.push_back({start, start + 1_ns});
  }
  return times;
}

}  // namespace orrery::chakra
