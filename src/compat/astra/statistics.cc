// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/statistics.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "workload/chakra/footprint.h"

namespace orrery::astra {
namespace {

using Intervals = std::vector<std::pair<Time, Time>>;  ///< start, end

/// Sorted, those that touch as one.
Intervals merged(Intervals intervals) {
  std::sort(intervals.begin(), intervals.end());
  Intervals all;
  for (const auto& [start, end] : intervals) {
    if (all.empty() || start > all.back().second) {
      all.emplace_back(start, end);
    } else {
      all.back().second = std::max(all.back().second, end);
    }
  }
  return all;
}

Time sum(const Intervals& intervals) {
  Time total{0};
  for (const auto& [start, end] : intervals) {
    total += end - start;
  }
  return total;
}

/// Returns the time that is in both lists.
Time common(const Intervals& a, const Intervals& b) {
  Time total{0};
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    total += std::max(Time(0), std::min(i->second, j->second) - std::max(i->first, j->first));
    i->second < j->second ? ++i : ++j;
  }
  return total;
}

/// Sums over time of one rank's computation.
class RooflineSums {
 public:
  explicit RooflineSums(const System& system) : system_(system) {}

  void add(const chakra::Node& node, Time taken) {
    const double seconds = static_cast<double>(taken.value()) * kSecondsPerPicosecond;
    if (seconds == 0) {
      return;
    }
    const double operations = node.operations.value();
    const auto bytes = static_cast<double>(node.size.value());
    const double peak = system_.peak->value();
    const double memory = system_.local_memory_bandwidth->value();
    seconds_ += seconds;
    at_peak_ += operations * memory >= peak * bytes ? seconds : 0;
    at_compute_ += operations / peak;
    at_memory_ += bytes / memory;
    intensity_ += bytes > 0 ? operations / bytes * seconds : 0;
  }
  std::optional<Statistics::Roofline> take() const {
    if (seconds_ == 0) {
      return std::nullopt;
    }
    return Statistics::Roofline{at_peak_ / seconds_, at_compute_ / seconds_, at_memory_ / seconds_,
                                intensity_ / seconds_};
  }

 private:
  static constexpr double kSecondsPerPicosecond = 1e-12;
  const System& system_;
  double seconds_ = 0;
  double at_peak_ = 0;
  double at_compute_ = 0;
  double at_memory_ = 0;
  double intensity_ = 0;
};

Statistics of_rank(const RunInput& input, const chakra::Program& program,
                   const std::vector<chakra::NodeTime>& times) {
  using chakra::NodeType;
  Statistics made;
  Intervals cpu;
  Intervals gpu;
  Intervals communication;
  Intervals memory;
  RooflineSums sums(input.system);
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const chakra::Node& node = program.nodes[i];
    const std::pair interval{times[i].start, times[i].end};
    made.wall = std::max(made.wall, interval.second);
    switch (node.type) {
      case NodeType::comp:
        (node.on_cpu ? cpu : gpu).push_back(interval);
        if (input.system.roofline && !input.system.replay_only && !node.on_cpu) {
          sums.add(node, interval.second - interval.first);
        }
        break;
      case NodeType::mem_load:
      case NodeType::mem_store:
        memory.push_back(interval);
        break;
      case NodeType::comm_send:
      case NodeType::comm_recv:
      case NodeType::comm_coll:
        communication.push_back(interval);
        break;
      case NodeType::invalid:
      case NodeType::metadata:
        break;
    }
  }
  gpu = merged(std::move(gpu));
  communication = merged(std::move(communication));
  made.cpu = sum(merged(std::move(cpu)));
  made.gpu = sum(gpu);
  made.communication = sum(communication);
  made.remote_memory = sum(merged(std::move(memory)));
  made.overlap = common(gpu, communication);
  made.roofline = sums.take();
  return made;
}

}  // namespace

std::vector<Statistics> statistics(const RunInput& input, const RunResult& result) {
  assert(result.node_times.size() == result.classes.size() && "node_times were asked for");
  std::vector<Statistics> all;
  for (std::size_t i = 0; i < result.classes.size(); ++i) {
    all.push_back(
        of_rank(input, input.traces.program(result.classes[i].rank), result.node_times[i]));
  }
  return all;
}

}  // namespace orrery::astra
