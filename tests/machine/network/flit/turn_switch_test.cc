// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/turn_switch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace orrery::flit {
namespace {

/// The general allocator, which is handed one VC of each input for each output: the first in turn
/// from behind the last that was granted, all modulo the VCs.
class Reference {
 public:
  explicit Reference(const Routers& routers)
      : routers_(routers),
        allocator_(
            routers.make_allocator(routers.settings.input_speedup, 1, routers.settings.sw_arbiter)),
        first_(routers.ports * static_cast<std::size_t>(routers.settings.input_speedup)) {}

  std::vector<std::uint32_t> match() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> wishes;  // by ends: turn
    const auto vcs = static_cast<std::uint32_t>(routers_.settings.vcs);
    const auto inputs = static_cast<std::uint32_t>(routers_.settings.input_speedup);
    for (std::uint32_t port = 0; port < routers_.ports; ++port) {
      for_each_bit(routers_.in[port].ready, [&](std::uint32_t v) {
        const std::uint32_t input = port * inputs + v % inputs;
        const std::uint32_t turn = (v + vcs - first_[input]) % vcs;
        const std::uint32_t output = routers_.in_vcs[routers_.vc(port, v)].port;
        const auto [wish, fresh] = wishes.try_emplace({input, output}, turn);
        wish->second = std::min(wish->second, turn);
      });
    }
    for (const auto& [ends, turn] : wishes) {
      const std::uint32_t v = (turn + first_[ends.first]) % vcs;
      allocator_.ask(
          {.input = ends.first, .output = ends.second, .tag = routers_.vc(ends.first / inputs, v)});
    }
    Random random(1);
    std::vector<std::uint32_t> granted;
    for (const auto& match : allocator_.match(routers_.settings.sw_allocator, 1, random)) {
      granted.push_back(match.tag);
      first_[match.input] = (routers_.vc_of(match.tag) + inputs) % vcs;
    }
    std::ranges::sort(granted);
    return granted;
  }

 private:
  const Routers& routers_;
  SparseAllocator allocator_;
  std::vector<std::uint32_t> first_;
};

/// Random requests in a network whose routers turn from nodes on and in one that turns from
/// channels on; any number of VCs and inputs of a port.
RC_GTEST_PROP(FlitTurnSwitch, GrantsAsTheGeneralAllocator, ()) {
  const auto graph = parse_network(*rc::gen::element("mesh:3x2", "flattened_butterfly:3,c=2"));
  RouterSettings settings;
  settings.vcs = *rc::gen::inRange(1, 7);
  settings.input_speedup = *rc::gen::inRange(1, 4);
  settings.sw_allocator = *rc::gen::element(Allocator::separable_input_first, Allocator::islip,
                                            Allocator::select, Allocator::separable_output_first);
  Routers routers(*graph, settings, (VcMask{1} << static_cast<unsigned>(settings.vcs)) - 1);
  RC_ASSERT(TurnSwitch::suffices(routers));
  TurnSwitch turns(routers);
  Reference reference(routers);
  for (int round = 0; round < 12; ++round) {
    for (std::uint32_t port = 0; port < routers.ports; ++port) {
      InPort& in = routers.in[port];
      in.ready = *rc::gen::inRange<VcMask>(0, VcMask{1} << static_cast<unsigned>(settings.vcs));
      in.ready != 0 ? routers.ready.add(port) : routers.ready.remove(port);
      std::vector<std::uint32_t> outputs;
      for (std::uint32_t out = 0; out < routers.ports; ++out) {
        if (routers.out[out].router == in.router) {
          outputs.push_back(out);
        }
      }
      for_each_bit(in.ready, [&](std::uint32_t v) {
        routers.in_vcs[routers.vc(port, v)].port = *rc::gen::elementOf(outputs);
      });
    }
    std::vector<std::uint32_t> granted = turns.match();
    std::ranges::sort(granted);
    RC_ASSERT(granted == reference.match());
  }
}

}  // namespace
}  // namespace orrery::flit
