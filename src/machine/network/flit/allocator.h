// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "machine/network/flit/random.h"
#include "machine/network/flit/settings.h"

namespace orrery::flit {

/// Matches inputs to outputs that they ask for, in several iterations: the general form of what the
/// engine does faster for one iteration of separable_input_first. One allocator serves all routers;
/// what is of different routers is never asked for together.
class SparseAllocator {
 public:
  struct Request {
    std::uint32_t input = 0;
    std::uint32_t output = 0;
    std::int64_t at_input = 0;  ///< priority among the requests of its input, by the separable ones
    std::int64_t at_output = 0;
    std::uint32_t tag = 0;  ///< the caller's
    friend auto operator<=>(const Request&, const Request&) = default;
  };

  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// Sets, by input and by output, the router that it belongs to; kNone: it is not there.
  void resize(const std::vector<std::uint32_t>& inputs, const std::vector<std::uint32_t>& outputs,
              Arbiter arbiter);
  /// Sets, by router, the output that is first in turn at the beginning; kNone: its lowest. The
  /// others follow by number, the lowest after the highest.
  void begin_at(const std::vector<std::uint32_t>& first_outputs);
  /// Adds a request, once for an input and an output.
  void ask(const Request& request) { requests_.push_back(request); }
  /// Returns the matches; takes back all requests. `random`: what pim draws from.
  const std::vector<Request>& match(Allocator allocator, int iterations, Random& random);

 private:
  struct Side {
    std::uint32_t pointer = 0;        ///< other side that is first in turn
    std::uint32_t place_in_turn = 0;  ///< loa: its place
    std::uint32_t best = kNone;
    std::int64_t priority = 0;           ///< of the best
    std::vector<std::uint32_t> granted;  ///< matrix: when, by place of the other side; 0: never
    bool matched = false;
    std::uint32_t router = 0;
    std::uint32_t place = 0;  ///< among those of its router
    std::uint32_t asked = 0;  ///< pim, loa: requests seen; max_size: which of the inputs that ask
  };
  struct Router {
    std::uint32_t inputs = 0;
    std::uint32_t outputs = 0;
    std::uint32_t diagonal = 0;  ///< the first in turn
  };
  static std::uint64_t turn(const Side& side, std::uint32_t other, const Side& of_other);
  static void choose(Side& side, std::uint32_t other, const std::vector<Side>& others,
                     std::int64_t priority);
  void pass_turn(Side& side, std::uint32_t other, const Side& of_other);
  void place(std::vector<Side>& sides, const std::vector<std::uint32_t>& routers,
             std::uint32_t Router::*count);
  bool iterate(Allocator allocator, bool move_pointers);
  void grant(const Request& request);
  bool is_open(const Request& request) const;
  void wavefront();
  bool draw(Random& random);
  void grant_lonely();
  void match_most();
  void augment(std::uint32_t input, const std::vector<std::size_t>& first_of);

  std::vector<Side> inputs_;
  std::vector<Side> outputs_;
  std::vector<Router> routers_;
  std::vector<Request> requests_;
  std::vector<Request> matches_;
  std::vector<std::uint32_t> reached_from_;  ///< max_size: by output, the input before it
  std::uint32_t grants_ = 0;                 ///< matrix: so far
  std::uint32_t turn_ = 0;                   ///< max_size: where the inputs begin
};

}  // namespace orrery::flit
