// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/general_switch.h"

#include <algorithm>
#include <utility>

#include "machine/network/flit/turn_switch.h"

namespace orrery::flit {
namespace {

/// Requests of heads that speculate come behind all priorities (of packets, which are below it).
constexpr std::int64_t kBehindAll = std::int64_t{1} << 31U;

std::uint64_t ends_of(const SparseAllocator::Request& wish) {
  return std::uint64_t{wish.input} << 32U | wish.output;
}

}  // namespace

GeneralSwitch::GeneralSwitch(const Routers& routers) : routers_(routers) {
  const RouterSettings& with = routers.settings;
  if (TurnSwitch::suffices(routers)) {
    return;
  }
  inputs_.resize(std::size_t{routers.ports} * static_cast<std::size_t>(with.input_speedup));
  for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].vc = i % static_cast<std::uint32_t>(with.input_speedup);
  }
  kept_outputs_.resize(std::size_t{routers.ports} * static_cast<std::size_t>(with.output_speedup));
  allocator_ = routers.make_allocator(with.input_speedup, with.output_speedup, with.sw_arbiter);
  if (with.speculation == Speculation::separate) {
    spec_allocator_ = allocator_;
  }
}

std::uint32_t GeneralSwitch::input_of(std::uint32_t vc) const {
  const auto inputs = static_cast<std::uint32_t>(routers_.settings.input_speedup);
  return routers_.port_of(vc) * inputs + routers_.vc_of(vc) % inputs;
}

std::uint32_t GeneralSwitch::output_of(std::uint32_t vc) const {
  return routers_.in_vcs[vc].port * static_cast<std::uint32_t>(routers_.settings.output_speedup) +
         routers_.in[routers_.port_of(vc)].lane;
}

/// Returns whether a head, which has no VC yet, asks for the switch.
bool GeneralSwitch::may_speculate(std::uint32_t vc) const {
  const InVc& in = routers_.in_vcs[vc];
  if (!routers_.settings.spec_check_vc) {
    return !routers_.settings.spec_check_credit;
  }
  bool may = false;
  for_each_bit(routers_.out[in.port].free & in.vcs, [&](std::uint32_t v) {
    may |= !routers_.settings.spec_check_credit ||
           routers_.out_vcs[routers_.vc(in.port, v)].credits > 0;
  });
  return may;
}

/// The first in turn of several VCs between an input and an output asks alone.
void GeneralSwitch::add_wish(std::uint32_t vc, std::vector<Request>& wishes) const {
  const std::int64_t priority = routers_.priority_of(routers_.in_vcs[vc]);
  const Request wish{input_of(vc), output_of(vc), priority, priority, vc};
  if (inputs_[wish.input].kept || kept_outputs_[wish.output]) {
    return;
  }
  if (wishes.empty() || ends_of(wishes.back()) < ends_of(wish)) {  // VCs come in order
    wishes.push_back(wish);
    return;
  }
  const auto vcs = static_cast<std::uint32_t>(routers_.settings.vcs);
  const auto turn = [&](const Request& of) {
    return std::pair(-of.at_input, (routers_.vc_of(of.tag) + vcs - inputs_[of.input].vc) % vcs);
  };
  const auto place = std::ranges::lower_bound(wishes, ends_of(wish), {}, ends_of);
  if (ends_of(*place) != ends_of(wish)) {
    wishes.insert(place, wish);
  } else if (turn(wish) < turn(*place)) {
    *place = wish;
  }
}

void GeneralSwitch::gather_wishes(const BitSet& heads) {
  wishes_.clear();
  spec_wishes_.clear();
  routers_.ready.for_each([&](std::uint32_t port) {
    for_each_bit(routers_.in[port].ready,
                 [&](std::uint32_t v) { add_wish(routers_.vc(port, v), wishes_); });
  });
  if (routers_.settings.speculation != Speculation::none) {
    heads.for_each([&](std::uint32_t vc) {
      if (may_speculate(vc)) {
        add_wish(vc, spec_wishes_);
      }
    });
  }
  if (routers_.settings.speculation == Speculation::priority) {
    const auto before = static_cast<std::ptrdiff_t>(wishes_.size());
    for (Request& wish : spec_wishes_) {
      wish.at_input = wish.at_output -= kBehindAll;
    }
    wishes_.insert(wishes_.end(), spec_wishes_.begin(), spec_wishes_.end());
    spec_wishes_.clear();
    std::inplace_merge(wishes_.begin(), wishes_.begin() + before, wishes_.end(),
                       [](const Request& a, const Request& b) { return ends_of(a) < ends_of(b); });
    const auto is_same = [](const Request& a, const Request& b) {
      return ends_of(a) == ends_of(b);
    };
    wishes_.erase(std::unique(wishes_.begin(), wishes_.end(), is_same), wishes_.end());
  }
}

/// A guess holds if its head wins a VC with a credit in this step.
void GeneralSwitch::take_match(const Request& match, const std::vector<VcAllocation::Win>& wins) {
  const std::uint32_t vc = match.tag;
  const auto inputs = static_cast<std::uint32_t>(routers_.settings.input_speedup);
  inputs_[match.input].vc =
      (routers_.vc_of(vc) + inputs) % static_cast<std::uint32_t>(routers_.settings.vcs);
  if (routers_.in_vcs[vc].out != kNone) {
    granted_.push_back(vc);
    return;
  }
  const auto won =
      std::find_if(wins.begin(), wins.end(), [&](const auto& win) { return win.vc == vc; });
  if (won != wins.end() && routers_.out_vcs[won->out].credits > 0) {
    guessed_.push_back(vc);
  }
}

/// Matches of the speculative allocation hold where the other leaves input and output.
std::vector<std::uint32_t>& GeneralSwitch::match(const BitSet& heads,
                                                 const std::vector<VcAllocation::Win>& wins,
                                                 Random& random) {
  const RouterSettings& with = routers_.settings;
  gather_wishes(heads);
  granted_.clear();
  guessed_.clear();
  for (const Request& wish : wishes_) {
    allocator_.ask(wish);
  }
  for (const Request& wish : spec_wishes_) {
    spec_allocator_.ask(wish);
  }
  const auto& matches = allocator_.match(with.sw_allocator, with.alloc_iters, random);
  for (const Request& match : matches) {
    take_match(match, wins);
  }
  const auto is_taken = [&](const Request& match) {
    const auto same_input = [&](const Request& other) { return other.input == match.input; };
    const auto same_output = [&](const Request& other) { return other.output == match.output; };
    const auto& others = with.spec_mask_by_requests ? wishes_ : matches;
    return std::any_of(matches.begin(), matches.end(), same_input) ||
           std::any_of(others.begin(), others.end(), same_output);
  };
  for (const Request& match :
       spec_allocator_.match(with.spec_allocator, with.alloc_iters, random)) {
    if (!is_taken(match)) {
      take_match(match, wins);
    }
  }
  granted_.insert(granted_.end(), guessed_.begin(), guessed_.end());
  return granted_;
}

}  // namespace orrery::flit
