// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace orrery::astra {
namespace {

constexpr std::uint32_t kBitsPerWord = 64;

bool reduces(PhaseType type) {
  return type == PhaseType::all_reduce || type == PhaseType::reduce_scatter ||
         type == PhaseType::reduce;
}

Bytes divided(Bytes size, std::int64_t parts) {
  return Bytes(size.value() / parts);
}

/// floor(log2(count))
std::uint32_t doublings(std::int64_t count) {
  return static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(count))) - 1;
}
/// Returns whether at each of the distances count/2, count/4 ... 1 (rounded down), as many as the
/// all-gather of halving-doubling has, blocks of ranks pair up.
bool has_mutual_partners(std::int64_t count) {
  std::int64_t distance = count;
  for (std::uint32_t left = doublings(count); left > 0; --left) {
    distance /= 2;
    if (count % (2 * distance) != 0) {
      return false;
    }
  }
  return true;
}
bool is_power_of_two(std::int64_t count) {
  return std::has_single_bit(static_cast<std::uint64_t>(count));
}
std::uint32_t steps_to_cover(std::int64_t count) {
  return static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(count - 1)));
}

/// One phase under construction.
class Builder {
 public:
  Builder(const PhaseRequest& request, const PhaseRules& rules)
      : rules_(rules), c_(request.size), p_(request.axis.size) {
    phase_.type = request.type;
    phase_.axis = request.axis;
    phase_.share = request.share;
    phase_.group_ring = request.group_ring;
    phase_.delay = rules.ends.delay;
    phase_.in = phase_.out = c_;
    if (request.type == PhaseType::reduce_scatter) {
      phase_.out = divided(c_, p_);
    } else if (request.type == PhaseType::all_gather) {
      phase_.out = c_ * p_;
    }
  }

  Phase build(const PhaseRequest& request) {
    switch (request.type) {
      case PhaseType::barrier:
        cyclic_barrier();
        break;
      case PhaseType::reduce:
      case PhaseType::broadcast:
      case PhaseType::gather:
      case PhaseType::scatter:
        rooted(request);
        break;
      default:
        by_algorithm(request);
    }
    if (phase_.pattern == Pattern::chain) {
      phase_.words = 1;
    } else if (phase_.sequence()) {
      phase_.words = (phase_.messages + kBitsPerWord - 1) / kBitsPerWord;
    }
    return std::move(phase_);
  }

 private:
  std::uint32_t others() const { return static_cast<std::uint32_t>(p_ - 1); }
  /// Bytes of a message of an algorithm that moves one share at a time.
  Bytes share() const { return phase_.type == PhaseType::all_gather ? c_ : divided(c_, p_); }
  bool power_of_two() const { return is_power_of_two(p_); }

  Step step(Bytes bytes, std::int64_t distance) const {
    Step made{bytes, Time(0), Time(0), distance};
    if (phase_.axis.uniform) {
      const int d = phase_.axis.queue;
      const std::int64_t hops = rules_.wires.hops(d, 0, distance % p_);
      made.transfer = rules_.wires.along(d, hops, bytes);
      made.ready = rules_.wires.along(d, hops, kReadyMessage);
    }
    return made;
  }
  Time reduction(Bytes bytes) const { return reduction_time(bytes, rules_.ends.memory); }

  void by_algorithm(const PhaseRequest& request) {
    switch (request.implementation.algorithm) {
      case Algorithm::ring:
      case Algorithm::one_ring:
        ring();
        break;
      case Algorithm::direct:
      case Algorithm::one_direct:
        direct(request.implementation.window);
        break;
      case Algorithm::halving_doubling:
      case Algorithm::one_halving_doubling:
        if (phase_.type == PhaseType::all_to_all) {
          direct(0);  // there is nothing to halve
        } else {
          rules_.quirks[Quirk::halving_reduction] || power_of_two() ? halving_doubling() : bruck();
        }
        break;
      case Algorithm::double_binary_tree:
        binary_tree(request);
        break;
    }
  }

  void ring() {
    phase_.pattern = Pattern::chain;
    phase_.steps = {step(share(), 1)};
    switch (phase_.type) {
      case PhaseType::all_reduce:
        phase_.messages = 2 * others();
        break;
      case PhaseType::all_to_all:
        phase_.messages = static_cast<std::uint32_t>(p_ * (p_ - 1) / 2);
        break;
      default:
        phase_.messages = others();
    }
    reduce_first(others());
    phase_.up_in_turn = others();
    phase_.after_last = share();
  }

  void direct(std::int64_t window) {
    phase_.pattern = Pattern::direct;
    for (std::int64_t distance = 1; distance < p_; ++distance) {
      phase_.steps.push_back(step(share(), distance));
    }
    phase_.window = window == 0 ? others() : static_cast<std::uint32_t>(std::min(window, p_ - 1));
    phase_.messages = others();
    if (phase_.type == PhaseType::all_reduce) {
      phase_.messages *= 2;
      phase_.barrier = others();
      phase_.barrier_waits_for_processing = !rules_.quirks[Quirk::window_reduction];
    }
    reduce_first(others());
    phase_.up_in_turn = phase_.window * (phase_.group_ring ? others() : 1);
    phase_.after_last = share();
    if (rules_.quirks[Quirk::window_reduction] && reduces(phase_.type)) {
      const std::uint32_t turn = phase_.up_in_turn + phase_.window;
      phase_.reducing = phase_.messages;
      phase_.period = phase_.type == PhaseType::all_reduce ? 2 * turn : turn;
    }
  }

  /// The first `count` receptions reduce one share each.
  void reduce_first(std::uint32_t count) {
    if (reduces(phase_.type)) {
      phase_.reducing = count;
      phase_.reductions = {reduction(share())};
    }
  }

  void halving_doubling() {
    phase_.pattern = Pattern::halving;
    const std::uint32_t k = doublings(p_);
    const auto power = [](std::uint32_t exponent) { return std::int64_t{1} << exponent; };
    if (phase_.type != PhaseType::all_gather) {
      for (std::uint32_t i = 1; i <= k; ++i) {
        phase_.steps.push_back(step(divided(c_, power(i)), power(i - 1)));
      }
      phase_.after_last = divided(c_, power(k + 1));
      halving_reductions(k);
    }
    if (phase_.type != PhaseType::reduce_scatter) {
      const bool alone = phase_.type == PhaseType::all_gather;
      const bool loses = rules_.quirks[Quirk::halving_reduction];
      for (std::uint32_t i = 0; i < k; ++i) {
        const Bytes bytes = alone   ? c_ * power(i)
                            : loses ? divided(c_, power(k + 1)) * power(i + 1)
                                    : divided(c_, power(k - i));
        phase_.steps.push_back(step(bytes, p_ >> (i + 1)));
      }
      phase_.after_last = phase_.steps.back().bytes * 2;
    }
    phase_.messages = static_cast<std::uint32_t>(phase_.steps.size());
    phase_.up_in_turn = k - 1;
  }

  void halving_reductions(std::uint32_t k) {
    const std::uint32_t ahead = rules_.quirks[Quirk::halving_reduction] ? 1 : 0;
    for (std::uint32_t i = 0; i + ahead < k; ++i) {
      phase_.reductions.push_back(reduction(phase_.steps[i + ahead].bytes));
    }
    phase_.reducing = static_cast<std::uint32_t>(phase_.reductions.size());
  }

  /// Any count: step i of the all-gather moves min(2^i, p - 2^i) blocks over distance 2^i; the
  /// reduce-scatter is its mirror image (Bruck et al., IEEE TPDS 8(11), 1997).
  void bruck() {
    phase_.pattern = Pattern::cyclic;
    const std::uint32_t k = steps_to_cover(p_);
    const Bytes block = share();
    const auto blocks = [&](std::uint32_t i) {
      const std::int64_t held = std::int64_t{1} << i;
      return step(block * std::min(held, p_ - held), held);
    };
    if (phase_.type != PhaseType::all_gather) {
      for (std::uint32_t i = k; i > 0; --i) {
        phase_.steps.push_back(blocks(i - 1));
        phase_.reductions.push_back(reduction(phase_.steps.back().bytes));
      }
      phase_.reducing = k;
    }
    if (phase_.type != PhaseType::reduce_scatter) {
      for (std::uint32_t i = 0; i < k; ++i) {
        phase_.steps.push_back(blocks(i));
      }
    }
    phase_.messages = static_cast<std::uint32_t>(phase_.steps.size());
  }

  /// Dissemination: in round i everybody tells the one 2^i further on.
  void cyclic_barrier() {
    phase_.pattern = Pattern::cyclic;
    for (std::uint32_t i = 0; i < steps_to_cover(p_); ++i) {
      phase_.steps.push_back(step(Bytes(0), std::int64_t{1} << i));
    }
    phase_.messages = static_cast<std::uint32_t>(phase_.steps.size());
  }

  void binary_tree(const PhaseRequest& request) {
    if (phase_.type == PhaseType::all_to_all) {
      direct(0);  // a tree has no way from leaf to leaf but through its root
      return;
    }
    const bool whole = rules_.quirks[Quirk::tree_phase] || phase_.type == PhaseType::all_reduce;
    Bytes message = c_;
    if (whole) {
      phase_.out = c_;
    } else if (phase_.type == PhaseType::all_gather) {
      message = phase_.out;
    }
    tree(in_order_tree(p_, request.second_tree), message);
    phase_.up = whole || phase_.type == PhaseType::reduce_scatter;
    phase_.down = whole || phase_.type == PhaseType::all_gather;
    phase_.reductions = {reduction(message)};
    phase_.reduces_down = phase_.up && rules_.quirks[Quirk::tree_reduction];
  }

  void rooted(const PhaseRequest& request) {
    const bool whole = request.type == PhaseType::reduce || request.type == PhaseType::broadcast;
    tree(whole ? in_order_tree(p_, true) : star(p_), whole ? c_ : divided(c_, p_));
    phase_.up = request.type == PhaseType::reduce || request.type == PhaseType::gather;
    phase_.down = !phase_.up;
    phase_.reductions = {reduces(request.type) ? reduction(c_) : Time(0)};
    phase_.holds_senders = true;
  }

  void tree(Tree made, Bytes message) {
    phase_.pattern = Pattern::tree;
    phase_.tree = std::move(made);
    phase_.steps = {{message, Time(0), Time(0), 1}};
    std::uint32_t most = 0;
    for (std::size_t node = 0; node + 1 < phase_.tree.first_child.size(); ++node) {
      most = std::max(most, phase_.tree.first_child[node + 1] - phase_.tree.first_child[node]);
    }
    phase_.words = most / kBitsPerWord + 1;  // ready marks: of the parent, and of each child
  }

  const PhaseRules& rules_;
  Bytes c_;
  std::int64_t p_;
  Phase phase_;
};

}  // namespace

Time reduction_time(Bytes bytes, const std::optional<Bandwidth>& memory) {
  if (!memory) {
    return Time(0);
  }
  return whole_nanoseconds(static_cast<double>(bytes.value()) / memory->value() * 1e9) * 3;
}

std::optional<std::string> unsupported(PhaseType type, Algorithm algorithm, std::int64_t ranks,
                                       const Quirks& quirks) {
  const bool halving =
      algorithm == Algorithm::halving_doubling || algorithm == Algorithm::one_halving_doubling;
  const bool tree = algorithm == Algorithm::double_binary_tree;
  const Quirk quirk = halving ? Quirk::halving_reduction : Quirk::tree_reduction;
  if (!(halving || tree) || !quirks[quirk] || is_power_of_two(ranks)) {
    return std::nullopt;
  }
  if (halving && type == PhaseType::all_gather && has_mutual_partners(ranks)) {
    return std::nullopt;
  }
  return fmt::format("{} of {} NPUs: expected a power of two (--quirk {}=off does any count)",
                     halving ? "halvingDoubling" : "doubleBinaryTree", ranks, name_of(quirk));
}

std::optional<std::string> too_many_messages(PhaseType type, Algorithm algorithm,
                                             std::int64_t ranks) {
  constexpr std::int64_t kMost = 92682;  // the greatest p with p (p - 1) / 2 < 2^32
  const bool ring = algorithm == Algorithm::ring || algorithm == Algorithm::one_ring;
  if (type != PhaseType::all_to_all || !ring || ranks <= kMost) {
    return std::nullopt;
  }
  return fmt::format("ring all-to-all of {} NPUs, p (p - 1) / 2 messages each: expected at most {}",
                     ranks, kMost);
}

Phase make_phase(const PhaseRequest& request, const PhaseRules& rules) {
  return Builder(request, rules).build(request);
}

}  // namespace orrery::astra
