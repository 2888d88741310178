// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/experiment.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/fields.h"
#include "base/format.h"

namespace orrery::flit {
namespace {

constexpr Cycle kLongestLink = 1'000'000;
constexpr int kBisections = 6;
constexpr double kMostSpeedup = 16;
constexpr double kRateDigits = 1e4;  // loads of four digits, as the public cases were run with
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

void check_bursts(const OpenLoopSettings& load, Error& mistakes) {
  require(mistakes, "burst_alpha", load.burst_alpha, 0.0, 1.0);
  require(mistakes, "burst_beta", load.burst_beta, 0.0, 1.0);
  if (load.burst_beta > 0 && load.burst_alpha == 0) {
    mistakes.add({"burst_beta", {}, exact_text(load.burst_beta), "goes with burst_alpha"});
  } else if (load.has_bursts() && load.burst_probability() > 1) {
    mistakes.add({"burst_alpha",
                  {},
                  exact_text(load.burst_alpha),
                  fmt::format("bursts that carry the load: rate / packet x (alpha + beta) / alpha "
                              "is {:.3g}, at most 1",
                              load.burst_probability())});
  }
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
  return fail(Error(
      Mistake{"routing",
              {},
              std::string(name),
              "one of " + all_names<Algorithm>() + did_you_mean(name, names_of<Algorithm>())}));
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
  require(mistakes, "internal_speedup", router.internal_speedup, 1.0, kMostSpeedup);
  if (router.hold_switch_for_packet && router.input_speedup > 1) {
    mistakes.add({"hold_switch_for_packet",
                  {},
                  "true",
                  fmt::format("an input_speedup of 1, not {}", router.input_speedup)});
  }
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
  require(mistakes, "packet", load.packet, 1, 1'000'000);
  require<std::int64_t>(mistakes, "sample_period", load.sample_period, 1, 1'000'000'000);
  require(mistakes, "warmup_periods", load.warmup_periods, 1, 1'000'000);
  require(mistakes, "max_samples", load.max_samples, 1, 1'000'000);
  require(mistakes, "latency_limit", load.latency_limit, 1.0, 1e12);
  require(mistakes, "stopping_threshold", load.stopping_threshold, 0.0, 1e6);
  if (!(load.rate > 0 && load.rate <= 1)) {
    mistakes.add({"rate", {}, exact_text(load.rate), "above 0, at most 1 flit per node and cycle"});
  }
  check_bursts(load, mistakes);
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
    return fail(std::move(mistakes));
  }
  return {};
}

Result<Prepared> prepare(const Experiment& experiment) {
  Error mistakes;
  if (auto ok = check(experiment); !ok) {
    mistakes.add(std::move(ok.error()));
  }
  auto graph = parse_network(experiment.topology);
  if (!graph) {
    mistakes.add(std::move(graph.error()));
  }
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
  for (Channel& channel : owned->channels) {
    channel.latency = experiment.link_latency > 0 ? experiment.link_latency : channel.latency;
  }
  for (Node& node : owned->nodes) {
    node.latency = experiment.node_latency > 0 ? experiment.node_latency : node.latency;
  }
  auto routing = Routing::make(*owned, *algorithm, experiment.router.vcs);
  auto traffic = Traffic::make(experiment.pattern, *owned);
  if (!routing) {
    mistakes.add(std::move(routing.error()));
  }
  if (!traffic) {
    mistakes.add(std::move(traffic.error()));
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return Prepared{std::move(owned), std::move(*routing), std::move(*traffic)};
}

Saturation find_saturation(const Experiment& experiment, const Prepared& prepared,
                           const RunOptions& options) {
  OpenLoopSettings load = experiment.load;
  if (!experiment.states_periods) {
    load.sample_period = 500;
    load.warmup_periods = 2;
    load.max_samples = 8;
    load.latency_limit = 200;
    load.stopping_threshold = 0.1;
  }
  Saturation saturation;
  double high = 1;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (saturation.offered + high) / 2;
    load.rate = std::nearbyint(middle * kRateDigits) / kRateDigits;
    const RunOptions part{options.skip, [&](double share) {
                            if (options.progress) {
                              options.progress((i + share) / kBisections);
                            }
                          }};
    OpenLoopResult run = run_open_loop(*prepared.graph, prepared.routing, experiment.router,
                                       prepared.traffic, load, part);
    if (run.stable) {
      saturation.offered = middle;
      saturation.accepted = run.accepted;
    } else {
      high = middle;
    }
    saturation.runs.push_back(std::move(run));
  }
  return saturation;
}

}  // namespace orrery::flit
