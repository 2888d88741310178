// SPDX-License-Identifier: Apache-2.0
#include "serving/steady.h"

#include <algorithm>
#include <cmath>

namespace orrery::serving {
namespace {

bool reserves(scheduler::Policy policy) {
  return policy == scheduler::Policy::orca || policy == scheduler::Policy::trtllm ||
         policy == scheduler::Policy::static_batch;
}

/// Tokens of a request in the KV cache.
double held(const step::StepCost& cost, const Engine& engine, const MeanLoad& load) {
  const auto all = static_cast<std::int64_t>(load.shared + load.input + load.output);
  return load.shared + load.input + (reserves(engine.policy) ? load.output : load.output / 2) +
         static_cast<double>(cost.cache().fixed_tokens(all));
}

/// Returns a step of `decodes` and `chunks` of prompts, host included.
Time step_of(step::StepCost& cost, const Engine& engine, const MeanLoad& load, double decodes,
             std::int64_t chunks) {
  const double parts =
      std::max(1.0, std::ceil(load.input / static_cast<double>(engine.max_num_batched_tokens)));
  const auto queries = std::max<std::int64_t>(1, std::llround(load.input / parts));
  const auto context = std::llround(load.shared + load.input * (parts - 1) / parts / 2);
  step::StepShape shape;
  shape.decodes = std::llround(decodes);
  shape.tokens = std::max<std::int64_t>(1, shape.decodes + chunks * queries);
  shape.samples = std::max<std::int64_t>(1, shape.decodes + chunks);
  shape.prompts.assign(static_cast<std::size_t>(chunks), {.queries = queries, .context = context});
  const double keys = load.shared + load.input + load.output / 2;
  for (const std::int64_t window : cost.windows()) {
    const double seen = window > 0 ? std::min(keys, static_cast<double>(window)) : keys;
    shape.visible.push_back(seen * static_cast<double>(shape.decodes));
  }
  return with_host(engine, cost.time(shape), shape.samples);
}

}  // namespace

Time guessing(const Engine& engine, step::StepCost& cost, const step::StepShape& shape) {
  const bool none = engine.drafts() == 0 || engine.speculation == Speculation::ngram;
  return none || shape.decodes == 0 ? Time(0) : cost.draft(shape) * engine.drafts();
}

Time with_host(const Engine& engine, Time accelerator, std::int64_t requests) {
  const Time host = engine.step + engine.per_request * requests;
  accelerator += engine.gap + engine.gap_per_request * requests;
  return engine.async ? std::max(accelerator, host) : accelerator + host;
}

Steady steady_decodes(step::StepCost& cost, const Engine& engine, std::int64_t kv_blocks,
                      std::int64_t requests, const MeanLoad& load) {
  Steady steady;
  steady.decoding =
      std::min({static_cast<double>(requests), static_cast<double>(engine.max_num_seqs),
                static_cast<double>(kv_blocks * engine.block_size) / held(cost, engine, load)});
  steady.per_token = step_of(cost, engine, load, steady.decoding, 0);
  steady.tokens_per_s = steady.decoding / to_seconds(steady.per_token);
  return steady;
}

Prompts steady_prompts(step::StepCost& cost, const Engine& engine, const MeanLoad& load) {
  const auto budget = static_cast<double>(engine.max_num_batched_tokens);
  const double chunks = std::max(1.0, std::ceil(load.input / budget));
  const auto at_once = std::max<std::int64_t>(
      1, std::min(engine.max_num_seqs, static_cast<std::int64_t>(budget / load.input)));
  const Time step = step_of(cost, engine, load, 0, at_once);
  return {.at_once = at_once,
          .requests_per_s = static_cast<double>(at_once) / (chunks * to_seconds(step))};
}

Steady steady_state(step::StepCost& cost, const Engine& engine, std::int64_t kv_blocks,
                    std::int64_t requests, const MeanLoad& load) {
  const auto budget = static_cast<double>(engine.max_num_batched_tokens);
  const double chunks = std::max(1.0, std::ceil(load.input / budget));
  const double turns = std::max(1.0, load.output - 1);
  const double all = static_cast<double>(requests) / static_cast<double>(engine.dp) * turns /
                     (turns + chunks + (engine.async ? 1 : 0));
  const double decoding =
      std::min({all, static_cast<double>(engine.max_num_seqs),
                static_cast<double>(kv_blocks * engine.block_size) / held(cost, engine, load),
                budget * load.output / (load.input + load.output)});
  const auto stages = static_cast<double>(engine.pp);
  const double batch = std::max(1.0, decoding / stages);
  const double mixed = batch * chunks / load.output;
  const auto whole = static_cast<std::int64_t>(std::floor(mixed));
  const double part = mixed - static_cast<double>(whole);
  const Time step = step_of(cost, engine, load, batch, whole) * (1 - part) +
                    step_of(cost, engine, load, batch, whole + 1) * part;
  Steady steady;
  steady.decoding = decoding;
  steady.per_token = engine.pp > 1 ? std::max(step, cost.interval(step) * engine.pp) : step;
  steady.tokens_per_s = decoding * static_cast<double>(engine.dp) / to_seconds(steady.per_token);
  return steady;
}

}  // namespace orrery::serving
