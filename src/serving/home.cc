// SPDX-License-Identifier: Apache-2.0
#include "serving/home.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "base/reader.h"
#include "base/split.h"
#include "machine/compute/compute_model.h"
#include "serving/within.h"

namespace orrery::serving {
namespace {

constexpr std::int64_t kMostHomeTokens = 10'000;

struct Member {
  const machine::Machine* machine = nullptr;
  double share = 1;  ///< of the heads and of the MLP
  double work = 1;   ///< share that its machine would compute in the time that it takes
};

struct Setting {
  const zoo::Model& model;
  std::vector<Member> members;  ///< the master first
  graph::DataType type = graph::DataType::fp32;
  std::vector<collective::GatewayEnd> ends;
};

double element_bytes(const Setting& s) {
  return static_cast<double>(graph::bits_of(s.type)) / 8;
}

step::BlockElements elements_of(const zoo::Model& model, double share) {
  const auto h = static_cast<double>(model.hidden);
  const auto projections = static_cast<double>(2 * (model.heads + model.kv_heads) * model.head_dim);
  const double matrices = zoo::is_gated(model.mlp) ? 3 : 2;
  return {.attention = projections * h * share + h,
          .mlp = matrices * h * static_cast<double>(model.ffn) * share + h,
          .embedding = static_cast<double>(model.vocab) * h,
          .hidden = h};
}

/// `elements` weights that `tokens` vectors pass.
Time compute_time(double elements, std::int64_t tokens, const Setting& s, const Member& member) {
  graph::Operator op{.name = {}, .kind = graph::OperatorKind::opaque, .type = s.type, .gemm = {}};
  op.flops = Flops(2 * elements * static_cast<double>(tokens));
  op.bytes = Bytes(std::llround(elements * element_bytes(s)));
  return compute::kernel_time(op, member.machine->device).alone;
}

bool takes_no_more(const step::BlockTimes& a, const step::BlockTimes& b) {
  return a.attention <= b.attention && a.mlp <= b.mlp && a.load_attention <= b.load_attention &&
         a.load_mlp <= b.load_mlp;
}

/// Returns the times of all devices but those that never make the others wait.
std::vector<step::BlockTimes> times_of(std::int64_t tokens, Time all_reduce, const Setting& s) {
  std::vector<step::BlockTimes> all;
  for (const Member& member : s.members) {
    const step::BlockElements work = elements_of(s.model, member.work);
    const step::BlockElements held = elements_of(s.model, member.share);
    const Bandwidth disk = member.machine->device.memory[1].bandwidth;
    const auto load = [&](double elements) {
      return Bytes(std::llround(elements * element_bytes(s))) / disk;
    };
    const step::BlockTimes times{.attention = compute_time(work.attention, tokens, s, member),
                                 .mlp = compute_time(work.mlp, tokens, s, member),
                                 .all_reduce = all_reduce,
                                 .load_attention = load(held.attention),
                                 .load_mlp = load(held.mlp)};
    const auto covers = [&](const step::BlockTimes& other) { return takes_no_more(times, other); };
    if (std::none_of(all.begin(), all.end(), covers)) {
      std::erase_if(all,
                    [&](const step::BlockTimes& other) { return takes_no_more(other, times); });
      all.push_back(times);
    }
  }
  return all;
}

/// Returns the longest of each: all-reduces wait for the last.
step::BlockTimes longest(const std::vector<step::BlockTimes>& all) {
  step::BlockTimes most = all.front();
  for (const step::BlockTimes& times : all) {
    for (Time step::BlockTimes::*part :
         {&step::BlockTimes::attention, &step::BlockTimes::mlp, &step::BlockTimes::load_attention,
          &step::BlockTimes::load_mlp}) {
      most.*part = std::max(most.*part, times.*part);
    }
  }
  return most;
}

Bytes memory_of(std::int64_t window, bool master, double share, const Setting& s) {
  return Bytes(std::llround(step::peak_elements(elements_of(s.model, share), window, master) *
                            element_bytes(s)));
}

/// Returns the first member that has no room for the window; null: all have.
const Member* without_room(std::int64_t window, const Setting& s) {
  const auto found = std::find_if(s.members.begin(), s.members.end(), [&](const Member& member) {
    const bool master = &member == s.members.data();
    return memory_of(window, master, member.share, s) >
           member.machine->device.memory.front().capacity;
  });
  return found == s.members.end() ? nullptr : &*found;
}

std::vector<double> powers_of(const Home& home, Error& error) {
  std::vector<double> powers;
  for (const std::string_view part : split_at(home.powers, ',')) {
    const auto power = parse_number(part);
    if (!power || !(*power > 0) || *power > 1e9) {
      error.add({"", "powers", home.powers, "numbers above 0 with commas between, such as 2,1,1"});
      return {1};
    }
    powers.push_back(*power);
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

void check(const Home& home, const zoo::Model& model, Error& error) {
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
}

void check_machines(std::span<const machine::Machine> machines, Error& error) {
  for (const machine::Machine& machine : machines) {
    if (machine.device.memory.size() < 2 || machine.network.empty()) {
      error.add({"", "machine", machine.name, "one with a second memory tier and a network"});
    }
  }
}

bool computes_in(graph::DataType type, std::span<const machine::Machine> machines) {
  return std::all_of(machines.begin(), machines.end(), [&](const machine::Machine& machine) {
    return machine.device.peak[static_cast<std::size_t>(type)] > FlopRate(0);
  });
}

/// Runs the prompt's pass, then the tokens, with a window that is given.
HomeRun run_with(std::int64_t window, const Home& home, const Setting& s) {
  const auto wanted = algorithm_of(home);
  const auto pick = [&](Bytes size) {
    return wanted ? *wanted : collective::fastest_all_reduce(size, s.ends);
  };
  const auto all_times = [&](std::int64_t tokens, collective::GatewayAlgorithm algorithm,
                             Bytes message) {
    return times_of(tokens, collective::gateway_all_reduce(algorithm, message, s.ends), s);
  };
  HomeRun run;
  run.window = window;
  run.message = Bytes(std::llround(static_cast<double>(s.model.hidden) * element_bytes(s)));
  const Bytes prompt_message = run.message * home.input;
  run.prompt_all_reduce = pick(prompt_message);
  run.token_all_reduce = pick(run.message);
  const auto prompts = all_times(home.input, run.prompt_all_reduce, prompt_message);
  const auto tokens = all_times(1, run.token_all_reduce, run.message);
  const step::BlockTimes token = longest(tokens);
  const step::WeightWindow blocks{
      .layers = s.model.layers, .blocks = window, .retain = home.retain};
  // The master alone; its work over its share is how much slower than its machine it is.
  const Member& master = s.members.front();
  const Time head =
      compute_time(static_cast<double>(s.model.vocab * s.model.hidden), 1, s, master) *
      (master.work / master.share);
  const step::StreamedTokens first = step::stream_tokens(blocks, prompts, 1);
  const step::StreamedTokens rest =
      step::stream_tokens(blocks, tokens, std::max<std::int64_t>(2, home.output));
  run.attention = token.attention;
  run.mlp = token.mlp;
  run.all_reduce = token.all_reduce;
  run.load_attention = token.load_attention;
  run.load_mlp = token.load_mlp;
  run.loose = step::loose_condition(token, s.model.layers);
  run.tight = step::tight_condition(token);
  run.first_token = first.first + head;
  run.next_token = rest.next + head;
  run.stall = rest.stall;
  run.resident_token = s.model.layers * (token.attention + token.mlp + 2 * token.all_reduce) + head;
  double largest = 0;
  for (const Member& member : s.members) {
    largest = std::max(largest, member.share);
  }
  run.master_memory = memory_of(window, true, master.share, s);
  run.worker_memory = memory_of(window, false, largest, s);
  run.resident_memory = memory_of(2 * s.model.layers + 2, true, master.share, s);
  return run;
}

/// Windows beyond this gain only if they hold everything.
constexpr std::int64_t kMostUsefulWindow = 16;

HomeRun best_window(const Home& home, const Setting& s) {
  HomeRun best = run_with(2, home, s);
  const std::int64_t all = 2 * s.model.layers;
  for (std::int64_t window = 3; window <= all; ++window) {
    if ((window > kMostUsefulWindow && window < all) || without_room(window, s) != nullptr) {
      continue;
    }
    const HomeRun run = run_with(window, home, s);
    if (run.next_token < best.next_token) {
      best = run;
    }
  }
  return best;
}

/// Runs the home once its checks have passed.
Result<HomeRun> run_at_home(const Home& home, const Setting& s) {
  HomeRun run = home.window > 0 ? run_with(home.window, home, s) : best_window(home, s);
  const Member* full = without_room(run.window, s);
  if (full == nullptr) {
    Error late = beyond_time(run);
    return late.empty() ? Result<HomeRun>(run) : fail(std::move(late));
  }
  const Bytes needed = memory_of(run.window, full == s.members.data(), full->share, s);
  const auto gigabytes = [](Bytes bytes) { return static_cast<double>(bytes.value()) / 1e9; };
  return fail(Error(Mistake{"", "window", std::to_string(run.window),
                            fmt::format("one that fits {:.1f} GB of {}: it needs {:.1f}",
                                        gigabytes(full->machine->device.memory.front().capacity),
                                        full->machine->name, gigabytes(needed))}));
}

collective::GatewayEnd end_of(const machine::Machine& machine) {
  const topology::NetworkDimension& way = machine.network.front();
  return {.bandwidth = way.bandwidth, .path = way.latency + way.message_overhead};
}

graph::DataType type_of(std::span<const machine::Machine> machines, Error& error) {
  for (const graph::DataType type : {graph::DataType::fp32, graph::DataType::bf16}) {
    if (computes_in(type, machines)) {
      return type;
    }
  }
  error.add({"", "machine", machines.front().name, "devices that compute in fp32, or all in bf16"});
  return graph::DataType::fp32;
}

}  // namespace

Result<HomeRun> serve_at_home(const zoo::Model& model, const machine::Machine& machine,
                              const Home& home) {
  Error error;
  check(home, model, error);
  check_machines({&machine, 1}, error);
  std::vector<double> powers;
  if (!home.powers.empty()) {
    powers = powers_of(home, error);
  } else if (error.empty()) {
    powers.assign(static_cast<std::size_t>(home.devices), 1.0);
  }
  Setting s{.model = model, .members = {}, .type = type_of({&machine, 1}, error), .ends = {}};
  if (!error.empty()) {
    return fail(std::move(error));
  }
  const double sum = std::accumulate(powers.begin(), powers.end(), 0.0);
  for (const double power : powers) {
    // Its speed is its power over the mean: all take as long for their shares.
    s.members.push_back({.machine = &machine,
                         .share = power / sum,
                         .work = 1 / static_cast<double>(powers.size())});
  }
  s.ends.assign(powers.size(), end_of(machine));
  return run_at_home(home, s);
}

Result<HomeRun> serve_at_home(const zoo::Model& model, std::span<const machine::Machine> machines,
                              const Home& home) {
  Error error;
  check(home, model, error);
  check_machines(machines, error);
  if (home.devices != static_cast<std::int64_t>(machines.size())) {
    error.add({"", "devices", std::to_string(home.devices),
               fmt::format("{}, one a machine", machines.size())});
  }
  std::vector<double> powers;
  if (!home.powers.empty()) {
    powers = powers_of(home, error);
  }
  Setting s{.model = model, .members = {}, .type = type_of(machines, error), .ends = {}};
  if (!error.empty()) {
    return fail(std::move(error));
  }
  for (const machine::Machine& machine : machines) {
    if (home.powers.empty()) {
      powers.push_back(machine.device.peak[static_cast<std::size_t>(s.type)].value());
    }
    s.ends.push_back(end_of(machine));
  }
  const double sum = std::accumulate(powers.begin(), powers.end(), 0.0);
  for (std::size_t i = 0; i < machines.size(); ++i) {
    s.members.push_back(
        {.machine = &machines[i], .share = powers[i] / sum, .work = powers[i] / sum});
  }
  return run_at_home(home, s);
}

}  // namespace orrery::serving
