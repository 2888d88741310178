// SPDX-License-Identifier: Apache-2.0
/// Defaults fill what a plan leaves open: with what an engineer would choose, or would have in the
/// year of Plan::as_of (kOpenFields; of a framework the releases up to it), and otherwise with the
/// value that Plan's declaration gives. None is chosen that the plan contradicts: sequence
/// parallelism, for one, not where tp x cp does not divide the sequence.
///
/// Sources of the year: FlashAttention (Dao et al. 2022; its kernels need the matrix units of
/// Ampere and later, the first with bf16), sequence parallelism (Korthikanti et al., May 2022) and
/// the distributed optimizer were published by the end of 2022. Routing limited to some nodes is
/// made for exchanges that cross to a node once (DeepSeek-AI 2024, sections 2.1.2 and 3.2.2).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::plan {

/// Plan::as_of lies in these years, from transformers on; check() refuses others.
inline constexpr std::int64_t kFirstYear = 2017;
inline constexpr std::int64_t kLastYear = 2100;

/// A field that follows from the others where it is left open.
struct OpenField {
  std::string_view name;
  std::string_view today;   ///< from 2023 on
  std::string_view before;  ///< "" as today
};
inline constexpr auto kOpenFields = std::to_array<OpenField>({
    {"compute_type", "bf16, or fp16 where the device does not compute in it", ""},
    {"attention", "flash where the device computes in bf16", "unfused"},
    {"sequence_parallel", "true with tp > 1", "false"},
    {"zero", "1 with more than one replica (dp x cp > 1)", "0"},
    {"stage_layers", "auto where layers do not divide into pp x chunks", "even"},
    {"moe_dispatch",
     "hierarchical with ep over several nodes and a router that limits their number", "alltoall"},
    {"dp", "devices / (tp x cp x pp), with --devices", ""},
    {"global_batch", "dp x microbatch x pp, twice that with dualpipe: a pipeline that fills", ""},
});

/// Returns what help texts say of a field that is not given: "default 1", or the rule above.
std::string default_text(std::string_view field);

/// Completes a plan. Fields that have a place are given, all others open; its framework fills these
/// first. `model`, `machine`: null where not known; `devices`: 0 where not given. Of devices that
/// tp x cp x pp does not divide as many replicas as there is room for. Nothing is open in the
/// result: its as_of is 0, unless it was no year.
Plan complete(const PlacedPlan& open, const zoo::Model* model, const machine::Machine* machine,
              std::int64_t devices);

}  // namespace orrery::plan
