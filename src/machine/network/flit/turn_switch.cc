// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/turn_switch.h"

#include <bit>
#include <utility>

namespace orrery::flit {

TurnSwitch::TurnSwitch(const Routers& routers)
    : routers_(routers),
      speedup_(static_cast<std::uint32_t>(routers.settings.input_speedup)),
      input_first_(routers.settings.sw_allocator == Allocator::separable_input_first) {
  if (!suffices(routers)) {
    return;
  }
  lanes_.resize(speedup_);
  for (std::uint32_t v = 0; v < static_cast<std::uint32_t>(routers.settings.vcs); ++v) {
    lanes_[v % speedup_] |= VcMask{1} << v;
  }
  inputs_.resize(std::size_t{routers.ports} * speedup_);
  outputs_.resize(routers.ports);
  for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].pointer = routers.first_outputs[routers.in[i / speedup_].router];
  }
}

/// Returns whether the order of matching does not matter: where heads need room, or VCs are drawn,
/// what is matched first would matter to the other.
bool TurnSwitch::suffices(const Routers& routers) {
  const RouterSettings& with = routers.settings;
  const bool plain =
      with.sw_allocator == Allocator::separable_input_first && with.input_speedup == 1;
  return with.sw_allocator <= Allocator::select && routers.goes_by_turns(with.sw_arbiter) &&
         with.output_speedup == 1 && with.speculation == Speculation::none &&
         !with.hold_switch_for_packet && !with.vc_busy_when_full &&
         with.vc_allocator != Allocator::pim && (plain || !routers.needs_room);
}

void TurnSwitch::ask(std::uint32_t vc, std::uint32_t out_port) {
  Output& out = outputs_[out_port];
  if (out.best == kNobody) {
    touched_.push_back(out_port);
    out.best = vc;
    return;
  }
  const std::uint32_t input = input_of(vc);
  const std::uint32_t other = input_of(out.best);
  const std::uint32_t first = inputs_[input].vc;
  if (input == other ? routers_.vc_of(vc) - first < routers_.vc_of(out.best) - first
                     : input - out.pointer < other - out.pointer) {
    out.best = vc;
  }
}

void TurnSwitch::choose_at_inputs(std::uint32_t port) {
  const VcMask ready = routers_.in[port].ready;
  if ((ready & (ready - 1)) == 0) {  // one VC, as is usual
    const std::uint32_t vc = routers_.vc(port, static_cast<std::uint32_t>(std::countr_zero(ready)));
    ask(vc, routers_.in_vcs[vc].port);
    return;
  }
  for (std::uint32_t lane = 0; lane < speedup_; ++lane) {
    const Input& in = inputs_[port * speedup_ + lane];
    std::uint64_t nearest = UINT64_MAX;
    std::uint32_t out_port = 0;
    std::uint32_t chosen = kNobody;
    for_each_bit(ready & lanes_[lane], [&](std::uint32_t v) {
      const std::uint32_t wanted = routers_.in_vcs[routers_.vc(port, v)].port;
      const std::uint64_t turn = (std::uint64_t{wanted - in.pointer} << 32U) | (v - in.vc);
      if (chosen == kNobody || turn < nearest) {
        nearest = turn;
        out_port = wanted;
        chosen = routers_.vc(port, v);
      }
    });
    if (chosen != kNobody) {
      ask(chosen, out_port);
    }
  }
}

/// An input takes the output first in turn of those that chose it; the others choose nobody.
void TurnSwitch::choose_by_inputs() {
  for (const std::uint32_t out_port : touched_) {
    Input& in = inputs_[input_of(outputs_[out_port].best)];
    if (in.best == kNobody || out_port - in.pointer < in.best - in.pointer) {
      in.best = out_port;
    }
  }
  std::erase_if(touched_, [&](std::uint32_t out_port) {
    Output& out = outputs_[out_port];
    const bool loses = inputs_[input_of(out.best)].best != out_port;
    out.best = loses ? kNobody : out.best;
    return loses;
  });
}

void TurnSwitch::grant(std::uint32_t out_port) {
  Output& out = outputs_[out_port];
  const std::uint32_t vc = std::exchange(out.best, kNobody);
  const std::uint32_t input = input_of(vc);
  const std::uint32_t next = routers_.vc_of(vc) + speedup_;
  const auto vcs = static_cast<std::uint32_t>(routers_.settings.vcs);
  out.pointer = input + 1;
  inputs_[input] = {.pointer = out_port + 1, .vc = next < vcs ? next : next % vcs};
  granted_.push_back(vc);
}

std::vector<std::uint32_t>& TurnSwitch::match() {
  granted_.clear();
  touched_.clear();
  routers_.ready.for_each([&](std::uint32_t port) {
    if (input_first_) {
      choose_at_inputs(port);
      return;
    }
    for_each_bit(routers_.in[port].ready, [&](std::uint32_t v) {
      const std::uint32_t vc = routers_.vc(port, v);
      ask(vc, routers_.in_vcs[vc].port);
    });
  });
  if (!input_first_) {
    choose_by_inputs();
  }
  for (const std::uint32_t out_port : touched_) {
    grant(out_port);
  }
  return granted_;
}

}  // namespace orrery::flit
