// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/allocator.h"

#include <utility>

namespace orrery::flit {

void SparseAllocator::resize(std::size_t inputs, std::size_t outputs) {
  inputs_.assign(inputs, {});
  outputs_.assign(outputs, {});
}

/// Distances from the pointer wrap, so those behind it are last in turn.
void SparseAllocator::choose(std::vector<Side>& by, std::uint32_t who, std::uint32_t candidate) {
  Side& side = by[who];
  if (side.best == kNone || candidate - side.pointer < side.best - side.pointer) {
    side.best = candidate;
  }
}

bool SparseAllocator::iterate(bool input_first, bool move_pointers) {
  std::vector<Side>& first = input_first ? inputs_ : outputs_;
  std::vector<Side>& second = input_first ? outputs_ : inputs_;
  const auto ends = [&](const Request& request) {
    return input_first ? std::pair(request.input, request.output)
                       : std::pair(request.output, request.input);
  };
  for (const Request& request : requests_) {
    if (!inputs_[request.input].matched && !outputs_[request.output].matched) {
      choose(first, ends(request).first, ends(request).second);
    }
  }
  for (const Request& request : requests_) {
    const auto [a, b] = ends(request);
    if (first[a].best == b) {
      choose(second, b, a);
    }
  }
  bool found = false;
  for (const Request& request : requests_) {
    const auto [a, b] = ends(request);
    if (first[a].best == b && second[b].best == a && !first[a].matched) {
      first[a].matched = second[b].matched = true;
      if (move_pointers) {
        first[a].pointer = b + 1;
        second[b].pointer = a + 1;
      }
      matches_.push_back(request);
      found = true;
    }
  }
  for (const Request& request : requests_) {
    inputs_[request.input].best = kNone;
    outputs_[request.output].best = kNone;
  }
  return found;
}

const std::vector<SparseAllocator::Request>& SparseAllocator::match(Allocator allocator,
                                                                    int iterations) {
  matches_.clear();
  for (int i = 0; i < iterations; ++i) {
    const bool moves = allocator != Allocator::islip || i == 0;
    if (!iterate(allocator == Allocator::separable_input_first, moves)) {
      break;
    }
  }
  for (const Request& request : requests_) {
    inputs_[request.input].matched = false;
    outputs_[request.output].matched = false;
  }
  requests_.clear();
  return matches_;
}

}  // namespace orrery::flit
