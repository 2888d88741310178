// SPDX-License-Identifier: Apache-2.0
/// The switch allocation of routers that are not plain.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/network/flit/vc_allocation.h"

namespace orrery::flit {

/// GeneralSwitch has all that turns alone do not decide: other allocators, speed-ups, speculation,
/// priorities, switches kept for a packet. An input of the switch is a port's for some of its VCs;
/// an output is a port's for some of the router's inputs.
class GeneralSwitch {
 public:
  explicit GeneralSwitch(const Routers& routers);

  /// Returns the input VCs that pass a flit, by the state before `wins` are taken; of `heads`,
  /// which speculate, those whose win has a credit.
  std::vector<std::uint32_t>& match(const BitSet& heads, const std::vector<VcAllocation::Win>& wins,
                                    Random& random);
  /// Returns whether what an input VC sends now is to be followed by the next flit without asking.
  bool goes_on(std::uint32_t vc) const {
    const InVc& in = routers_.in_vcs[vc];
    return routers_.settings.hold_switch_for_packet && in.left > 1 && in.count > 1;
  }
  void keep(std::uint32_t vc) {
    mark_kept(vc, true);
    kept_.push_back(vc);
  }
  /// Calls pass(vc, can, goes_on) for the VCs that keep the switch, the longest first; those that
  /// do not go on give it back for the allocation after.
  template <class Pass>
  void pass_kept(Pass pass) {
    std::erase_if(kept_, [&](std::uint32_t vc) {
      const bool can = (routers_.in[routers_.port_of(vc)].ready & routers_.bit_of(vc)) != 0;
      const bool next = can && goes_on(vc);
      mark_kept(vc, next);
      pass(vc, can, next);
      return !next;
    });
  }
  bool keeps_any() const { return !kept_.empty(); }

 private:
  using Request = SparseAllocator::Request;
  struct Input {
    std::uint32_t vc = 0;  ///< first in turn
    bool kept = false;
  };
  std::uint32_t input_of(std::uint32_t vc) const;
  std::uint32_t output_of(std::uint32_t vc) const;
  void mark_kept(std::uint32_t vc, bool kept) {
    inputs_[input_of(vc)].kept = kept_outputs_[output_of(vc)] = kept;
  }
  bool may_speculate(std::uint32_t vc) const;
  void add_wish(std::uint32_t vc, std::vector<Request>& wishes) const;
  void gather_wishes(const BitSet& heads);
  void take_match(const Request& match, const std::vector<VcAllocation::Win>& wins);

  const Routers& routers_;
  std::vector<Input> inputs_;
  std::vector<std::uint32_t> kept_;  ///< input VCs
  std::vector<bool> kept_outputs_;
  SparseAllocator allocator_;
  SparseAllocator spec_allocator_;      ///< of the separate allocation of those that speculate
  std::vector<Request> wishes_;         ///< by input, then output; tag: input VC
  std::vector<Request> spec_wishes_;    ///< of those that speculate
  std::vector<std::uint32_t> granted_;  ///< input VCs
  std::vector<std::uint32_t> guessed_;  ///< of those that have no output VC yet, with one to win
};

}  // namespace orrery::flit
