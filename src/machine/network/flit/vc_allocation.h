// SPDX-License-Identifier: Apache-2.0
/// Output VCs are allocated to heads.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/network/flit/head_routes.h"

namespace orrery::flit {

/// VcAllocation has the heads that wait for an output VC and says which of them gets which. One
/// iteration of a separable allocator works on the pointers of the VCs, others by SparseAllocator.
class VcAllocation {
 public:
  struct Win {
    std::uint32_t vc = 0;   ///< input VC
    std::uint32_t out = 0;  ///< output VC
  };

  VcAllocation(Routers& routers, HeadRoutes& routes);

  /// The front packet of an input VC asks from now on, until it wins.
  void add(std::uint32_t vc) { heads_.add(vc); }
  const BitSet& heads() const { return heads_; }

  /// Returns who wins which VC. A head without an open VC rests until one is freed at its port.
  const std::vector<Win>& match();
  /// The winner has its VC.
  void take(const Win& win);
  /// An output VC can be asked for from now on.
  void free(std::uint32_t out_vc);
  /// There is more room at an output port: heads that rest ask again.
  void wake(std::uint32_t port);

 private:
  struct Ask {
    std::uint32_t vc = 0;
    std::uint32_t port = 0;
    VcMask vcs = 0;
    bool is_escape = false;  ///< behind what its head asks for beside
  };
  std::uint32_t first_in_turn(const Ask& ask) const;
  void contend(std::uint32_t vc, std::uint32_t out);
  void match_by_turns();
  void match_in_general();

  Routers& routers_;
  HeadRoutes& routes_;
  BitSet heads_;
  std::vector<std::vector<std::uint32_t>> resting_;  ///< by output port: heads
  bool rests_;                                       ///< heads that find no VC rest
  bool escapes_;                                     ///< heads may ask for two outputs
  bool by_turns_;
  SparseAllocator allocator_;  ///< where it is not by turns
  std::vector<Ask> asks_;
  std::vector<std::uint32_t> contended_;  ///< output VCs
  std::vector<Win> wins_;
};

}  // namespace orrery::flit
