// SPDX-License-Identifier: Apache-2.0
#include "serving/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/collect.h"
#include "serving/driver.h"
#include "serving/fleet.h"
#include "serving/intake.h"
#include "serving/step/ffn_apart.h"
#include "workload/plan/tensor_overlap.h"

namespace orrery::serving {

namespace {

Bytes adapter_of(const Engine& engine, const step::StepCost& cost) {
  return engine.whole_adapters ? cost.weights_per_device() : cost.adapter_bytes();
}

}  // namespace

Result<std::int64_t> kv_blocks(const Engine& engine, const step::StepCost& cost,
                               const machine::Machine& machine) {
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 25;  // the book takes 32 bytes for each
  const std::int64_t kept = engine.null_blocks;
  if (engine.blocks > 0) {
    return std::clamp<std::int64_t>(engine.blocks - kept, 0, kMostBlocks);
  }
  const compute::Device& device = machine.device;
  const Bytes memory = device.memory.front().capacity;
  const std::int64_t tokens =
      std::min(engine.max_num_batched_tokens, engine.max_num_seqs * engine.max_model_len);
  Bytes taken = cost.weights_per_device() + device.framework_memory +
                cost.activations((tokens + engine.cp - 1) / engine.cp, engine.max_num_seqs);
  taken += adapter_of(engine, cost) * engine.adapter_slots;
  if (engine.tp * engine.cp * engine.dp > 1) {
    taken += device.communicator_memory;
  }
  const double share = engine.memory_utilization;
  if (const Bytes there =
          cost.ffn_bytes(tokens) + device.framework_memory + device.communicator_memory;
      engine.ffn > 0 && there > memory * share) {
    return fail(Error(
        Mistake{"", "parallel.ffn", std::to_string(engine.ffn),
                fmt::format("more devices: {:.1f} GB of {} for MLPs, experts, activations and "
                            "runtime of one are more than {:.1f} GB",
                            static_cast<double>(there.value()) / 1e9, machine.name,
                            static_cast<double>(memory.value()) * share / 1e9)}));
  }
  const Bytes room =
      engine.kv_memory == KvMemory::of_total ? memory * share - taken : (memory - taken) * share;
  const Bytes block = cost.kv_bytes_per_token() * engine.block_size;
  if (cost.embeds() && room > Bytes(0)) {  // nothing is kept: as many as a step's tokens
    return engine.max_num_batched_tokens / engine.block_size + engine.max_num_seqs;
  }
  const std::int64_t blocks =
      room > Bytes(0) && block > Bytes(0) ? room.value() / block.value() - kept : 0;
  if (blocks < 1) {
    return fail(Error(Mistake{
        "", "memory",
        fmt::format("{:.1f} GB for weights, activations and runtime of a device",
                    static_cast<double>(taken.value()) / 1e9),
        fmt::format("less than {:.1f} GB ({} of {}): more tp or pp, narrower weights or a "
                    "larger memory_utilization",
                    static_cast<double>(memory.value()) * share / 1e9, share, machine.name)}));
  }
  return std::min(blocks, kMostBlocks);
}

namespace {

void check_fleet(const Engine& engine, Error& error) {
  if (!engine.kernels.empty() && engine.prefill_tp > 0 && engine.prefill_tp != engine.tp) {
    error.add({"", "fleet.prefill_tp", std::to_string(engine.prefill_tp),
               fmt::format("{}, whose kernels were measured", engine.tp)});
  }
  if (engine.prefill > 0 && engine.scales()) {
    error.add({"", "fleet.most_replicas", {}, "0 with a pool for prompts"});
  }
  if (engine.prefill > 0 &&
      (engine.policy == scheduler::Policy::vllm_v0 || engine.policy == scheduler::Policy::mlfq)) {
    error.add({"", "fleet.prefill", std::to_string(engine.prefill),
               fmt::format("0 with the policy {}", name_of(engine.policy))});
  }
}

/// Returns the tokens of a prompt that take as long as a decode step of one request: the budget's
/// at the pace of a full step.
double quantum_tokens(const Engine& engine, step::StepCost& cost) {
  const std::size_t windows = cost.windows().size();
  const std::int64_t most = std::min(engine.max_num_batched_tokens, engine.max_model_len);
  const Time prompt = cost.time({.tokens = most,
                                 .samples = 1,
                                 .prompts = {{.queries = most, .context = 0}},
                                 .visible = std::vector<double>(windows, 0)});
  const Time decode = cost.time({.tokens = 1,
                                 .samples = 1,
                                 .prompts = {},
                                 .decodes = 1,
                                 .visible = std::vector<double>(windows, 1)});
  return std::max(1.0, static_cast<double>(most) * (decode / prompt));
}

/// Adds who guesses tokens, if anybody does.
Result<bool> add_drafter(step::StepCost& cost, const Engine& engine,
                         const machine::Machine& machine) {
  if (engine.speculation == Speculation::mtp) {
    cost.guess_by(nullptr);
  } else if (engine.speculation == Speculation::model) {
    auto drafter = zoo::load_model(engine.draft_model).and_then([&](const zoo::Model& small) {
      step::StepOptions options = step_options(engine);
      options.kernels.clear();  // of the model that it guesses for
      options.precision.experts_fp4 = options.precision.experts_fp4 && small.experts > 0;
      return step::StepCost::make(small, machine, options);
    });
    if (!drafter) {
      return fail(std::move(drafter.error()));
    }
    cost.guess_by(std::make_shared<step::StepCost>(std::move(*drafter)));
  }
  return true;
}

/// Adds the model's encoder of images, in 16 bits and without graphs as engines run it: divided
/// over tp, or, where that does not divide it, whole on every device.
Result<bool> add_encoder(step::StepCost& cost, const zoo::Model& model, Run& run,
                         const machine::Machine& machine) {
  if (!model.vision) {
    return true;
  }
  const Engine& engine = run.engine;
  const zoo::Model& encoder = model.vision->encoder;
  const step::StepOptions text = step_options(engine);
  step::StepOptions options;
  options.all_reduce = text.all_reduce;
  options.gateway = text.gateway;
  options.launch = text.launch;
  options.network = text.network;
  if (graph::bits_of(engine.activations) == graph::bits_of(graph::DataType::bf16)) {
    options.precision.activations = engine.activations;
  }
  options.degrees.tp = engine.tp;
  for (const zoo::TensorExtent& extent : zoo::tensor_extents(encoder)) {
    if (extent.extent % engine.tp != 0) {
      options.degrees.tp = 1;
      run.notes.push_back(
          fmt::format("the encoder of images is whole on every device: tp {} does not divide its "
                      "{} {}",
                      engine.tp, extent.extent, extent.what));
      break;
    }
  }
  return step::StepCost::make(encoder, machine, options).map([&](step::StepCost made) {
    cost.see_by(std::make_shared<step::StepCost>(std::move(made)));
    return true;
  });
}

/// Recurrent states are those after the last token: nothing of them is found again, guessed with or
/// kept below.
void check_states(Run& run, const step::CacheBytes& cache, Error& error) {
  Engine& engine = run.engine;
  if (cache.state == Bytes(0)) {
    return;
  }
  if (cache.per_token == Bytes(0)) {
    error.add({"", "model", run.model, "one with a layer of attention"});
  }
  if (!engine.tiers.empty()) {
    error.add({"", "cache.tiers", {}, "none: the model has recurrent layers"});
  }
  const bool stated = std::any_of(engine.stated.begin(), engine.stated.end(),
                                  [](const auto& one) { return one.first == "cache.prefix"; });
  if (engine.prefix && stated) {
    error.add({"", "cache.prefix", "true", "false: the model has recurrent layers"});
  } else if (engine.prefix) {
    engine.prefix = false;
    run.notes.emplace_back("without prefix cache: states of recurrent layers are not kept");
  }
}

/// Mistakes in degrees of an engine of the pool for prompts, by the names of their fields.
Error of_pool(Error error) {
  for (Mistake& mistake : error.mistakes) {
    constexpr std::array<std::string_view, 5> kDegrees{"tp", "pp", "dp", "ep", "cp"};
    if (std::ranges::count(kDegrees, mistake.field) > 0) {
      mistake.field = "fleet.prefill_" + mistake.field;
    }
  }
  return error;
}

/// Returns the engine of an encoder, whose first tokens see the last ones.
Engine for_whole_texts(Engine engine) {
  engine.chunked_prefill = false;
  engine.prefix = false;
  return engine;
}

/// Notes which devices are apart and, where the model's file names no layers that guess, what does.
void note_parts(const zoo::Model& model, const step::StepCost& cost, Run& run) {
  const Engine& e = run.engine;
  if (e.ffn > 0) {
    run.notes.push_back(fmt::format(
        "{} of an engine's {} devices compute MLPs and experts alone, {:.1f} GB of weights each",
        e.ffn, e.ranks(), static_cast<double>(cost.ffn_bytes(0).value()) / 1e9));
  }
  if (e.speculation == Speculation::mtp && model.mtp == 0) {
    run.notes.push_back(fmt::format(
        "{} states no layers of multi-token prediction: one more like its others guesses",
        model.name));
  }
}

}  // namespace

Result<Server::Part> Server::make_part(const zoo::Model& model, const machine::Machine& machine,
                                       const Engine& engine) {
  Error error;
  Run run;
  const bool embeds = step::embeds(model);
  run.engine = completed(embeds ? for_whole_texts(engine) : engine, machine,
                         embeds ? model.max_positions + 1 : model.max_positions);
  if (embeds) {
    run.notes.emplace_back(
        "an encoder: prompts are computed whole, nothing of them is kept, an answer is a vector");
  }
  const Engine& e = run.engine;
  if (e.activations != engine.activations) {
    run.notes.push_back(fmt::format("in {}: {} does not compute in {}", name_of(e.activations),
                                    machine.device.name, name_of(engine.activations)));
  }
  auto cost = step::StepCost::make(model, machine, step_options(e));
  if (!cost) {
    error.add(std::move(cost.error()));
  } else if (auto added = add_drafter(*cost, e, machine); !added) {
    error.add(std::move(added.error()));
  } else if (auto sees = add_encoder(*cost, model, run, machine); !sees) {
    error.add(std::move(sees.error()));
  } else {
    collect_into(run.kv_blocks, serving::kv_blocks(e, *cost, machine), error);
  }
  collect_into(run.kv_tiers, kv_tiers_of(e.tiers, machine), error);
  if (cost) {
    check_states(run, cost->cache(), error);
  }
  if (e.adapter_slots > 0 && machine.device.memory.size() < 2) {
    error.add({"", "lora.slots", machine.name, "a machine with a second memory tier"});
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  if (e.adapter_slots > 0) {
    const compute::MemoryTier& host = machine.device.memory[1];
    run.adapter = adapter_of(e, *cost);
    run.adapter_copy = host.latency + run.adapter / host.bandwidth;
  }
  if (e.policy == scheduler::Policy::mlfq && e.quantum_tokens == 0) {
    run.engine.quantum_tokens = quantum_tokens(e, *cost);
  }
  if (std::string note = plan::hypothetical_hardware(e.overlap_tensor, machine); !note.empty()) {
    run.notes.push_back(std::move(note));
  }
  note_parts(model, *cost, run);
  if (e.fuse) {
    run.fused = cost->fused_places(e.max_num_batched_tokens);
  }
  run.model = model.name;
  run.machine = machine.name;
  run.devices = e.ranks();
  run.weights = cost->weights_per_device();
  run.cache = cost->cache();
  return Part{std::move(*cost), std::move(run)};
}

Result<Server> Server::make(const zoo::Model& model, const machine::Machine& machine,
                            const Engine& engine) {
  Error error;
  if (machine.device.memory.empty()) {
    return fail(Error(Mistake{"", "machine", machine.name, "a device with memory"}));
  }
  check_fleet(engine, error);
  auto part = make_part(model, machine, engine);
  if (!part) {
    error.add(std::move(part.error()));
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  Server server(std::move(*part));
  server.devices_ = engine.devices();
  if (server.devices_ > server.part_.empty.devices) {
    auto all = step::with_room(machine, server.devices_);
    if (!all) {
      return fail(std::move(all.error()));
    }
    server.machine_ = std::move(*all);
  }
  if (engine.prefill > 0) {
    auto computes = make_part(model, machine, engine.for_prompts());
    if (!computes) {
      return fail(of_pool(std::move(computes.error())));
    }
    server.prefill_.emplace(std::move(*computes));
    if (auto links = KvTransfers(server.machine_, engine.network).check(); !links) {
      return fail(std::move(links.error()));
    }
  }
  return server;
}

void Server::take_host(const Engine& from) {
  const auto take = [&](Engine& engine) {
    engine.front_end = from.front_end;
    engine.step = from.step;
    engine.per_request = from.per_request;
    engine.gap = from.gap;
  };
  take(part_.empty.engine);
  if (prefill_) {
    take(prefill_->empty.engine);
  }
}

bool Server::is_fleet() const {
  const Engine& engine = part_.empty.engine;
  return engine.replicas > 1 || engine.scales() || engine.most_requests > 0 ||
         engine.admit_rate > 0 || prefill_;
}

namespace {

/// Leaves out the requests that have no whole answer when a run is ended early.
void keep_answered(Run& run, std::size_t sent) {
  std::erase_if(run.requests, [](const Served& request) {
    return request.last == Time(0) || request.last.is_overflow();
  });
  if (run.requests.size() + static_cast<std::size_t>(run.refused + run.rejected) < sent) {
    run.notes.push_back(
        fmt::format("ended early: {} of {} requests are answered", run.requests.size(), sent));
  }
}

}  // namespace

FleetParts Server::parts() {
  return {.one = &part_.empty,
          .cost = &part_.cost,
          .prefill = prefill_ ? &prefill_->empty : nullptr,
          .prefill_cost = prefill_ ? &prefill_->cost : nullptr,
          .machine = &machine_};
}

Run Server::run(const std::vector<requests::Request>& requests, const ServeOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Run run = part_.empty;
  run.devices = devices_;
  run.max_concurrency = options.max_concurrency;
  run.rate = options.rate;
  const auto cut = std::count_if(requests.begin(), requests.end(), [&](const auto& request) {
    const std::int64_t answer = answer_of(request, run.engine);
    return answer >= 1 && answer < request.output;
  });
  if (cut > 0) {
    run.notes.push_back(fmt::format("{} of {} answers are cut at max_model_len, {} tokens", cut,
                                    requests.size(), run.engine.max_model_len));
  }
  Client client(requests, options.max_concurrency, options.think, run.engine.front_end);
  if (is_fleet()) {
    Fleet fleet(run, parts(), requests, client, options);
    fleet.run_until(Time::max());
    fleet.join();
  } else {
    Driver driver(run, part_.cost, requests, client, options);
    driver.run_until(Time::max());
    driver.finish();
  }
  if (!goes_on(options)) {
    keep_answered(run, requests.size());
  }
  run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return run;
}

Result<Run> serve(const zoo::Model& model, const machine::Machine& machine, const Engine& engine,
                  const std::vector<requests::Request>& requests, const ServeOptions& options) {
  auto server = Server::make(model, machine, engine);
  if (!server) {
    return fail(std::move(server.error()));
  }
  return server->run(requests, options);
}

}  // namespace orrery::serving
