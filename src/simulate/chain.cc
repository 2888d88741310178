// SPDX-License-Identifier: Apache-2.0
#include "simulate/chain.h"

#include <algorithm>
#include <optional>

namespace orrery {
namespace {

/// Finds the chains of one template, from node to node.
class Finder {
 public:
  Finder(const BoundTemplate& shape, const std::vector<bool>& serial,
         const Undisturbed& undisturbed)
      : shape_(shape), before_(shape.nodes.size()) {
    for (std::uint32_t i = 0; i < shape.nodes.size(); ++i) {
      const BoundNode& node = shape.nodes[i];
      const bool fits = node.stream == kComputeStream
                            ? node.kind == Node::Kind::compute || node.kind == Node::Kind::wait
                            : node.kind == Node::Kind::collective && serial[*node.stream];
      alone_.push_back(!fits                                 ? std::nullopt
                       : node.kind == Node::Kind::collective ? undisturbed(node)
                                                             : std::optional(Time(0)));
      for (std::uint32_t d = 0; d < node.dependent_count; ++d) {
        before_[shape.dependents[node.first_dependent + d]].push_back(i);
      }
    }
  }

  ChainTable run() {
    ChainTable table;
    table.at.assign(shape_.nodes.size(), -1);
    for (std::uint32_t i = 0; i < shape_.nodes.size();) {
      const std::uint32_t count = length_from(i);
      if (count > 1) {
        table.at[i] = static_cast<std::int32_t>(table.chains.size());
        table.chains.push_back(make(i, count));
      }
      i += std::max(count, 1U);
    }
    return table;
  }

 private:
  const BoundNode& node(std::uint32_t i) const { return shape_.nodes[i]; }

  /// Nodes of the longest chain that begins at `first`: it ends on the compute stream, and what
  /// depends on its nodes but the last is in it.
  std::uint32_t length_from(std::uint32_t first) const {
    if (!alone_[first] || node(first).stream != kComputeStream) {
      return 0;
    }
    std::uint32_t length = 1;
    std::uint32_t reach = latest_dependent(first);  // of all before i
    for (std::uint32_t i = first + 1; i < shape_.nodes.size() && follows(first, i); ++i) {
      if (reach <= i && node(i).stream == kComputeStream) {
        length = i - first + 1;
      }
      reach = std::max(reach, latest_dependent(i));
    }
    return length;
  }

  /// Starts when its predecessor in the list ends, and waits for nothing outside.
  bool follows(std::uint32_t first, std::uint32_t i) const {
    if (!alone_[i]) {
      return false;
    }
    const std::vector<std::uint32_t>& before = before_[i];
    const bool outside =
        std::any_of(before.begin(), before.end(), [&](std::uint32_t b) { return b < first; });
    const bool waits = std::find(before.begin(), before.end(), i - 1) != before.end();
    return !outside && (waits || node(i).stream == node(i - 1).stream);
  }

  std::uint32_t latest_dependent(std::uint32_t i) const {
    const BoundNode& of = node(i);
    std::uint32_t latest = 0;
    for (std::uint32_t d = 0; d < of.dependent_count; ++d) {
      latest = std::max(latest, shape_.dependents[of.first_dependent + d]);
    }
    return latest;
  }

  Chain make(std::uint32_t first, std::uint32_t count) const {
    Chain chain{.first = first, .count = count, .alone = {}, .rest = {}, .streams = {}};
    for (std::uint32_t i = first; i < first + count; ++i) {
      chain.alone.push_back(*alone_[i]);
      if (node(i).stream == kComputeStream) {
        continue;
      }
      const auto use =
          std::find_if(chain.streams.begin(), chain.streams.end(),
                       [&](const Chain::Use& u) { return u.stream == node(i).stream; });
      if (use == chain.streams.end()) {
        chain.streams.push_back({node(i).stream, i, 1});
      } else {
        ++use->count;
      }
    }
    for (std::size_t beside = 0; beside < kBesideCount; ++beside) {
      std::vector<Time>& rest = chain.rest[beside];
      rest.assign(count + 1, Time(0));
      for (std::uint32_t i = count; i-- > 0;) {
        rest[i] = rest[i + 1] + time_of(first + i, static_cast<Beside>(beside));
      }
    }
    chain.slack = slack_of(chain);
    return chain;
  }

  /// As Job::start.
  Time time_of(std::uint32_t i, Beside beside) const {
    const BoundNode& of = node(i);
    if (of.kind != Node::Kind::compute) {
      return *alone_[i];
    }
    const double slowdown = of.contention.slowdown(beside);
    return slowdown > 1 ? Time::from_double(static_cast<double>(of.work.value()) * slowdown)
                        : of.work;
  }

  /// Kernels are fastest when nothing runs beside them, so the host has least time then. A node
  /// that the host waits for makes it late.
  Time slack_of(const Chain& chain) const {
    Time slack = Time::max();
    Time start{0};
    Time host{0};
    for (std::uint32_t i = 0; i < chain.count; ++i) {
      const BoundNode& of = node(chain.first + i);
      if (of.kind == Node::Kind::compute) {
        slack = std::min(slack, start + of.work - host - of.host_span);
      } else if (of.kind == Node::Kind::collective) {
        slack = std::min(slack, start - host - of.host_cost);
      }
      const bool sync_inside = of.host_sync && i + 1 < chain.count;
      slack = sync_inside ? Time(0) - Time::max() : slack;
      host += of.host_cost;
      start += chain.rest[0][i] - chain.rest[0][i + 1];
    }
    return slack;
  }

  const BoundTemplate& shape_;
  std::vector<std::vector<std::uint32_t>> before_;  ///< by node
  std::vector<std::optional<Time>> alone_;          ///< by node; nothing: it cannot be in a chain
};

}  // namespace

ChainTable find_chains(const BoundTemplate& shape, const std::vector<bool>& serial,
                       const Undisturbed& undisturbed) {
  return Finder(shape, serial, undisturbed).run();
}

std::vector<bool> serial_streams(const std::vector<Template>& templates, std::size_t streams) {
  std::vector<bool> serial(streams, true);
  for (const Template& t : templates) {
    for (std::size_t i = 0; i < t.nodes.size(); ++i) {
      const Node& node = t.nodes[i];
      const bool follows = i > 0 && t.nodes[i - 1].stream == node.stream;
      const bool waits = std::any_of(node.after.begin(), node.after.end(), [&](int before) {
        return t.nodes[static_cast<std::size_t>(before)].stream == kComputeStream;
      });
      if (!follows && !waits) {
        serial[*node.stream] = false;
      }
    }
  }
  return serial;
}

}  // namespace orrery
