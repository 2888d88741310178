// SPDX-License-Identifier: Apache-2.0
/// Allocators that look at the whole matrix of requests. Requests are sorted by input, each once.
#include <algorithm>
#include <tuple>

#include "machine/network/flit/allocator.h"

namespace orrery::flit {

bool SparseAllocator::is_open(const Request& request) const {
  return !inputs_[request.input].matched && !outputs_[request.output].matched;
}

void SparseAllocator::grant(const Request& request) {
  inputs_[request.input].matched = outputs_[request.output].matched = true;
  matches_.push_back(request);
}

/// Diagonal d of a router has the requests with place of input + place of output = d, modulo the
/// larger side: no two of them share an input or an output.
void SparseAllocator::wavefront() {
  const auto turn = [&](const Request& request) {
    const Side& input = inputs_[request.input];
    const Router& router = routers_[input.router];
    const std::uint32_t square = std::max(router.inputs, router.outputs);
    const std::uint32_t diagonal = input.place + outputs_[request.output].place;
    return std::tuple(input.router, (diagonal + square - router.diagonal) % square, request);
  };
  std::sort(requests_.begin(), requests_.end(),
            [&](const Request& a, const Request& b) { return turn(a) < turn(b); });
  for (const Request& request : requests_) {
    if (is_open(request)) {
      grant(request);
    }
  }
  std::uint32_t last = kNone;
  for (const Request& request : requests_) {
    const std::uint32_t router = inputs_[request.input].router;
    if (router != last) {
      Router& moved = routers_[router];
      moved.diagonal = (moved.diagonal + 1) % std::max(moved.inputs, moved.outputs);
    }
    last = router;
  }
}

/// One of several with equal chance, met one after the other: the n-th takes the place of what was
/// chosen with a chance of 1 / n.
bool SparseAllocator::draw(Random& random) {
  const auto draw_one = [&](Side& side, std::uint32_t candidate) {
    ++side.asked;
    side.best = side.asked == 1 || random.below(side.asked) == 0 ? candidate : side.best;
  };
  for (const Request& request : requests_) {
    if (is_open(request)) {
      draw_one(outputs_[request.output], request.input);
    }
  }
  for (const Request& request : requests_) {
    if (outputs_[request.output].best == request.input) {
      draw_one(inputs_[request.input], request.output);
    }
  }
  bool found = false;
  for (const Request& request : requests_) {
    if (inputs_[request.input].best == request.output && is_open(request)) {
      grant(request);
      found = true;
    }
  }
  for (const Request& request : requests_) {
    for (Side* side : {&inputs_[request.input], &outputs_[request.output]}) {
      side->best = kNone;
      side->asked = 0;
    }
  }
  return found;
}

/// Grants, of outputs equally lonely and of the inputs that ask one, the first in turn by place; a
/// grant moves both turns by one.
void SparseAllocator::grant_lonely() {
  for (const Request& request : requests_) {
    ++outputs_[request.output].asked;
  }
  const auto distance = [](const Side& of, const Side& to, std::uint32_t count) {
    return (to.place + count - of.place_in_turn) % count;
  };
  for (const Request& request : requests_) {
    Side& input = inputs_[request.input];
    const auto turn = [&](std::uint32_t output) {
      return std::pair(outputs_[output].asked,
                       distance(input, outputs_[output], routers_[input.router].outputs));
    };
    if (input.best == kNone || turn(request.output) < turn(input.best)) {
      input.best = request.output;
    }
  }
  for (const Request& request : requests_) {
    Side& output = outputs_[request.output];
    const std::uint32_t count = routers_[output.router].inputs;
    if (inputs_[request.input].best == request.output &&
        (output.best == kNone || distance(output, inputs_[request.input], count) <
                                     distance(output, inputs_[output.best], count))) {
      output.best = request.input;
    }
  }
  for (const Request& request : requests_) {
    Side& input = inputs_[request.input];
    Side& output = outputs_[request.output];
    if (output.best == request.input && input.best == request.output) {
      grant(request);
      input.place_in_turn = (input.place_in_turn + 1) % routers_[input.router].outputs;
      output.place_in_turn = (output.place_in_turn + 1) % routers_[output.router].inputs;
    }
  }
  for (const Request& request : requests_) {
    inputs_[request.input].best = kNone;
    outputs_[request.output].best = kNone;
    outputs_[request.output].asked = 0;
  }
}

/// A path of requests and matches in turn from an input without a match to an output without one,
/// breadth first; requests and matches change places along it.
void SparseAllocator::augment(std::uint32_t input, const std::vector<std::size_t>& first_of) {
  std::vector<std::uint32_t> order{input};
  std::vector<std::uint32_t> reached;
  const auto look = [&](std::uint32_t from, std::uint32_t output) {
    if (reached_from_[output] != kNone) {
      return false;
    }
    reached_from_[output] = from;
    reached.push_back(output);
    if (outputs_[output].best != kNone) {
      order.push_back(outputs_[output].best);
      return false;
    }
    for (std::uint32_t free = output;;) {
      const std::uint32_t by = reached_from_[free];
      const std::uint32_t before = inputs_[by].best;
      inputs_[by].best = free;
      outputs_[free].best = by;
      if (by == input) {
        return true;
      }
      free = before;
    }
  };
  bool done = false;
  for (std::size_t next = 0; next < order.size() && !done; ++next) {
    const std::uint32_t from = order[next];
    for (std::size_t i = first_of[inputs_[from].asked];
         i < requests_.size() && requests_[i].input == from && !done; ++i) {
      done = look(from, requests_[i].output);
    }
  }
  for (const std::uint32_t output : reached) {
    reached_from_[output] = kNone;
  }
}

/// Inputs begin at another one each time, so that none stays behind.
void SparseAllocator::match_most() {
  std::vector<std::size_t> first_of;  // requests of an input, which keeps its number in `asked`
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (i == 0 || requests_[i].input != requests_[i - 1].input) {
      inputs_[requests_[i].input].asked = static_cast<std::uint32_t>(first_of.size());
      first_of.push_back(i);
    }
  }
  for (std::size_t i = 0; i < first_of.size(); ++i) {
    augment(requests_[first_of[(i + turn_) % first_of.size()]].input, first_of);
  }
  ++turn_;
  for (const Request& request : requests_) {
    if (inputs_[request.input].best == request.output) {
      grant(request);
    }
  }
  for (const Request& request : requests_) {
    inputs_[request.input].best = kNone;
    inputs_[request.input].asked = 0;
    outputs_[request.output].best = kNone;
  }
}

}  // namespace orrery::flit
