// SPDX-License-Identifier: Apache-2.0
#include "report/telemetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "machine/topology/link_map.h"
#include "machine/topology/routing.h"
#include "report/json_writer.h"

namespace orrery::report {
namespace {

/// A normal number from two uniform ones (Box and Muller, 1958): the same on every platform.
class Noise {
 public:
  explicit Noise(const Measurement& measurement)
      : sigma_(measurement.sigma), random_(measurement.seed) {}
  double factor() {
    if (sigma_ == 0) {
      return 1;
    }
    const double angle = 2 * std::numbers::pi * uniform();
    return std::exp(sigma_ * std::sqrt(-2 * std::log1p(-uniform())) * std::cos(angle));
  }

 private:
  double uniform() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }
  double sigma_;
  std::mt19937_64 random_;
};

class Recorder {
 public:
  Recorder(const study::WorkloadRun& run, const Measurement& measurement)
      : run_(run),
        map_(run.machine.network),
        noise_(measurement),
        gone_since_(measurement.gone_since) {
    if (run.machine.wires.graph) {
      router_.emplace(*run.machine.wires.graph, topology::Routing::shortest);
    }
  }

  std::string text() {
    for (const simulate::Span& span : run_.timeline.spans) {
      if (span.kind == graph::Node::Kind::collective) {
        collective(span);
      }
    }
    if (run_.timeline.messages.empty()) {
      sends();
    }
    for (const simulate::MessageSpan& span : run_.timeline.messages) {
      message(span);
    }
    const Time end =
        run_.timeline.stopped ? run_.timeline.stopped->at + 60_s : run_.timeline.run_time;
    for (const std::int64_t rank : run_.timeline.ranks) {
      text_ += fmt::format(R"({{"type": "snapshot", "rank": {}, "time_s": {}}})"
                           "\n",
                           rank, seconds(until(rank, end)));
    }
    return std::move(text_);
  }

 private:
  Time until(std::int64_t rank, Time end) const {
    const auto gone = gone_since_.find(rank);
    return gone == gone_since_.end() ? end : std::min(end, gone->second);
  }

  static std::string seconds(Time time) { return fmt::format("{:.9f}", to_seconds(time)); }

  const graph::Node& node_of(const simulate::Span& span) const {
    const int role = run_.workload.role_of(span.rank);
    const auto number = static_cast<std::size_t>(span.template_index);
    return run_.workload.program_of(role)
        .templates[number]
        .nodes[static_cast<std::size_t>(span.node)];
  }

  /// Returns the communicator's name in quotes; writes a line when it is new.
  const std::string& communicator(const simulate::Span& span) {
    const graph::Group& group = run_.workload.group(span.group);
    std::vector<std::int64_t> members = group.members.group(span.rank);
    std::ranges::sort(members);
    const auto [known, fresh] = communicators_.try_emplace(std::pair(*span.group, members.front()));
    if (fresh) {
      known->second = quoted(fmt::format("{} of rank {}", group.name, members.front()));
      text_ += fmt::format(R"({{"type": "communicator", "name": {}, "ranks": [{}]}})"
                           "\n",
                           known->second, fmt::join(members, ", "));
    }
    return known->second;
  }

  static std::string quoted(const std::string& text) {
    std::string json;
    JsonWriter([&](std::string_view piece) { json += piece; }).value(text);
    return json;
  }

  void collective(const simulate::Span& span) {
    const graph::Node& node = node_of(span);
    const std::string& name = communicator(span);
    const std::int64_t sequence = sequences_[{name, span.rank}]++;
    const std::string ended =
        span.end.is_overflow() ? "" : fmt::format(R"(, "ended_s": {})", seconds(span.end));
    text_ +=
        fmt::format(R"({{"type": "collective", "communicator": {}, "rank": {}, "sequence": {}, )"
                    R"("operation": "{}", "bytes": {}, "entered_s": {}{}}})"
                    "\n",
                    name, span.rank, sequence, name_of(node.collective),
                    std::max<std::int64_t>(1, node.bytes.value()),
                    seconds(std::max(span.ready, span.host_end)), ended);
  }

  /// Messages from rank to rank, by their spans: the sender's, then the receiver's.
  void sends() {
    const std::vector<simulate::Span>& spans = run_.timeline.spans;
    for (std::size_t s = 0; s + 1 < spans.size(); ++s) {
      if (spans[s].kind == graph::Node::Kind::send) {
        message({spans[s].rank, spans[s].rank + node_of(spans[s]).peer, node_of(spans[s]).bytes,
                 spans[s].begin, spans[s].end});
      }
    }
  }

  void message(const simulate::MessageSpan& span) {
    if (span.end.is_overflow() || span.source == span.target || span.bytes < Bytes(1)) {
      return;
    }
    const Time took =
        Time::from_double(static_cast<double>((span.end - span.begin).value()) * noise_.factor());
    const std::string begin = seconds(span.begin);
    const std::string end = seconds(span.begin + took);
    if (begin == end) {
      return;  // below what is recorded
    }
    text_ += fmt::format(
        R"({{"type": "message", "source": {}, "target": {}, "bytes": {}, "begin_s": {}, )"
        R"("end_s": {}, "path": {}}})"
        "\n",
        span.source, span.target, span.bytes.value(), begin, end,
        quoted(path(span.source, span.target)));
  }

  std::string path(std::int64_t source, std::int64_t target) {
    if (router_) {
      std::vector<topology::Hop> hops;
      router_->route(static_cast<std::int32_t>(source), static_cast<std::int32_t>(target), 0, hops);
      return fmt::format("{} links", hops.size());
    }
    const auto outermost = static_cast<std::size_t>(map_.outermost(source, target));
    return run_.machine.network[outermost].name;
  }

  const study::WorkloadRun& run_;
  topology::LinkMap map_;
  std::optional<topology::Router> router_;
  Noise noise_;
  const std::map<std::int64_t, Time>& gone_since_;
  std::map<std::pair<std::size_t, std::int64_t>, std::string> communicators_;
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> sequences_;
  std::string text_;
};

}  // namespace

std::string telemetry_text(const study::WorkloadRun& run, const Measurement& measurement) {
  return Recorder(run, measurement).text();
}

}  // namespace orrery::report
