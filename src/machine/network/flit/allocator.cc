// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/allocator.h"

#include <algorithm>
#include <utility>

namespace orrery::flit {

void SparseAllocator::place(std::vector<Side>& sides, const std::vector<std::uint32_t>& routers,
                            std::uint32_t Router::*count) {
  sides.assign(routers.size(), {});
  for (std::size_t i = 0; i < routers.size(); ++i) {
    if (routers[i] == kNone) {
      continue;
    }
    if (routers[i] >= routers_.size()) {
      routers_.resize(routers[i] + std::size_t{1});
    }
    sides[i].router = routers[i];
    sides[i].place = routers_[routers[i]].*count;
    ++(routers_[routers[i]].*count);
  }
}

void SparseAllocator::resize(const std::vector<std::uint32_t>& inputs,
                             const std::vector<std::uint32_t>& outputs, Arbiter arbiter) {
  routers_.clear();
  place(inputs_, inputs, &Router::inputs);
  place(outputs_, outputs, &Router::outputs);
  reached_from_.assign(outputs.size(), kNone);
  if (arbiter == Arbiter::matrix) {
    for (Side& input : inputs_) {
      input.granted.resize(routers_[input.router].outputs);
    }
    for (Side& output : outputs_) {
      output.granted.resize(routers_[output.router].inputs);
    }
  }
}

void SparseAllocator::begin_at(const std::vector<std::uint32_t>& first_outputs) {
  std::vector<std::uint32_t> before(routers_.size(), 0);  // places that come last
  for (std::uint32_t router = 0; router < before.size(); ++router) {
    const std::uint32_t first = router < first_outputs.size() ? first_outputs[router] : kNone;
    before[router] = first < outputs_.size() ? outputs_[first].place : 0;
  }
  for (Side& output : outputs_) {
    const std::uint32_t count = routers_[output.router].outputs;
    output.place = count > 0 ? (output.place + count - before[output.router]) % count : 0;
  }
  for (Side& input : inputs_) {
    const std::uint32_t first =
        input.router < first_outputs.size() ? first_outputs[input.router] : kNone;
    input.pointer = first < outputs_.size() ? first : 0;
  }
}

/// Returns a number that is less for who is earlier in turn. Distances from the pointer wrap, so
/// those behind it are last in turn.
std::uint64_t SparseAllocator::turn(const Side& side, std::uint32_t other, const Side& of_other) {
  return side.granted.empty() ? other - side.pointer
                              : (std::uint64_t{side.granted[of_other.place]} << 32U) |
                                    static_cast<std::uint32_t>(~of_other.place);
}

void SparseAllocator::choose(Side& side, std::uint32_t other, const std::vector<Side>& others,
                             std::int64_t priority) {
  if (side.best == kNone || priority > side.priority ||
      (priority == side.priority &&
       turn(side, other, others[other]) < turn(side, side.best, others[side.best]))) {
    side.best = other;
    side.priority = priority;
  }
}

void SparseAllocator::pass_turn(Side& side, std::uint32_t other, const Side& of_other) {
  side.pointer = other + 1;
  if (!side.granted.empty()) {
    side.granted[of_other.place] = ++grants_;
  }
}

bool SparseAllocator::iterate(Allocator allocator, bool move_pointers) {
  const bool input_first = allocator == Allocator::separable_input_first;
  const bool has_priorities = allocator != Allocator::islip;
  std::vector<Side>& first = input_first ? inputs_ : outputs_;
  std::vector<Side>& second = input_first ? outputs_ : inputs_;
  const auto ends = [&](const Request& request) {
    return input_first ? std::pair(request.input, request.output)
                       : std::pair(request.output, request.input);
  };
  for (const Request& request : requests_) {
    if (!inputs_[request.input].matched && !outputs_[request.output].matched) {
      choose(first[ends(request).first], ends(request).second, second,
             has_priorities ? input_first ? request.at_input : request.at_output : 0);
    }
  }
  for (const Request& request : requests_) {
    const auto [a, b] = ends(request);
    if (first[a].best == b) {
      choose(second[b], a, first,
             has_priorities ? input_first ? request.at_output : request.at_input : 0);
    }
  }
  bool found = false;
  for (const Request& request : requests_) {
    const auto [a, b] = ends(request);
    if (first[a].best == b && second[b].best == a && !first[a].matched) {
      first[a].matched = second[b].matched = true;
      if (move_pointers) {
        pass_turn(first[a], b, second[b]);
        pass_turn(second[b], a, first[a]);
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
  if (allocator >= Allocator::wavefront) {
    std::sort(requests_.begin(), requests_.end());
  }
  if (allocator == Allocator::wavefront) {
    wavefront();
  } else if (allocator == Allocator::loa) {
    grant_lonely();
  } else if (allocator == Allocator::max_size) {
    match_most();
  } else {
    for (int i = 0; i < iterations; ++i) {
      const bool moves =
          (allocator != Allocator::islip && allocator != Allocator::select) || i == 0;
      const bool found = allocator == Allocator::pim ? draw(random) : iterate(allocator, moves);
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
