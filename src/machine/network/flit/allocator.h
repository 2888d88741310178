// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "machine/network/flit/settings.h"

namespace orrery::flit {

/// Matches inputs to outputs that they ask for, by round-robin pointers, in several iterations:
/// the general form of what the engine does faster for one iteration of separable_input_first.
class SparseAllocator {
 public:
  struct Request {
    std::uint32_t input = 0;
    std::uint32_t output = 0;
  };

  void resize(std::size_t inputs, std::size_t outputs);
  void ask(std::uint32_t input, std::uint32_t output) { requests_.push_back({input, output}); }
  bool has_requests() const { return !requests_.empty(); }
  /// The matches; takes back all requests.
  const std::vector<Request>& match(Allocator allocator, int iterations);

 private:
  struct Side {
    std::uint32_t pointer = 0;  ///< other side that is first in turn
    std::uint32_t best = kNone;
    bool matched = false;
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;
  void choose(std::vector<Side>& by, std::uint32_t who, std::uint32_t candidate);
  bool iterate(bool input_first, bool move_pointers);

  std::vector<Side> inputs_;
  std::vector<Side> outputs_;
  std::vector<Request> requests_;
  std::vector<Request> matches_;
};

}  // namespace orrery::flit
