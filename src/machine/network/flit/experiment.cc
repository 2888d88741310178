// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>

#include "base/collect.h"
#include "base/fields.h"
#include "base/format.h"
#include "base/one_of.h"

namespace orrery::flit {
namespace {

constexpr Cycle kLongestLink = 1'000'000;
constexpr int kMostPacket = 1'000'000;
constexpr double kMostSpeedup = 16;
constexpr int kMostBatch = 1'000'000;
constexpr Bytes kMostPacketBytes{1 << 24};
constexpr std::int64_t kMostPackets = 20'000'000;
constexpr std::int64_t kMostBufferFlits = std::int64_t{1} << 28U;

/// BookSim's names of routing functions.
constexpr std::array<Named<Algorithm>, 9> kOtherNames{
    {{Algorithm::dor, "xy", {}},
     {Algorithm::dor, "dim_order", {}},
     {Algorithm::dor, "ran_min", {}},
     {Algorithm::o1turn, "xy_yx", {}},
     {Algorithm::adaptive, "min_adapt", {}},
     {Algorithm::adaptive, "minimal_adaptive", {}},
     {Algorithm::dest_tag, "destination_tag", {}},
     {Algorithm::up_down, "up*/down*", {}},
     {Algorithm::up_down, "updown", {}}}};

template <class T>
void require(Error& mistakes, std::string_view field, T value, T low, T high) {
  if (!(value >= low && value <= high)) {
    mistakes.add({std::string(field),
                  {},
                  exact_text(value),
                  fmt::format("{} to {}", exact_text(low), exact_text(high))});
  }
}

void check_bursts(const TrafficClass& of, double rate, Error& mistakes) {
  require(mistakes, "burst_alpha", of.burst_alpha, 0.0, 1.0);
  require(mistakes, "burst_beta", of.burst_beta, 0.0, 1.0);
  if (of.burst_beta > 0 && of.burst_alpha == 0) {
    mistakes.add({"burst_beta", {}, exact_text(of.burst_beta), "goes with burst_alpha"});
  } else if (of.has_bursts() && of.probability(rate) > 1) {
    mistakes.add({"burst_alpha",
                  {},
                  exact_text(of.burst_alpha),
                  fmt::format("bursts that carry the load: rate / packet x (alpha + beta) / alpha "
                              "is {:.3g}, at most 1",
                              of.probability(rate))});
  }
}

/// Checks the classes of files of BookSim, the only ones with several.
void check_classes(const Experiment& experiment, Error& mistakes) {
  for (const TrafficClass& of : experiment.classes) {
    check_bursts(of, experiment.load.rate, mistakes);
    const int most = experiment.router.flow_control == FlowControl::cut_through
                         ? experiment.router.buffer
                         : kMostPacket;
    for (const int size : of.sizes) {
      require(mistakes, "packet_size", size, 1, most);
    }
    require(mistakes, "packet_size_rate",
            std::accumulate(of.weights.begin(), of.weights.end(), 0.0), 1.0, 1.0 * kMostPacket);
    for (const int weight : of.weights) {
      require(mistakes, "packet_size_rate", weight, 0, kMostPacket);
    }
    require(mistakes, "write_fraction", of.write_share, 0.0, 1.0);
    for (const int size : of.transaction_sizes) {
      require(mistakes, "read_request_size", size, 1, most);
    }
    if (of.probability(experiment.load.rate) > 1) {
      mistakes.add({"injection_rate", {}, {}, "at most a packet of a class, node and cycle"});
    }
  }
  const bool transacts = std::any_of(experiment.classes.begin(), experiment.classes.end(),
                                     [](const TrafficClass& of) { return of.transacts; });
  for (std::size_t i = 1; transacts && i < kPurposes; ++i) {
    const auto [first, last] = experiment.purpose_vcs[i];
    if (first < 0 || last < first || last >= experiment.router.vcs) {
      mistakes.add({std::string(kPurposeNames[i]) + "_begin_vc",
                    {},
                    fmt::format("{} to {}", first, last),
                    fmt::format("VCs of the {}", experiment.router.vcs)});
    }
  }
}

/// Refuses speculation with longer delays, with which BookSim's runs stop.
void check_speculation(const RouterSettings& router, Error& mistakes) {
  if (router.speculation == Speculation::none) {
    return;
  }
  for (const auto& [field, delay] : {std::pair("vc_alloc_delay", router.vc_alloc_delay),
                                     std::pair("sw_alloc_delay", router.sw_alloc_delay)}) {
    if (delay != 1) {
      mistakes.add({field, {}, exact_text(delay), "1, with speculation: both are done at once"});
    }
  }
  if (router.speculation == Speculation::priority && router.sw_allocator >= Allocator::wavefront) {
    mistakes.add({"sw_allocator",
                  {},
                  std::string(name_of(router.sw_allocator)),
                  "one that knows priorities, with speculation by priority: "
                  "separable_input_first, separable_output_first"});
  }
}

/// Mistakes about fields that are stated somewhere say where.
Error placed(Error mistakes, const Experiment& experiment) {
  for (Mistake& mistake : mistakes.mistakes) {
    const auto stated = experiment.stated_at.find(mistake.where);
    if (stated != experiment.stated_at.end() && mistake.field.empty()) {
      mistake.where = stated->second.where;
      mistake.field = stated->second.name;
    }
  }
  return mistakes;
}

}  // namespace

Result<Algorithm> algorithm_named(std::string_view name) {
  for (const Named<Algorithm>& other : kOtherNames) {
    if (other.name == name) {
      return other.value;
    }
  }
  if (const auto value = value_of<Algorithm>(name)) {
    return *value;
  }
  return fail(Error(Mistake{"routing", {}, std::string(name), one_of<Algorithm>(name)}));
}

Result<Experiment> parse_experiment(const ConfigNode& node) {
  Reader read(node);
  Experiment experiment;
  read_fields(read, experiment);
  read_fields(read, experiment.router);
  read_fields(read, experiment.load);
  for (const char* field :
       {"sample_period", "warmup_periods", "max_samples", "latency_limit", "stopping_threshold"}) {
    experiment.states_periods |= node.find(field) != nullptr;
  }
  for (const ConfigField& field : node.fields) {
    experiment.stated_at[field.name] = {field.value.where(), field.value.path};
  }
  return read.finish(std::move(experiment));
}

Result<void> check(const Experiment& experiment) {
  Error mistakes;
  const RouterSettings& router = experiment.router;
  require(mistakes, "vcs", router.vcs, 1, kMostVcs);
  require(mistakes, "buffer", router.buffer, 1, kMostBuffer);
  require(mistakes, "routing_delay", router.routing_delay, 0, kMostDelay);
  require(mistakes, "vc_alloc_delay", router.vc_alloc_delay, 1, kMostDelay);
  require(mistakes, "sw_alloc_delay", router.sw_alloc_delay, 1, kMostDelay);
  require(mistakes, "st_final_delay", router.st_final_delay, 0, kMostDelay);
  require(mistakes, "credit_delay", router.credit_delay, 0, kMostDelay);
  require(mistakes, "alloc_iters", router.alloc_iters, 1, 100);
  require(mistakes, "input_speedup", router.input_speedup, 1, kMostVcs);
  require(mistakes, "output_speedup", router.output_speedup, 1, kMostVcs);
  require(mistakes, "internal_speedup", router.internal_speedup, 1.0, kMostSpeedup);
  check_speculation(router, mistakes);
  require<std::int64_t>(mistakes, "link_latency", experiment.link_latency, 0, kLongestLink);
  require<std::int64_t>(mistakes, "node_latency", experiment.node_latency, 0, kLongestLink);
  require(mistakes, "batch", experiment.batch, 0, kMostBatch);
  require(mistakes, "outstanding", experiment.outstanding, 0, kMostBatch);
  require(mistakes, "flit_bytes", experiment.flit_bytes, Bytes(1), kMostPacketBytes);
  require(mistakes, "packet_bytes", experiment.packet_bytes, Bytes(1), kMostPacketBytes);
  if (experiment.outstanding > 0 && experiment.batch == 0) {
    mistakes.add({"outstanding", {}, exact_text(experiment.outstanding), "goes with batch"});
  }
  const OpenLoopSettings& load = experiment.load;
  require(mistakes, "packet", load.packet, 1, kMostPacket);
  require<std::int64_t>(mistakes, "sample_period", load.sample_period, 1, 1'000'000'000);
  require(mistakes, "warmup_periods", load.warmup_periods, 1, 1'000'000);
  require(mistakes, "max_samples", load.max_samples, 1, 1'000'000);
  require(mistakes, "latency_limit", load.latency_limit, 1.0, 1e12);
  require(mistakes, "stopping_threshold", load.stopping_threshold, 0.0, 1e6);
  const auto most = static_cast<double>(std::max<std::size_t>(1, experiment.classes.size()));
  if (!(load.rate > 0 && load.rate <= most)) {
    mistakes.add({"rate", {}, exact_text(load.rate), "above 0, at most 1 flit per node and cycle"});
  }
  require(mistakes, "throughput_threshold", load.throughput_threshold, 0.0, 1e6);
  check_bursts(load.one_class(), load.rate, mistakes);
  check_classes(experiment, mistakes);
  if (load.warmup_periods >= load.max_samples) {
    mistakes.add({"max_samples",
                  {},
                  exact_text(load.max_samples),
                  fmt::format("more than the {} periods of the warm-up", load.warmup_periods)});
  }
  if (router.flow_control == FlowControl::cut_through && load.packet > router.buffer) {
    mistakes.add({"buffer",
                  {},
                  exact_text(router.buffer),
                  fmt::format("at least the {} flits of a packet, with cut_through", load.packet)});
  }
  if (!mistakes.empty()) {
    return fail(placed(std::move(mistakes), experiment));
  }
  return {};
}

/// Returns the cycles beyond the first from a node to the middle of its router's tile, in one
/// direction.
static Cycle distance_in_tile(Cycle place, Cycle side) {
  Cycle from_middle = place - side / 2;
  from_middle += from_middle >= 0 && side % 2 == 0 ? 1 : 0;
  return std::max<Cycle>(std::abs(from_middle), 1) - 1;
}

static void set_distances(const Distances& distances, RouterGraph& graph) {
  const bool dragonfly = graph.shape == Shape::dragonfly && distances.global > 0;
  for (Channel& channel : graph.channels) {
    if (dragonfly) {
      const bool inside = channel.source / graph.extents[0] == channel.target / graph.extents[0];
      channel.latency = inside ? distances.local : distances.global;
    } else if (distances.columns > 0) {
      const auto apart = [&](std::int32_t a, std::int32_t b) { return Cycle{std::abs(a - b)}; };
      const std::int32_t columns = distances.columns;
      channel.latency =
          distances.across * apart(channel.source % columns, channel.target % columns) +
          distances.along * apart(channel.source / columns, channel.target / columns);
    }
  }
  std::map<std::int32_t, Cycle> placed;  // nodes of a router, in the order of rows of its tile
  for (Node& node : graph.nodes) {
    const Cycle place = placed[node.inject]++;
    if (distances.columns > 0) {
      node.latency = 1 + distance_in_tile(place % distances.across, distances.across) +
                     distance_in_tile(place / distances.across, distances.along);
    }
  }
}

/// Returns whether a channel of a concentrated mesh is no express channel.
static bool is_beside(const Channel& channel, const RouterGraph& graph) {
  const std::int32_t apart = std::abs(channel.source - channel.target);
  return apart == 1 || apart == graph.extents[0];
}

static void set_latencies(const Experiment& experiment, RouterGraph& graph) {
  set_distances(experiment.distances, graph);
  for (Channel& channel : graph.channels) {
    channel.latency = experiment.link_latency > 0 ? experiment.link_latency : channel.latency;
    if (experiment.distances.express > 0 && !is_beside(channel, graph)) {
      channel.latency = experiment.distances.express;
    }
  }
  for (Node& node : graph.nodes) {
    node.latency = experiment.node_latency > 0 ? experiment.node_latency : node.latency;
  }
}

/// Patterns of the classes after the first, routing in the VCs of each purpose.
static void add_classes(const Experiment& experiment, Algorithm algorithm, Prepared& prepared,
                        Error& mistakes) {
  for (std::size_t i = 1; i < experiment.classes.size(); ++i) {
    if (auto traffic =
            kept(Traffic::make(experiment.classes[i].pattern, *prepared.graph), mistakes)) {
      prepared.more_traffic.push_back(std::move(*traffic));
    }
  }
  if (std::none_of(experiment.classes.begin(), experiment.classes.end(),
                   [](const TrafficClass& of) { return of.transacts; })) {
    return;
  }
  for (std::size_t i = 0; i < kPurposes; ++i) {
    const auto [first, last] = experiment.purpose_vcs[i];
    if (auto routing =
            kept(Routing::make(*prepared.graph, algorithm, last - first + 1, experiment.rules),
                 mistakes)) {
      prepared.purpose_routing.push_back(std::move(*routing));
    }
  }
}

static Result<Prepared> build(const Experiment& experiment) {
  Error mistakes;
  collect(check(experiment), mistakes);
  auto graph = kept(parse_network(experiment.topology), mistakes);
  auto algorithm = experiment.routing.empty() && graph
                       ? Result<Algorithm>(default_algorithm(graph->shape))
                       : algorithm_named(experiment.routing);
  if (!algorithm && !experiment.routing.empty()) {
    mistakes.add(std::move(algorithm.error()));
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  auto owned = std::make_unique<RouterGraph>(std::move(*graph));
  if (static_cast<std::int64_t>(owned->nodes.size()) * experiment.batch > kMostPackets) {
    return fail(Error(Mistake{
        "batch",
        {},
        exact_text(experiment.batch),
        fmt::format("at most {} packets of all {} nodes", kMostPackets, owned->nodes.size())}));
  }
  const auto buffers = static_cast<std::int64_t>(owned->channels.size() + owned->nodes.size());
  if (buffers * experiment.router.vcs * experiment.router.buffer > kMostBufferFlits) {
    return fail(Error(Mistake{"buffer",
                              {},
                              exact_text(experiment.router.buffer),
                              fmt::format("at most {} flits in the buffers of all {} ports",
                                          kMostBufferFlits, buffers)}));
  }
  set_latencies(experiment, *owned);
  auto routing =
      kept(Routing::make(*owned, *algorithm, experiment.router.vcs, experiment.rules), mistakes);
  auto traffic = kept(Traffic::make(experiment.pattern, *owned), mistakes);
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  if (*algorithm == Algorithm::adaptive && experiment.router.speculation != Speculation::none) {
    return fail(Error(Mistake{"speculation",
                              {},
                              std::string(name_of(experiment.router.speculation)),
                              "none, with adaptive routing: a head does not know its output"}));
  }
  Prepared prepared{std::move(owned), std::move(*routing), std::move(*traffic)};
  add_classes(experiment, *algorithm, prepared, mistakes);
  return or_mistakes(std::move(prepared), std::move(mistakes));
}

Result<Prepared> prepare(const Experiment& experiment) {
  return build(experiment).map_error([&](Error mistakes) {
    return placed(std::move(mistakes), experiment);
  });
}

Network Prepared::network(const Experiment& experiment) const {
  Network made{*graph, routing, experiment.router, experiment.classes, {&traffic}, {}};
  if (made.classes.empty()) {
    made.classes = {experiment.load.one_class()};
  }
  for (const Traffic& more : more_traffic) {
    made.traffic.push_back(&more);
  }
  for (std::size_t i = 0; i < purpose_routing.size(); ++i) {
    const auto [first, last] = experiment.purpose_vcs[i];
    made.kinds.push_back({&purpose_routing[i], static_cast<std::uint32_t>(first),
                          static_cast<std::uint32_t>(last - first + 1)});
  }
  return made;
}

}  // namespace orrery::flit
