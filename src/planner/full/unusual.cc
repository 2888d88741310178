// SPDX-License-Identifier: Apache-2.0
#include "planner/full/unusual.h"

#include <algorithm>
#include <array>

#include "workload/plan/schedule_row.h"
#include "workload/plan/tensor_overlap.h"

namespace orrery::full {
namespace {

struct MeanRow {
  std::string_view name;
  bool (*has)(const plan::Plan& plan);
};

constexpr auto kMeans = std::to_array<MeanRow>({
    {"hypothetical hardware",
     [](const plan::Plan& plan) { return plan::is_tracked(plan.overlap_tensor); }},
    {"states on the host",
     [](const plan::Plan& plan) { return plan.offload_optimizer != plan::Offload::none; }},
    {"activations on the host",
     [](const plan::Plan& plan) { return plan.offload_activations > 0; }},
    {"both ends at once",
     [](const plan::Plan& plan) { return plan.pp > 1 && row_of(plan.schedule).both_ends; }},
    {"split backwards",
     [](const plan::Plan& plan) {
       const plan::ScheduleRow& row = row_of(plan.schedule);
       return plan.pp > 1 && row.split_backwards && !row.both_ends;
     }},
    {"uneven stages",
     [](const plan::Plan& plan) { return plan.pp > 1 && !plan.stage_layers.empty(); }},
    {"odd chunks", [](const plan::Plan& plan) { return (plan.chunks & (plan.chunks - 1)) != 0; }},
    {"order of axes", [](const plan::Plan& plan) { return plan.order != plan::Plan().order; }},
});

}  // namespace

std::vector<UnusualMean> unusual_means(const plan::Plan& plan) {
  std::vector<UnusualMean> means;
  for (std::size_t i = 0; i < kMeans.size(); ++i) {
    if (kMeans[i].has(plan)) {
      means.push_back({static_cast<int>(i), kMeans[i].name});
    }
  }
  return means;
}

bool is_simpler(const plan::Plan& a, const plan::Plan& b) {
  const std::vector<UnusualMean> of_a = unusual_means(a);
  const std::vector<UnusualMean> of_b = unusual_means(b);
  if (of_a.size() != of_b.size()) {
    return of_a.size() < of_b.size();
  }
  return std::ranges::lexicographical_compare(of_b, of_a, {}, &UnusualMean::rank,
                                              &UnusualMean::rank);
}

}  // namespace orrery::full
