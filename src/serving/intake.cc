// SPDX-License-Identifier: Apache-2.0
#include "serving/intake.h"

#include <algorithm>

namespace orrery::serving {

scheduler::Limits limits_of(const Engine& engine) {
  return {.max_num_batched_tokens = engine.max_num_batched_tokens,
          .max_num_seqs = engine.max_num_seqs,
          .long_prefill_token_threshold = engine.long_prefill_token_threshold,
          .chunked_prefill = engine.chunked_prefill,
          .reserve_full_isl = engine.reserve_full_isl,
          .lookahead = engine.async && engine.pp == 1 && engine.drafts() == 0 &&
                       engine.policy != scheduler::Policy::mlfq,
          .watermark = engine.watermark,
          .drafts = engine.drafts(),
          .acceptance = engine.acceptance,
          .quantum = engine.quantum,
          .quantum_tokens = engine.quantum_tokens,
          .adapters = engine.adapter_slots};
}

std::int64_t answer_of(const requests::Request& request, const Engine& engine) {
  return std::min(request.output, engine.max_model_len - request.input);
}

std::optional<scheduler::RequestSpec> spec_of(const requests::Request& request, const Run& run,
                                              const scheduler::Scheduler& scheduler) {
  const Engine& engine = run.engine;
  scheduler::RequestSpec spec{
      .prompt = request.input,
      .output = answer_of(request, engine),
      .prefix = {.ids = request.ids, .id_tokens = request.id_tokens, .tokens = request.shared}};
  if (engine.adapter_slots > 0 && request.adapter >= 0) {
    spec.adapter = request.adapter;
    for (std::uint64_t& id : spec.prefix.ids) {  // an adapter has keys and values of its own
      id = scheduler::mixed(id ^ scheduler::mixed(static_cast<std::uint64_t>(request.adapter)));
    }
  }
  spec.keeps_blocks = !engine.tiers.empty();
  const std::int64_t fixed = run.cache.fixed_tokens(spec.prompt + spec.output - 1);
  spec.fixed_blocks = scheduler.book().blocks_of(fixed);
  if (spec.output < 1 || !scheduler.can_ever_run(spec)) {
    return std::nullopt;
  }
  return spec;
}

std::int64_t HeldRequests::steps(const Engine& engine,
                                 const std::vector<requests::Request>& requests,
                                 std::int64_t step) const {
  if (held_.empty()) {
    return 0;
  }
  const std::int64_t after = (step - looked_) % engine.recv_interval;
  const std::int64_t look = after == 0 ? 0 : engine.recv_interval - after;
  std::int64_t tokens = 0;
  for (const Delivery& delivery : held_) {
    tokens += requests[delivery.request].input;
  }
  const bool full = static_cast<double>(tokens) >=
                    engine.batch_wait_ratio * static_cast<double>(engine.max_num_batched_tokens);
  const bool waits = engine.batch_wait_iters > 0 && !(engine.batch_wait_ratio > 0 && full);
  return std::max(look,
                  waits ? std::max<std::int64_t>(0, since_ + engine.batch_wait_iters - step) : 0);
}

Served served_of(const scheduler::RequestSpec& spec, const Delivery& delivery) {
  return {.input = spec.prompt,
          .output = spec.output,
          .sent = delivery.sent,
          .queued = delivery.queued,
          .scheduled = Time::max()};
}

}  // namespace orrery::serving
