// SPDX-License-Identifier: Apache-2.0
/// The two allocations of a cycle where the switch is not plain: other allocators, speed-ups,
/// speculation, priorities, held switches.
#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "machine/network/flit/engine.h"

namespace orrery::flit {
namespace {

/// Requests of heads that speculate come behind all priorities (of packets, which are below it).
constexpr std::int64_t kBehindAll = std::int64_t{1} << 31U;

}  // namespace

std::uint32_t Engine::switch_input(std::uint32_t vc) const {
  const auto inputs = static_cast<std::uint32_t>(settings_.input_speedup);
  return port_of(vc) * inputs + vc_of(vc) % inputs;
}

std::uint32_t Engine::switch_output(std::uint32_t vc) const {
  const auto outputs = static_cast<std::uint32_t>(settings_.output_speedup);
  return in_vcs_[vc].port * outputs + in_[port_of(vc)].place % outputs;
}

std::int64_t Engine::priority_of(const InVc& in) const {
  return settings_.priority == Priority::queue_length ? std::int64_t{in.count} : in.priority;
}

/// Whether a head, which has no VC yet, asks for the switch.
bool Engine::may_speculate(std::uint32_t vc) const {
  const InVc& in = in_vcs_[vc];
  if (!settings_.spec_check_vc) {
    return !settings_.spec_check_credit;
  }
  VcMask free = out_[in.port].free & in.vcs;
  if (!settings_.spec_check_credit) {
    return free != 0;
  }
  while (free != 0 &&
         out_vcs_[in_vc(in.port, static_cast<std::uint32_t>(std::countr_zero(free)))].credits ==
             0) {
    free &= free - 1;
  }
  return free != 0;
}

void Engine::add_wish(std::uint32_t vc, std::vector<Wish>& wishes, std::int64_t less) {
  const std::uint32_t input = switch_input(vc);
  const std::uint32_t output = switch_output(vc);
  if (switch_inputs_[input].held != kNone || held_outputs_[output]) {
    return;
  }
  const auto vcs = static_cast<std::uint32_t>(settings_.vcs);
  wishes.push_back({input, output, priority_of(in_vcs_[vc]) - less,
                    (vc_of(vc) + vcs - switch_inputs_[input].vc) % vcs, vc});
}

void Engine::gather_wishes() {
  wishes_.clear();
  spec_wishes_.clear();
  ready_.for_each([&](std::uint32_t port) {
    for (VcMask ready = in_[port].ready; ready != 0; ready &= ready - 1) {
      add_wish(in_vc(port, static_cast<std::uint32_t>(std::countr_zero(ready))), wishes_, 0);
    }
  });
  if (settings_.speculation == Speculation::none) {
    return;
  }
  heads_.for_each([&](std::uint32_t vc) {
    if (may_speculate(vc)) {
      const bool separate = settings_.speculation == Speculation::separate;
      add_wish(vc, separate ? spec_wishes_ : wishes_, separate ? 0 : kBehindAll);
    }
  });
}

/// Asks for the switch: of several VCs between an input and an output only the first in turn does.
void Engine::ask(std::vector<Wish>& wishes, SparseAllocator& allocator) {
  std::sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) {
    return std::tuple(a.input, a.output, b.priority, a.distance) <
           std::tuple(b.input, b.output, a.priority, b.distance);
  });
  wishes.erase(std::unique(wishes.begin(), wishes.end(),
                           [](const Wish& a, const Wish& b) {
                             return std::pair(a.input, a.output) == std::pair(b.input, b.output);
                           }),
               wishes.end());
  for (const Wish& wish : wishes) {
    allocator.ask({wish.input, wish.output, wish.priority, wish.priority});
  }
}

void Engine::take_match(const SparseAllocator::Request& match, const std::vector<Wish>& wishes) {
  const auto wish = std::lower_bound(
      wishes.begin(), wishes.end(), match, [](const Wish& a, const SparseAllocator::Request& b) {
        return std::pair(a.input, a.output) < std::pair(b.input, b.output);
      });
  const auto inputs = static_cast<std::uint32_t>(settings_.input_speedup);
  switch_inputs_[match.input].vc =
      (vc_of(wish->vc) + inputs) % static_cast<std::uint32_t>(settings_.vcs);
  (in_vcs_[wish->vc].out == kNone ? guessed_ : granted_).push_back(wish->vc);
}

/// Matches of the speculative allocation hold where the other leaves input and output.
void Engine::take_matches() {
  granted_.clear();
  guessed_.clear();
  const auto& matches = slow_switch_.match(settings_.sw_allocator, settings_.alloc_iters, random_);
  for (const SparseAllocator::Request& match : matches) {
    take_match(match, wishes_);
  }
  if (spec_wishes_.empty()) {
    return;
  }
  const auto taken = [&](const SparseAllocator::Request& match) {
    return std::any_of(matches.begin(), matches.end(),
                       [&](const SparseAllocator::Request& other) {
                         return other.input == match.input ||
                                (!settings_.spec_mask_by_requests && other.output == match.output);
                       }) ||
           (settings_.spec_mask_by_requests &&
            std::any_of(wishes_.begin(), wishes_.end(),
                        [&](const Wish& other) { return other.output == match.output; }));
  };
  for (const SparseAllocator::Request& match :
       spec_switch_.match(settings_.spec_allocator, settings_.alloc_iters, random_)) {
    if (!taken(match)) {
      take_match(match, spec_wishes_);
    }
  }
}

/// Drops wrong guesses: of those who guessed, who has won a VC with a credit in this step may pass.
void Engine::drop_wrong_guesses() {
  for (const std::uint32_t vc : guessed_) {
    const auto won =
        std::find_if(wins_.begin(), wins_.end(), [&](const auto& win) { return win.input == vc; });
    if (won != wins_.end() && out_vcs_[won->output].credits > 0) {
      granted_.push_back(vc);
    }
  }
}

/// Runs both allocations on the state before; then VCs are taken, then flits leave.
void Engine::allocate_in_general() {
  match_vcs();
  gather_wishes();
  ask(wishes_, slow_switch_);
  ask(spec_wishes_, spec_switch_);
  take_matches();
  drop_wrong_guesses();
  for (const SparseAllocator::Request& won : wins_) {
    win(won.input, won.output);
  }
  pass_held();
  if (orders_grants_) {
    std::sort(granted_.begin(), granted_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(in_[port_of(a)].router, in_vcs_[a].turn) <
             std::pair(in_[port_of(b)].router, in_vcs_[b].turn);
    });
  }
  for (const std::uint32_t vc : granted_) {
    const InVc& sender = in_vcs_[vc];
    const std::uint32_t output = switch_output(vc);
    const bool goes_on = settings_.hold_switch_for_packet && sender.left > 1 && sender.count > 1;
    send(vc);
    if (goes_on) {
      switch_inputs_[switch_input(vc)].held = vc;
      held_outputs_[output] = true;
      holding_.push_back(switch_input(vc));
    }
  }
}

/// The next flits of packets that keep the switch; who has none, or no credit, gives it back for
/// the step after.
void Engine::pass_held() {
  std::erase_if(holding_, [&](std::uint32_t input) {
    const std::uint32_t vc = switch_inputs_[input].held;
    const InVc& sender = in_vcs_[vc];
    const std::uint32_t output = switch_output(vc);
    const bool can = ((in_[port_of(vc)].ready >> vc_of(vc)) & 1U) != 0;
    const bool goes_on = can && sender.left > 1 && sender.count > 1;
    if (can) {
      send(vc);
    }
    if (!goes_on) {
      in_vcs_[vc].turn = {-step_ - 1, 2 * step_ + 2, grants_++};  // asks again, before others
      switch_inputs_[input].held = kNone;
      held_outputs_[output] = false;
    }
    return !goes_on;
  });
}

}  // namespace orrery::flit
