// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mixed.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <set>
#include <utility>

#include "base/lists.h"
#include "planner/spmd/signatures.h"

namespace orrery::spmd {

std::vector<double> capped_shares(const std::vector<FlopRate>& rates, FlopRate cap) {
  double sum = 0;
  for (const FlopRate rate : rates) {
    sum += std::min(rate, cap).value();
  }
  return mapped(rates, [&](const FlopRate rate) { return std::min(rate, cap).value() / sum; });
}

MixedPrices::MixedPrices(const MixedDevices& devices, const std::vector<double>& shares)
    : profile_(devices.profile),
      latency_(devices.collective_latency),
      slowest_(*std::min_element(devices.rates.begin(), devices.rates.end())),
      padding_(static_cast<double>(shares.size()) *
               *std::max_element(shares.begin(), shares.end())) {
  assert(shares.size() == devices.rates.size() && "a share for every device");
  double longest = 0;  // share over rate
  for (std::size_t i = 0; i < shares.size(); ++i) {
    longest = std::max(longest, shares[i] / devices.rates[i].value());
  }
  divided_ = FlopRate(1 / longest);
}

Time MixedPrices::compute(const OperatorGraph& graph, int node, const Signature& signature) const {
  const Flops half = graph.nodes[static_cast<std::size_t>(node)].flops / 2;
  return half / (signature.divides_work() ? divided_ : slowest_);
}

StageWork MixedPrices::convert(const OperatorGraph& graph, int tensor, Form from, Form to) const {
  assert(conversion(from, to) && "a legal conversion");
  const Conversion kinds = conversion(from, to).value_or(Conversion{});
  const Tensor& converted = graph.tensors[static_cast<std::size_t>(tensor)];
  const NodeKind kind = graph.nodes[static_cast<std::size_t>(converted.producer)].kind;
  const bool trains = kind == NodeKind::parameter || kind == NodeKind::op;
  return {.forward_1 = collective(kinds.forward, converted.bytes),
          .backward_1 = trains ? collective(kinds.gradient, converted.bytes) : Time(0)};
}

Time MixedPrices::collective(Operation kind, Bytes bytes) const {
  if (kind == Operation::slice) {
    return Time(0);
  }
  const Bytes moved = kind == Operation::all_reduce ? bytes : bytes * padding_;
  return moved / profile_.bandwidth(kind) + latency_;
}

bool MixedPrices::allows(const OperatorGraph& graph, int node, const Signature& signature) const {
  return is_sound(graph.nodes[static_cast<std::size_t>(node)].op, signature);
}

Result<MixedSolution> search_mixed(const OperatorGraph& graph, const MixedDevices& devices,
                                   const SearchOptions& options) {
  std::optional<MixedSolution> best;
  for (const FlopRate cap : std::set<FlopRate>(devices.rates.begin(), devices.rates.end())) {
    std::vector<double> shares = capped_shares(devices.rates, cap);
    auto solution = search(graph, MixedPrices(devices, shares), options);
    if (!solution) {
      return fail(std::move(solution.error()));
    }
    if (!best || solution->total < best->solution.total) {
      best = MixedSolution{std::move(*solution), std::move(shares)};
    }
  }
  assert(best && "rates");
  return std::move(*best);
}

}  // namespace orrery::spmd
