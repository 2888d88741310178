// SPDX-License-Identifier: Apache-2.0
#include "serving/home.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "base/reader.h"
#include "machine/compute/compute_model.h"
#include "serving/within.h"

namespace orrery::serving {
namespace {

constexpr std::int64_t kMostHomeTokens = 10'000;

struct Setting {
  const zoo::Model& model;
  const machine::Machine& machine;
  graph::DataType type = graph::DataType::fp32;
  double largest_share = 1;  ///< of the workers and the master
  double master_share = 1;
  double slowest = 1;  ///< share over power relative to the mean: 1 / devices for all
  collective::Gateways gateways{};
};

double element_bytes(const Setting& s) {
  return static_cast<double>(graph::bits_of(s.type)) / 8;
}

BlockElements elements_of(const zoo::Model& model, double share) {
  const auto h = static_cast<double>(model.hidden);
  const auto projections = static_cast<double>(2 * (model.heads + model.kv_heads) * model.head_dim);
  const double matrices = zoo::is_gated(model.mlp) ? 3 : 2;
  return {.attention = projections * h * share + h,
          .mlp = matrices * h * static_cast<double>(model.ffn) * share + h,
          .embedding = static_cast<double>(model.vocab) * h,
          .hidden = h};
}

/// `elements` weights that `tokens` vectors pass.
Time compute_time(double elements, std::int64_t tokens, const Setting& s) {
  graph::Operator op{.name = {}, .kind = graph::OperatorKind::opaque, .type = s.type, .gemm = {}};
  op.flops = Flops(2 * elements * static_cast<double>(tokens));
  op.bytes = Bytes(std::llround(elements * element_bytes(s)));
  return compute::kernel_time(op, s.machine.device).alone;
}

BlockTimes times_of(std::int64_t tokens, collective::GatewayAlgorithm algorithm, Bytes message,
                    const Setting& s) {
  const BlockElements most = elements_of(s.model, s.slowest);
  const BlockElements largest = elements_of(s.model, s.largest_share);
  const Bandwidth disk = s.machine.device.memory[1].bandwidth;
  const auto load = [&](double elements) {
    return Bytes(std::llround(elements * element_bytes(s))) / disk;
  };
  return {.attention = compute_time(most.attention, tokens, s),
          .mlp = compute_time(most.mlp, tokens, s),
          .all_reduce = collective::gateway_all_reduce(algorithm, message, s.gateways),
          .load_attention = load(largest.attention),
          .load_mlp = load(largest.mlp)};
}

Bytes memory_of(std::int64_t window, bool master, const Setting& s) {
  const BlockElements block = elements_of(s.model, master ? s.master_share : s.largest_share);
  return Bytes(std::llround(peak_elements(block, window, master) * element_bytes(s)));
}

std::vector<double> powers_of(const Home& home, Error& error) {
  if (home.powers.empty()) {
    return std::vector<double>(
        static_cast<std::size_t>(std::clamp<std::int64_t>(home.devices, 1, 4096)), 1.0);
  }
  std::vector<double> powers;
  std::string_view rest = home.powers;
  while (true) {
    const auto comma = rest.find(',');
    const auto power = parse_number(rest.substr(0, comma));
    if (!power || !(*power > 0) || *power > 1e9) {
      error.add({"", "powers", home.powers, "numbers above 0 with commas between, such as 2,1,1"});
      return {1};
    }
    powers.push_back(*power);
    if (comma == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(comma + 1);
  }
  if (static_cast<std::int64_t>(powers.size()) != home.devices) {
    error.add({"", "powers", home.powers, fmt::format("{} numbers, one a device", home.devices)});
  }
  return powers;
}

std::optional<collective::GatewayAlgorithm> algorithm_of(const Home& home) {
  return home.all_reduce == "auto" ? std::nullopt
                                   : value_of<collective::GatewayAlgorithm>(home.all_reduce);
}

void check(const Home& home, const zoo::Model& model, const machine::Machine& machine,
           Error& error) {
  require_within(error, "devices", home.devices, 1,
                 std::min<std::int64_t>(4096, std::max<std::int64_t>(1, model.heads)));
  require_within(error, "window", home.window, 0, 2 * std::max<std::int64_t>(1, model.layers));
  require_within(error, "retain", home.retain, 0, std::max<std::int64_t>(1, model.layers));
  require_within(error, "input", home.input, 1, kMostHomeTokens);
  require_within(error, "output", home.output, 1, kMostHomeTokens);
  if (home.all_reduce != "auto" && !algorithm_of(home)) {
    error.add({"", "all_reduce", home.all_reduce,
               "auto or one of " + all_names<collective::GatewayAlgorithm>()});
  }
  if (model.head != zoo::HeadKind::next_token || model.experts > 0 || model.heads == 0 ||
      model.ffn == 0) {
    error.add({"", "model", model.name, "a decoder of attention and one MLP a layer"});
  }
  if (machine.device.memory.size() < 2 || machine.network.empty()) {
    error.add({"", "machine", machine.name, "one with a second memory tier and a network"});
  }
}

/// The prompt's pass, then the tokens; `window` given.
HomeRun run_with(std::int64_t window, const Home& home, const Setting& s) {
  const auto wanted = algorithm_of(home);
  const auto pick = [&](Bytes size) {
    return wanted ? *wanted : collective::fastest_all_reduce(size, s.gateways);
  };
  HomeRun run;
  run.window = window;
  run.message = Bytes(std::llround(static_cast<double>(s.model.hidden) * element_bytes(s)));
  const Bytes prompt_message = run.message * home.input;
  run.prompt_all_reduce = pick(prompt_message);
  run.token_all_reduce = pick(run.message);
  const BlockTimes prompt = times_of(home.input, run.prompt_all_reduce, prompt_message, s);
  const BlockTimes token = times_of(1, run.token_all_reduce, run.message, s);
  const WeightWindow blocks{.layers = s.model.layers, .blocks = window, .retain = home.retain};
  // The master alone; its power over the mean is its share over that of equal devices.
  const Time head = compute_time(static_cast<double>(s.model.vocab * s.model.hidden), 1, s) *
                    (s.slowest / s.master_share);
  const StreamedTokens first = stream_tokens(blocks, prompt, 1);
  const StreamedTokens rest = stream_tokens(blocks, token, std::max<std::int64_t>(2, home.output));
  run.attention = token.attention;
  run.mlp = token.mlp;
  run.all_reduce = token.all_reduce;
  run.load_attention = token.load_attention;
  run.load_mlp = token.load_mlp;
  run.loose = loose_condition(token, s.model.layers);
  run.tight = tight_condition(token);
  run.first_token = first.first + head;
  run.next_token = rest.next + head;
  run.stall = rest.stall;
  run.resident_token = s.model.layers * (token.attention + token.mlp + 2 * token.all_reduce) + head;
  run.master_memory = memory_of(window, true, s);
  run.worker_memory = memory_of(window, false, s);
  run.resident_memory = memory_of(2 * s.model.layers + 2, true, s);
  return run;
}

/// Windows beyond this gain only if they hold everything.
constexpr std::int64_t kMostUsefulWindow = 16;

HomeRun best_window(const Home& home, const Setting& s) {
  const Bytes room = s.machine.device.memory.front().capacity;
  HomeRun best = run_with(2, home, s);
  const std::int64_t all = 2 * s.model.layers;
  for (std::int64_t window = 3; window <= all; ++window) {
    if (window > kMostUsefulWindow && window < all) {
      continue;
    }
    const HomeRun run = run_with(window, home, s);
    if (std::max(run.master_memory, run.worker_memory) <= room &&
        run.next_token < best.next_token) {
      best = run;
    }
  }
  return best;
}

}  // namespace

Result<HomeRun> serve_at_home(const zoo::Model& model, const machine::Machine& machine,
                              const Home& home) {
  Error error;
  check(home, model, machine, error);
  const std::vector<double> powers = powers_of(home, error);
  if (!error.empty()) {
    return fail(std::move(error));
  }
  const double sum = std::accumulate(powers.begin(), powers.end(), 0.0);
  Setting s{.model = model, .machine = machine};
  for (const graph::DataType type : {graph::DataType::bf16, graph::DataType::fp32}) {
    s.type = machine.device.peak[static_cast<std::size_t>(type)] > FlopRate(0) ? type : s.type;
  }
  s.master_share = powers.front() / sum;
  s.largest_share = *std::max_element(powers.begin(), powers.end()) / sum;
  s.slowest = 1 / static_cast<double>(powers.size());  // share over relative power: alike for all
  const topology::NetworkDimension& way = machine.network.front();
  s.gateways = {.devices = home.devices,
                .bandwidth = way.bandwidth,
                .path = way.latency + way.message_overhead};
  HomeRun run = home.window > 0 ? run_with(home.window, home, s) : best_window(home, s);
  const Bytes room = machine.device.memory.front().capacity;
  if (std::max(run.master_memory, run.worker_memory) > room) {
    return fail(Error(Mistake{"", "window", std::to_string(run.window),
                              fmt::format("one that fits {:.1f} GB: it needs {:.1f}",
                                          static_cast<double>(room.value()) / 1e9,
                                          static_cast<double>(run.master_memory.value()) / 1e9)}));
  }
  return run;
}

}  // namespace orrery::serving
