// SPDX-License-Identifier: Apache-2.0
/// A composition of experts: many whole models of one shape, of which a router picks one for every
/// prompt. All lie in the second memory tier, the last used ones in the first; where the device
/// states an on-chip memory above these (compute/spatial.h), what passes between the operators of a
/// fused kernel stays there as far as it fits.
///
///   T = T_router + sum over misses (expert bytes / switch bandwidth) + sum over experts of a batch
///       (T_prefill + (output - 1) T_decode)
///
/// The router is a model of the same shape that reads the prompts and names an expert each (one
/// token); it never leaves the first tier. Prompts of a batch that chose the same expert run
/// together, experts one after the other, weights over all devices (tensor parallel). With
/// `prefetch` the next expert of the batch is copied while one runs. A choice is drawn uniformly.
///
///   resident = floor(((1 - reserved) first tier - router) / expert) of all devices
///   stored   = floor(second tier / expert), 0 where there is none
///   machines = experts / resident: what it takes to hold all in first tiers, not rounded
///
/// Ignores:  KV cache and activations in the first tier (`reserved`); what the router's head costs.
/// Source:   SN40L (MICRO'24, arXiv 2405.07518), section on composition of experts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"
#include "serving/step/step_cost.h"

namespace orrery::serving {

struct Composition {
  std::int64_t experts = 150;
  std::int64_t batch = 1;
  std::int64_t input = 256;
  std::int64_t output = 20;
  std::int64_t batches = 1000;
  double reserved = 0.05;
  Bandwidth switch_bandwidth{0};
  bool prefetch = false;
  std::int64_t seed = 0;

  template <class V>
  static void fields(V&& visit) {
    using C = Composition;
    visit("experts", &C::experts, "models behind the router; default 150");
    visit("batch", &C::batch, "prompts at once; default 1");
    visit("input", &C::input, "tokens of a prompt; default 256");
    visit("output", &C::output, "tokens of an answer; default 20");
    visit("batches", &C::batches, "drawn; default 1000");
    visit("reserved", &C::reserved, "share of the first tier that holds no model; default 0.05");
    visit("switch_bandwidth", &C::switch_bandwidth,
          "of all devices together; default: that of the second tier");
    visit("prefetch", &C::prefetch, "copy a batch's next expert while one runs");
    visit("seed", &C::seed, "of the choices; default 0");
  }
};

/// Says what a composed run takes. Times are means over a batch, but `switching` is one expert's
/// and `decode_step` one token's.
struct ComposedRun {
  Bytes expert{0};
  Bandwidth switch_bandwidth{0};
  Time switching{0};
  std::int64_t resident = 0;
  std::int64_t stored = 0;
  double machines = 0;
  Bytes sram{0};
  Bytes kept{0};
  Bytes spilled{0};
  std::int64_t used = 0;  ///< experts of all batches, equal ones of a batch once
  std::int64_t copies = 0;
  double hit_rate = 0;
  Time router{0};
  Time copying{0};
  Time hidden{0};
  Time prefill{0};
  Time decode{0};
  Time decode_step{0};
  Time total{0};

  template <class V>
  static void fields(V&& visit) {
    using C = ComposedRun;
    visit("expert", &C::expert, "weights of one expert");
    visit("switch_bandwidth", &C::switch_bandwidth, "of all devices together");
    visit("switching", &C::switching, "copy of one expert");
    visit("resident", &C::resident, "experts that the first tier holds beside the router");
    visit("stored", &C::stored, "experts that the second tier holds");
    visit("machines", &C::machines, "to hold all experts in first tiers");
    visit("sram", &C::sram, "on the chips of all devices; 0: not stated");
    visit("kept", &C::kept, "most that an operator of a prompt keeps on them");
    visit("spilled", &C::spilled, "of that beyond them: crosses the first tier");
    visit("used", &C::used, "experts run, of all batches");
    visit("copies", &C::copies, "of them not resident");
    visit("hit_rate", &C::hit_rate, "share that was resident");
    visit("router", &C::router, "of a batch");
    visit("copying", &C::copying, "of a batch");
    visit("hidden", &C::hidden, "part of copying beside running experts");
    visit("prefill", &C::prefill, "of a batch");
    visit("decode", &C::decode, "of a batch");
    visit("decode_step", &C::decode_step, "one token of one expert");
    visit("total", &C::total, "of a batch");
  }
};

/// Mistakes: numbers out of range, no second tier, an expert beside the router that does not fit.
Result<ComposedRun> compose(const zoo::Model& model, const machine::Machine& machine,
                            const step::StepOptions& options, const Composition& composition);

}  // namespace orrery::serving
