// SPDX-License-Identifier: Apache-2.0
/// The two allocations of a cycle.
#include <algorithm>
#include <bit>
#include <utility>

#include "machine/network/flit/engine.h"

namespace orrery::flit {

/// Separable input first, one iteration: each input port chooses the output that is first in turn
/// (of several VCs for it the one first in turn), then each output one of the inputs. Pointers are
/// numbers of ports of the whole network; differences that wrap make those behind a pointer the
/// last in turn.
void Engine::allocate_switch() {
  touched_.clear();
  ready_.for_each([&](std::uint32_t port) { request_switch(port, in_[port].ready); });
  if (orders_grants_) {
    order_grants();
  }
  for (const std::uint32_t out_port : touched_) {
    OutPort& out = out_[out_port];
    const std::uint32_t vc = out.best;
    out.best = kNone;
    grant(vc, out_port);
  }
}

void Engine::order_grants() {
  const auto turn = [&](std::uint32_t out_port) {
    const std::uint32_t vc = out_[out_port].best;
    return std::pair(in_[port_of(vc)].router, in_vcs_[vc].turn);
  };
  std::sort(touched_.begin(), touched_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return turn(a) < turn(b); });
}

void Engine::request_switch(std::uint32_t port, VcMask ready) {
  const InPort& in = in_[port];
  std::uint64_t nearest = UINT64_MAX;
  std::uint32_t out_port = 0;
  std::uint32_t chosen = kNone;
  for (; ready != 0; ready &= ready - 1) {
    const auto vc = static_cast<std::uint32_t>(std::countr_zero(ready));
    const std::uint32_t wanted = in_vcs_[in_vc(port, vc)].port;
    const std::uint64_t turn = (std::uint64_t{wanted - in.pointer} << 32U) | (vc - in.vc);
    if (chosen == kNone || turn < nearest) {
      nearest = turn;
      out_port = wanted;
      chosen = vc;
    }
  }
  OutPort& out = out_[out_port];
  const std::uint32_t vc = in_vc(port, chosen);
  if (out.best == kNone) {
    touched_.push_back(out_port);
  }
  if (out.best == kNone || vc - out.pointer < out.best - out.pointer) {
    out.best = vc;
  }
}

/// The turn after a VC's is that of the next port, whichever the VC was.
void Engine::grant(std::uint32_t vc, std::uint32_t out_port) {
  InPort& in = in_[port_of(vc)];
  out_[out_port].pointer = in_vc(port_of(vc) + 1, 0);
  in.pointer = out_port + 1;
  in.vc = vc_of(vc) + 1;
  send(vc);
}

/// Returns those of the candidate's VCs that a packet may have now.
VcMask Engine::open_vcs(const Candidate& candidate, std::uint32_t flits) const {
  VcMask open = out_[candidate.port].free & candidate.vcs;
  if (needs_room_) {
    const auto room =
        static_cast<std::int32_t>(settings_.flow_control == FlowControl::cut_through ? flits : 1);
    for (VcMask rest = open; rest != 0; rest &= rest - 1) {
      const auto vc = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (out_vcs_[in_vc(candidate.port, vc)].credits < room) {
        open &= ~(VcMask{1} << vc);
      }
    }
  }
  return open;
}

/// The output that a head asks for, with its open VCs; no VCs if it has to wait.
Candidate Engine::open_output(std::uint32_t vc) {
  const InVc& in = in_vcs_[vc];
  Packet& packet = packets_[in.front];
  if (!routing_.is_adaptive()) {
    return {.port = in.port, .vcs = open_vcs({.port = in.port, .vcs = in.vcs}, packet.flits)};
  }
  Candidates& outputs = candidates_;
  next_hop(packet, in_[port_of(vc)].router);
  Candidate best{outputs.list[0].port, 0};
  std::int32_t most_room = -1;
  for (int i = 0; i < outputs.count; ++i) {
    if (i == outputs.preferred && best.vcs != 0) {
      break;
    }
    const Candidate& output = outputs.list[static_cast<std::size_t>(i)];
    const VcMask open = open_vcs(output, packet.flits);
    std::int32_t room = 0;
    for (VcMask rest = open; rest != 0; rest &= rest - 1) {
      room +=
          out_vcs_[in_vc(output.port, static_cast<std::uint32_t>(std::countr_zero(rest)))].credits;
    }
    if (open != 0 && room > most_room) {
      most_room = room;
      best = {output.port, open};
    }
  }
  return best;
}

/// Asks, of the open VCs, for the one that is first in turn by the head's pointer; of the heads
/// that want one VC, the one first in turn by its pointer.
void Engine::ask_for_vc(std::uint32_t vc, const Candidate& output) {
  const std::uint32_t pointer = in_vcs_[vc].pointer;
  VcMask open = output.vcs;
  if (port_of(pointer) == output.port && (open >> vc_of(pointer)) != 0) {
    open = (open >> vc_of(pointer)) << vc_of(pointer);
  }
  const std::uint32_t wanted =
      in_vc(output.port, static_cast<std::uint32_t>(std::countr_zero(open)));
  OutVc& out = out_vcs_[wanted];
  if (out.best == kNone) {
    touched_.push_back(wanted);
  }
  if (out.best == kNone || vc - out.pointer < out.best - out.pointer) {
    out.best = vc;
  }
}

/// For an allocator that sees all requests.
void Engine::ask_for_vcs(std::uint32_t vc, const Candidate& output) {
  for (VcMask open = output.vcs; open != 0; open &= open - 1) {
    const std::uint32_t out =
        in_vc(output.port, static_cast<std::uint32_t>(std::countr_zero(open)));
    const bool later = settings_.vc_prioritize_empty && out_vcs_[out].credits < settings_.buffer;
    slow_vc_.ask({vc, out, later ? -1 : 0, priority_of(in_vcs_[vc])});
  }
}

/// Finds who wins which VC (wins_). A head without an open VC rests until one is freed at its port.
void Engine::match_vcs() {
  touched_.clear();
  wins_.clear();
  heads_.for_each([&](std::uint32_t vc) {
    const Candidate output = open_output(vc);
    if (output.vcs == 0) {
      if (parks_) {
        heads_.remove(vc);
        parked_[output.port].push_back(vc);
      }
    } else if (plain_vc_) {
      ask_for_vc(vc, output);
    } else {
      ask_for_vcs(vc, output);
    }
  });
  for (const std::uint32_t out : touched_) {
    wins_.push_back({out_vcs_[out].best, out});
    out_vcs_[out].best = kNone;
  }
  if (!plain_vc_ && slow_vc_.has_requests()) {
    wins_ = slow_vc_.match(settings_.vc_allocator, settings_.alloc_iters, random_);
  }
}

}  // namespace orrery::flit
