// SPDX-License-Identifier: Apache-2.0
#include "study/tensor_overlap.h"

#include <algorithm>
#include <map>

#include "collective/group_extents.h"
#include "collective/tile_ring.h"
#include "graph/source.h"
#include "machine/compute/kernel_pieces.h"
#include "workload/parallel/tile_steps.h"
#include "workload/plan/tensor_overlap.h"

namespace orrery::study {
namespace {

/// Returns how often each product's first piece runs, by name: over all roles, one rank each.
std::map<std::string, std::int64_t> counts_of(const graph::Workload& workload) {
  std::map<std::string, std::int64_t> counts;
  const graph::IssueList* list = workload.source->list();
  if (list == nullptr) {
    return counts;
  }
  const graph::Excerpt excerpt(*list, workload.roles.size(), 1);
  for (int role = 0; role < static_cast<int>(workload.roles.size()); ++role) {
    std::map<int, std::int64_t> instances;  // by template
    excerpt.for_each(role, [&](const graph::Instance& instance, std::int64_t times) {
      instances[instance.template_index] += times;
    });
    for (const auto& [index, times] : instances) {
      for (const graph::Node& node :
           workload.program_of(role).templates[static_cast<std::size_t>(index)].nodes) {
        for (const graph::Operator& op : node.operators) {
          if (op.pieces > 1 && op.piece == 0) {
            counts[op.name] += times;
          }
        }
      }
    }
  }
  return counts;
}

class Products {
 public:
  explicit Products(const Run& run)
      : run_(run),
        ranks_(run.plan.tp),
        extents_(collective::group_extents(
            run.workload.group(graph::GroupIndex(plan::Axis::tp)).members, 0, run.machine)) {}

  OverlappedProduct of(const parallel::SummedProduct& pair) const {
    const graph::Operator& op = pair.product.node.operators.front();
    const graph::Node& sum = pair.sum.node;
    const bool gathers = sum.collective == graph::CollectiveKind::all_reduce;
    OverlappedProduct row{.name = op.name,
                          .phase = run_.workload.phases[*pair.product.node.phase].name,
                          .gemm = op.gemm,
                          .result = sum.bytes};
    graph::Operator pieces = op;
    pieces.pieces = static_cast<std::int32_t>(ranks_);
    const Time whole = compute::kernel_time(op, run_.machine.device).alone;
    pieces.tracking = run_.plan.overlap_tensor == plan::TensorOverlap::tracked
                          ? graph::Tracking::shared
                      : plan::is_tracked(run_.plan.overlap_tensor) ? graph::Tracking::first
                                                                   : graph::Tracking::none;
    const compute::KernelTime time = compute::time_in_pieces(pieces, run_.machine.device);
    collective::TileRing ring{.product = time.alone,
                              .hop = taken(graph::CollectiveKind::send_recv, sum.bytes / ranks_),
                              .ranks = ranks_};
    if (!plan::is_tracked(run_.plan.overlap_tensor) && time.alone > Time(0)) {
      ring.slowed = time.beside_collective / time.alone;
    }
    row.product = whole;
    row.reduce_scatter = ring.hop * (ranks_ - 1);
    row.all_gather = gathers ? taken(graph::CollectiveKind::all_gather, sum.bytes) : Time(0);
    row.sequential = whole + taken(sum.collective, sum.bytes);
    row.ideal = std::max(whole, row.reduce_scatter) + row.all_gather;
    row.overlapped = collective::overlapped_time(ring) + row.all_gather;
    count_accesses(op, gathers, row);
    return row;
  }

 private:
  Time taken(graph::CollectiveKind kind, Bytes bytes) const {
    return collective::collective_time(
        kind, bytes, extents_, run_.algorithms[graph::GroupIndex(plan::Axis::tp)], run_.machine);
  }

  void count_accesses(const graph::Operator& op, bool gathers, OverlappedProduct& row) const {
    const compute::Device& device = run_.machine.device;
    const compute::TileTraffic traffic = compute::tile_traffic(op, ranks_, device);
    row.unfused = {.operand_reads = traffic.operands,
                   .reduce_reads = traffic.reads_unfused(),
                   .writes = traffic.writes_unfused(),
                   .gather = gathers ? 2 * static_cast<double>(ranks_ - 1) * traffic.chunk : 0};
    row.fused = row.unfused;
    if (plan::is_tracked(run_.plan.overlap_tensor)) {
      row.fused.operand_reads /= device.tracker.value_or(compute::Tracker()).read_saving;
      row.fused.reduce_reads = traffic.reads_tracked();
      row.fused.writes = traffic.writes_tracked();
    }
  }

  const Run& run_;
  std::int64_t ranks_;
  std::vector<collective::Extent> extents_;
};

TileAccesses times(TileAccesses one, std::int64_t count) {
  const auto factor = static_cast<double>(count);
  one.operand_reads *= factor;
  one.reduce_reads *= factor;
  one.writes *= factor;
  one.gather *= factor;
  return one;
}

}  // namespace

TileAccesses& TileAccesses::operator+=(const TileAccesses& other) {
  operand_reads += other.operand_reads;
  reduce_reads += other.reduce_reads;
  writes += other.writes;
  gather += other.gather;
  return *this;
}

std::optional<StepOverlap> overlap_of(const Run& run) {
  const plan::Plan& plan = run.plan;
  if (!plan::follows_tiles(plan.overlap_tensor) || plan.tp == 1 || !plan.strategy.empty()) {
    return std::nullopt;
  }
  StepOverlap overlap{.how = plan.overlap_tensor,
                      .hypothetical = plan::hypothetical_hardware(plan.overlap_tensor, run.machine),
                      .ranks = plan.tp};
  std::map<std::string, std::int64_t> counts = counts_of(run.workload);
  const Products products(run);
  for (const parallel::SummedProduct& pair : parallel::summed_products(run.model, plan)) {
    OverlappedProduct row = products.of(pair);
    const auto same = std::ranges::find_if(overlap.products, [&](const OverlappedProduct& one) {
      return one.name == row.name && one.gemm == row.gemm;
    });
    if (same != overlap.products.end()) {
      continue;  // of another kind of layer
    }
    row.times = counts[row.name];
    overlap.unfused += times(row.unfused, row.times);
    overlap.fused += times(row.fused, row.times);
    overlap.products.push_back(std::move(row));
  }
  return overlap;
}

Error nothing_to_overlap(const zoo::Model& model, const plan::Plan& plan) {
  Error mistakes;
  if (plan.overlap_tensor != plan::TensorOverlap::none && plan.tp > 1 &&
      parallel::summed_products(model, plan).empty()) {
    mistakes.add({{},
                  "overlap_tensor",
                  std::string(name_of(plan.overlap_tensor)),
                  "none: no product of this plan is directly followed by the sum of its result "
                  "over tp"});
  }
  return mistakes;
}

}  // namespace orrery::study
