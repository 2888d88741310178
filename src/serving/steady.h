// SPDX-License-Identifier: Apache-2.0
/// Throughput of an engine that always has the same number of requests, without running it.
#pragma once

#include "serving/engine.h"
#include "serving/step/step_cost.h"

namespace orrery::serving {

/// Lengths in tokens, on the mean.
struct MeanLoad {
  double input = 1;   ///< to compute
  double shared = 0;  ///< in front of it, found in the prefix cache
  double output = 1;
};

struct Steady {
  double decoding = 0;  ///< requests that decode at once
  Time per_token{0};    ///< of one request
  double tokens_per_s = 0;
};

/// Returns the steady state by the mean-value formula of `requests` at once, each followed by
/// another when it ends:
///
///   c = ceil(input / tokens of a step)                chunks of a prompt
///   m = min(requests / dp (o - 1) / (o - 1 + c [+ 1 if asynchronous]),   decode at a time
///           max_num_seqs, KV tokens / (shared + input + o / 2),
///           tokens of a step o / (input + o)) / pp    in a step
///   k = m c / o                                       chunks in a step on the mean
///   t = (1 - frac k) step(m, floor k) + (frac k) step(m, floor k + 1)
///   per token max(t, pp interval(t)), tokens/s m pp dp / that
///
/// Policies that reserve whole answers hold o instead of o / 2. Ignores: how lengths are spread,
/// batches that begin and end together. The simulation of the same load is the judge.
Steady steady_state(step::StepCost& cost, const Engine& engine, std::int64_t kv_blocks,
                    std::int64_t requests, const MeanLoad& load);

/// Returns the same of an engine that only decodes (load.input is in its cache): step(m, 0).
Steady steady_decodes(step::StepCost& cost, const Engine& engine, std::int64_t kv_blocks,
                      std::int64_t requests, const MeanLoad& load);

/// Prompts are those of an engine that only computes prompts: as many in a step as its tokens
/// allow.
struct Prompts {
  std::int64_t at_once = 1;
  double requests_per_s = 0;
};
Prompts steady_prompts(step::StepCost& cost, const Engine& engine, const MeanLoad& load);

/// Returns the time of guessing tokens for the decodes of a step, one after another.
Time guessing(const Engine& engine, step::StepCost& cost, const step::StepShape& shape);

/// Returns the time of accelerator and host: the greater if the engine is asynchronous, else their
/// sum.
Time with_host(const Engine& engine, Time accelerator, std::int64_t requests);

}  // namespace orrery::serving
