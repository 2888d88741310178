// SPDX-License-Identifier: Apache-2.0
/// Products whose results are summed over tp under a plan's overlap_tensor: what each takes,
/// nothing beside it, and how much memory traffic a step saves.
///
/// With G the product's time, R = (N-1) hops of V / N to the next rank, A the all-gather that an
/// all-reduce ends with (reduce-scatter: none), C the collective as the plan without overlap runs
/// it:
///
///   sequential  G + C        ideal  max(G, R) + A
///   overlapped  tile_ring.h with what the technique costs the product, + A
///
/// Accesses of the memory of one rank by the reduce-scatter, c = V / N:
///
///                reads      writes (with the product's)
///   unfused      2N-1       2N
///   tracked      N-2        2N-2
///
/// and the product's reads of its operands, which shrink by Tracker::read_saving. cu_split accesses
/// what unfused does.
///
/// Source: docs/models/t3.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/run.h"

namespace orrery::study {

/// Counts accesses to memory in bytes; they are exact where N divides them.
struct TileAccesses {
  double operand_reads = 0;
  double reduce_reads = 0;
  double writes = 0;
  double gather = 0;  ///< of the all-gather: N-1 chunks written, N-1 read

  double total() const { return operand_reads + reduce_reads + writes + gather; }
  TileAccesses& operator+=(const TileAccesses& other);
};

struct OverlappedProduct {
  std::string name;   ///< "fc2_gemm"
  std::string phase;  ///< "forward"
  graph::GemmShape gemm{};
  Bytes result{0};  ///< V
  std::int64_t times =
      0;            ///< of the ranks of one tp, cp and dp coordinate, all stages, in all steps
  Time product{0};  ///< G
  Time reduce_scatter{0};  ///< R
  Time all_gather{0};      ///< A, exposed
  Time sequential{0};
  Time ideal{0};
  Time overlapped{0};
  TileAccesses unfused{};
  TileAccesses fused{};

  bool bound_by_product() const { return product >= reduce_scatter; }
  double speedup() const { return sequential / overlapped; }
  double ideal_speedup() const { return sequential / ideal; }
};

struct StepOverlap {
  plan::TensorOverlap how = plan::TensorOverlap::none;
  std::string hypothetical{};  ///< plan::hypothetical_hardware
  std::int64_t ranks = 1;      ///< N
  std::vector<OverlappedProduct> products{};
  TileAccesses unfused{};  ///< of all products, each so many times
  TileAccesses fused{};
};

/// Returns nothing of a plan without overlap_tensor. Requires a run of run_step.
std::optional<StepOverlap> overlap_of(const Run& run);

/// Returns a mistake of overlap_tensor if no product of the plan is directly followed by its sum.
/// Requires a checked plan.
Error nothing_to_overlap(const zoo::Model& model, const plan::Plan& plan);

}  // namespace orrery::study
