// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/template_tensors.h"

#include <algorithm>
#include <vector>

#include "workload/chakra/footprint.h"

namespace orrery::chakra {
namespace {

using Lifetime = graph::Tensor::Lifetime;

constexpr int kNoAllocation = -1;  // what is there all the time

/// First and last places in the template.
struct Places {
  int first = -1;
  int last = -1;

  bool none() const { return first < 0; }
  void add(int place) {
    first = none() ? place : std::min(first, place);
    last = std::max(last, place);
  }
};

struct TensorPlaces {
  Places reads;
  Places writes;

  bool initial() const { return writes.none() || (!reads.none() && reads.first < writes.first); }
  bool result() const { return !writes.none() && (reads.none() || reads.last < writes.last); }
};

}  // namespace

Result<Bytes> add_tensors(const Program& program, std::span<const std::uint32_t> order,
                          const TensorUses& uses, graph::MemoryIndex memory,
                          graph::Template& made) {
  std::vector<int> place_of(program.nodes.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    place_of[order[place]] = static_cast<int>(place);
  }
  std::vector<int> places;  // by use
  std::vector<TensorPlaces> of_tensor(uses.tensors.size());
  for (const TensorUses::Use& use : uses.uses) {
    const auto position = position_of(program, uses, use);
    if (!position) {
      return fail(position.error());
    }
    const int place = places.emplace_back(place_of[*position]);
    (use.writes ? of_tensor[use.tensor].writes : of_tensor[use.tensor].reads).add(place);
  }
  Bytes begin{0};
  Bytes all{0};
  std::vector<int> number(uses.tensors.size(), kNoAllocation);
  for (std::size_t t = 0; t < uses.tensors.size(); ++t) {
    const bool initial = of_tensor[t].initial();
    const bool result = of_tensor[t].result();
    all += uses.tensors[t].size;
    begin += initial ? uses.tensors[t].size : Bytes(0);
    if (initial && result) {
      continue;
    }
    number[t] = static_cast<int>(made.tensors.size());
    made.tensors.push_back({.name = uses.tensors[t].name,
                            .bytes = uses.tensors[t].size,
                            .layout = {},
                            .memory = memory,
                            .lifetime = initial  ? Lifetime::enters
                                        : result ? Lifetime::leaves
                                                 : Lifetime::instance});
  }
  if (all.is_overflow()) {
    return fail("tensors of 2^63 bytes or more");
  }
  for (std::size_t i = 0; i < uses.uses.size(); ++i) {
    const TensorUses::Use& use = uses.uses[i];
    if (number[use.tensor] != kNoAllocation) {
      graph::Node& node = made.nodes[static_cast<std::size_t>(places[i])];
      (use.writes ? node.writes : node.reads).push_back({.tensor = number[use.tensor]});
    }
  }
  return begin;
}

}  // namespace orrery::chakra
