// SPDX-License-Identifier: Apache-2.0
#include "serving/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "serving/lockstep.h"
#include "serving/loop.h"

namespace orrery::serving {

Result<std::int64_t> kv_blocks(const Engine& engine, const step::StepCost& cost,
                               const machine::Machine& machine) {
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 25;  // the book takes 32 bytes for each
  const std::int64_t kept = engine.null_blocks;
  if (engine.blocks > 0) {
    return std::clamp<std::int64_t>(engine.blocks - kept, 0, kMostBlocks);
  }
  const compute::Device& device = machine.device;
  const Bytes memory = device.memory.front().capacity;
  Bytes taken = cost.weights_per_device() + device.framework_memory +
                cost.activations(std::min(engine.max_num_batched_tokens,
                                          engine.max_num_seqs * engine.max_model_len),
                                 engine.max_num_seqs);
  if (engine.tp * engine.dp > 1) {
    taken += device.communicator_memory;
  }
  const double share = engine.memory_utilization;
  const Bytes room =
      engine.kv_memory == KvMemory::of_total ? memory * share - taken : (memory - taken) * share;
  const Bytes block = cost.kv_bytes_per_token() * engine.block_size;
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

Result<Server> Server::make(const zoo::Model& model, const machine::Machine& machine,
                            const Engine& engine) {
  if (machine.device.memory.empty()) {
    return fail(Error(Mistake{"", "machine", machine.name, "a device with memory"}));
  }
  Run run;
  run.engine = completed(engine, machine, model.max_positions);
  const Engine& e = run.engine;
  auto cost = step::StepCost::make(model, machine, step_options(e));
  if (!cost) {
    return fail(std::move(cost.error()));
  }
  auto blocks = kv_blocks(e, *cost, machine);
  if (!blocks) {
    return fail(std::move(blocks.error()));
  }
  run.kv_blocks = *blocks;
  run.model = model.name;
  run.machine = machine.name;
  run.devices = e.tp * e.dp * e.pp;
  run.weights = cost->weights_per_device();
  run.kv_bytes_per_token = cost->kv_bytes_per_token();
  return Server(std::move(*cost), std::move(run));
}

Run Server::run(const std::vector<requests::Request>& requests, const ServeOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Run run = empty_;
  if (run.engine.dp > 1) {
    Lockstep(run, cost_, requests, options).go();
  } else {
    Loop(run, cost_, requests, options).go();
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
