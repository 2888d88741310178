// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/allocator.h"

#include <algorithm>
#include <utility>

namespace orrery::flit {

void SparseAllocator::place(std::vector<Side>& sides, const std::vector<std::uint32_t>& routers,
                            std::uint32_t Router::*count) {
  sides.assign(routers.size(), {});
  for (std::size_t i = 0; i < routers.size(); ++i) {
    if (routers[i] >= routers_.size()) {
      routers_.resize(routers[i] + std::size_t{1});
    }
    sides[i].router = routers[i];
    sides[i].place = routers_[routers[i]].*count;
    ++(routers_[routers[i]].*count);
  }
}

void SparseAllocator::resize(const std::vector<std::uint32_t>& inputs,
                             const std::vector<std::uint32_t>& outputs) {
  routers_.clear();
  place(inputs_, inputs, &Router::inputs);
  place(outputs_, outputs, &Router::outputs);
  reached_from_.assign(outputs.size(), kNone);
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
                                                                    int iterations,
                                                                    Random& random) {
  matches_.clear();
  if (requests_.empty()) {
    return matches_;
  }
  if (allocator >= Allocator::wavefront) {  // they count requests: one of a kind
    std::sort(requests_.begin(), requests_.end());
    requests_.erase(std::unique(requests_.begin(), requests_.end()), requests_.end());
  }
  if (allocator == Allocator::wavefront) {
    wavefront();
  } else if (allocator == Allocator::loa) {
    grant_lonely();
  } else if (allocator == Allocator::max_size) {
    match_most();
  } else {
    for (int i = 0; i < iterations; ++i) {
      const bool moves = allocator != Allocator::islip || i == 0;
      const bool found = allocator == Allocator::pim
                             ? draw(random)
                             : iterate(allocator == Allocator::separable_input_first, moves);
      if (!found) {
        break;
      }
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
