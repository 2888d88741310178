// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/vc_allocation.h"

#include <bit>
#include <utility>

namespace orrery::flit {

VcAllocation::VcAllocation(Routers& routers, HeadRoutes& routes)
    : routers_(routers),
      routes_(routes),
      resting_(routers.ports),
      rests_(routes.routing().traits().algorithm !=
                 Algorithm::adaptive &&  // which may find room elsewhere
             (routers.settings.speculation == Speculation::none || routers.settings.spec_check_vc)),
      escapes_(routes.routing().traits().has_escapes()),
      by_turns_(!escapes_ && routers.settings.vc_allocator <= Allocator::select &&
                routers.goes_by_turns(routers.settings.vc_arbiter) &&
                !routers.settings.vc_prioritize_empty) {
  heads_.resize(routers.in_vcs.size());
  if (!by_turns_) {
    allocator_ = routers.make_vc_allocator();
  }
}

void VcAllocation::take(const Win& win) {
  InVc& in = routers_.in_vcs[win.vc];
  OutVc& out = routers_.out_vcs[win.out];
  in.out = win.out;
  in.port = routers_.port_of(win.out);
  in.pointer = win.out + 1;
  out.owner = win.vc;
  out.pointer = win.vc + 1;
  routers_.out[in.port].free &= ~routers_.bit_of(win.out);
  heads_.remove(win.vc);
}

void VcAllocation::free(std::uint32_t out_vc) {
  const std::uint32_t port = routers_.port_of(out_vc);
  routers_.out[port].free |= routers_.bit_of(out_vc);
  wake(port);
}

void VcAllocation::wake(std::uint32_t port) {
  for (const std::uint32_t head : resting_[port]) {
    heads_.add(head);
  }
  resting_[port].clear();
}

const std::vector<VcAllocation::Win>& VcAllocation::match() {
  asks_.clear();
  wins_.clear();
  heads_.for_each([&](std::uint32_t vc) {
    const Candidate output = routes_.open_output(vc);
    if (output.vcs != 0) {
      asks_.push_back({vc, output.port, output.vcs});
      ++routers_.out[output.port].asking;
    } else if (rests_) {
      heads_.remove(vc);
      resting_[output.port].push_back(vc);
    }
    if (escapes_) {
      if (const Candidate escape = routes_.open_escape(vc); escape.vcs != 0) {
        asks_.push_back({vc, escape.port, escape.vcs, true});
      }
    }
  });
  by_turns_ ? match_by_turns() : match_in_general();
  for (const Ask& ask : asks_) {
    routers_.out[ask.port].asking = 0;
  }
  return wins_;
}

std::uint32_t VcAllocation::first_in_turn(const Ask& ask) const {
  const std::uint32_t pointer = routers_.in_vcs[ask.vc].pointer;
  const std::uint32_t turn = routers_.vc_of(pointer);
  const bool passes = routers_.port_of(pointer) == ask.port && (ask.vcs >> turn) != 0;
  const VcMask open = passes ? (ask.vcs >> turn) << turn : ask.vcs;
  return routers_.vc(ask.port, static_cast<std::uint32_t>(std::countr_zero(open)));
}

/// The head first in turn by the pointer of an output VC is the best of those that want it.
void VcAllocation::contend(std::uint32_t vc, std::uint32_t out) {
  OutVc& of = routers_.out_vcs[out];
  if (of.best == kNone) {
    contended_.push_back(out);
  }
  if (of.best == kNone || vc - of.pointer < of.best - of.pointer) {
    of.best = vc;
  }
}

/// A head that is alone at its port wins the VC that is first in turn by its pointer, whichever
/// side chooses first.
void VcAllocation::match_by_turns() {
  contended_.clear();
  for (const Ask& ask : asks_) {
    if (routers_.out[ask.port].asking == 1) {
      wins_.push_back({ask.vc, first_in_turn(ask)});
    } else if (routers_.settings.vc_allocator == Allocator::separable_input_first) {
      contend(ask.vc, first_in_turn(ask));
    } else {
      for_each_bit(ask.vcs, [&](std::uint32_t v) { contend(ask.vc, routers_.vc(ask.port, v)); });
    }
  }
  for (const std::uint32_t out : contended_) {
    InVc& in = routers_.in_vcs[routers_.out_vcs[out].best];
    if (in.best == kNone || out - in.pointer < in.best - in.pointer) {
      in.best = out;
    }
  }
  for (const std::uint32_t out : contended_) {
    const std::uint32_t vc = std::exchange(routers_.out_vcs[out].best, kNone);
    if (routers_.in_vcs[vc].best == out) {
      routers_.in_vcs[vc].best = kNone;
      wins_.push_back({vc, out});
    }
  }
}

void VcAllocation::match_in_general() {
  const RouterSettings& with = routers_.settings;
  for (const Ask& ask : asks_) {
    for_each_bit(ask.vcs, [&](std::uint32_t v) {
      const std::uint32_t out = routers_.vc(ask.port, v);
      const bool later = with.vc_prioritize_empty && routers_.out_vcs[out].credits < with.buffer;
      allocator_.ask({ask.vc, out, (later ? -2 : 0) - (ask.is_escape ? 1 : 0),
                      routers_.priority_of(routers_.in_vcs[ask.vc])});
    });
  }
  for (const SparseAllocator::Request& won :
       allocator_.match(with.vc_allocator, with.alloc_iters, routes_.random())) {
    wins_.push_back({won.input, won.output});
  }
}

}  // namespace orrery::flit
