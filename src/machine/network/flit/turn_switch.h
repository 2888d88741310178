// SPDX-License-Identifier: Apache-2.0
/// The switch allocation where turns alone decide, in one iteration.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/network/flit/routers.h"

namespace orrery::flit {

/// TurnSwitch matches inputs of the switch, of a port for some of its VCs, to output ports. Input
/// first: each input chooses the output that is first in turn, then each output one of the inputs.
/// Output first (islip and select are that in one iteration): each output chooses the input that is
/// first in turn, then each input one of the outputs. Of several VCs between an input and an output
/// the one first in turn asks. Who is granted moves the turns of both behind the other.
class TurnSwitch {
 public:
  explicit TurnSwitch(const Routers& routers);

  /// Returns whether it does what a router is set to do; it may not be used otherwise.
  static bool suffices(const Routers& routers);
  /// Returns the input VCs that pass a flit.
  std::vector<std::uint32_t>& match();

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  /// Numbers are those of the whole network; differences that wrap make those behind a pointer the
  /// last in turn.
  struct Input {
    std::uint32_t pointer = 0;     ///< output port first in turn
    std::uint32_t vc = 0;          ///< VC first in turn
    std::uint32_t best = kNobody;  ///< of the outputs that chose it in this match
  };
  struct Output {
    std::uint32_t pointer = 0;     ///< input first in turn
    std::uint32_t best = kNobody;  ///< input VC of those that ask in this match
  };

  std::uint32_t input_of(std::uint32_t vc) const {
    const std::uint32_t port = routers_.port_of(vc);
    return speedup_ == 1 ? port : port * speedup_ + routers_.vc_of(vc) % speedup_;
  }
  void ask(std::uint32_t vc, std::uint32_t out_port);
  void choose_at_inputs(std::uint32_t port);
  void choose_by_inputs();
  void grant(std::uint32_t out_port);

  const Routers& routers_;
  std::uint32_t speedup_;  ///< inputs of a port
  bool input_first_;
  std::vector<VcMask> lanes_;  ///< VCs of an input of each port
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<std::uint32_t> touched_;  ///< outputs asked for
  std::vector<std::uint32_t> granted_;
};

}  // namespace orrery::flit
