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
          .lookahead = engine.async && engine.pp == 1 && engine.dp == 1 && engine.drafts() == 0,
          .watermark = engine.watermark,
          .drafts = engine.drafts(),
          .acceptance = engine.acceptance};
}

std::optional<scheduler::RequestSpec> spec_of(const requests::Request& request,
                                              const Engine& engine,
                                              const scheduler::Scheduler& scheduler) {
  scheduler::RequestSpec spec{
      .prompt = request.input,
      .output = std::min(request.output, engine.max_model_len - request.input),
      .prefix = {.ids = request.ids, .id_tokens = request.id_tokens, .tokens = request.shared}};
  if (spec.output < 1 || !scheduler.can_ever_run(spec)) {
    return std::nullopt;
  }
  return spec;
}

Served served_of(const scheduler::RequestSpec& spec, const Delivery& delivery) {
  return {.input = spec.prompt,
          .output = spec.output,
          .sent = delivery.sent,
          .queued = delivery.queued,
          .scheduled = Time::max()};
}

}  // namespace orrery::serving
