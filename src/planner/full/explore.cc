// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/lists.h"
#include "planner/full/search_state.h"
#include "workload/plan/schedule_row.h"

namespace orrery::full {
namespace {

constexpr std::size_t kAskEvery = 16;  // steps of the search
constexpr double kExplored = 0.75;     // of bounds and simulations; the others are for what follows

/// So many shapes are bounded by their passes in the time of one bound.
constexpr std::size_t kShapesForABound = 16;

constexpr std::size_t kWithoutWarmStart = 40'000;  // bounds without a plan that fits

bool may_fit(SearchState& search, const plan::Plan& plan) {
  const auto least = search.bounds.least_memory(plan);
  return least && *least <= search.capacity;
}

/// Gives it the fewest layers more with which fits(plan); false: it does not with all of them, nor
/// with all but one (the last repeats its own layer while nothing else is kept).
template <class Fits>
bool repeat_enough(const SearchState& search, plan::Plan& plan, const Fits& fits) {
  const std::int64_t most = search.space.layers_to_recompute(plan);
  std::int64_t too_few = plan.recompute_layers;
  const auto fits_with = [&](std::int64_t layers) {
    plan.recompute_layers = layers < most ? layers : 0;
    return fits(plan);
  };
  std::int64_t enough = most;
  if (most == 0 || (!fits_with(most) && !fits_with(--enough))) {
    return false;
  }
  while (enough - too_few > 1) {
    const std::int64_t middle = too_few + (enough - too_few) / 2;
    (fits_with(middle) ? enough : too_few) = middle;
  }
  plan.recompute_layers = enough < most ? enough : 0;
  return true;
}

/// Returns whether it may with as many layers more as that takes.
bool may_fit_again(SearchState& search, plan::Plan& plan) {
  return may_fit(search, plan) ||
         repeat_enough(search, plan, [&](const plan::Plan& more) { return may_fit(search, more); });
}

/// The same to the byte.
bool recompute_enough(SearchState& search, plan::Plan& plan) {
  return repeat_enough(search, plan,
                       [&](const plan::Plan& more) { return search.memory(more).first; });
}

class Explorer {
 public:
  explicit Explorer(SearchState& search) : search_(search) {}

  void run() {
    std::size_t steps = 0;
    const auto most = static_cast<std::uint64_t>(
        std::ceil(kExplored * static_cast<double>(search_.options.most_simulations)));
    const auto estimated = [](const Node& node) { return node.value.has_value(); };
    while (search_.open.any_below(search_.cutoff())) {
      const Counts& counts = search_.answer.counts;
      const bool filled = search_.wanted > Time(0) && search_.has_enough();
      if (counts.estimated >= search_.options.most_estimates || counts.simulated >= most ||
          filled || search_.spent(kExplored)) {
        break;
      }
      if (steps++ % kAskEvery == 0 && search_.stop()) {
        break;
      }
      if (search_.candidates.empty() && search_.asked > kWithoutWarmStart &&
          !search_.warm_started) {
        warm_start(search_, true);
      }
      Node node = search_.open.take();
      if (node.level == Level::group) {
        open_group(std::move(node));
      } else if (node.level == Level::shape) {
        open_shape(std::move(node));
      } else if (!node.value) {
        look(std::move(node));
      } else {
        search_.expect(Question::simulation, search_.cutoff(), estimated);
        simulate(search_, *search_.candidate(node.plan));
      }
    }
    search_.answer.complete = !search_.open.any_below(search_.cutoff());
  }

  void raise_bounds() {
    search_.open.by_bounds();
    bounds_left_ = search_.options.most_estimates;
    simulations_left_ = search_.options.most_simulations -
                        std::min(search_.options.most_simulations, search_.answer.counts.simulated);
    for (std::size_t steps = 0; search_.open.any_below(search_.sure()); ++steps) {
      if ((steps % kAskEvery == 0 && search_.stop()) || search_.spent(1)) {
        return;
      }
      Node node = search_.open.take();
      if (node.level == Level::group) {
        open_group(std::move(node));
      } else if (node.level == Level::shape) {
        open_shape(std::move(node));
      } else if ((node.tight ? simulations_left_ : bounds_left_) == 0) {
        search_.open.put_back(std::move(node));
        return;
      } else if (node.tight) {
        search_.expect(Question::simulation, search_.sure(),
                       [](const Node& other) { return other.tight; });
        prove(node);
      } else if (node.value || fits(node)) {
        search_.expect(Question::lower_bound, search_.sure(),
                       [](const Node& other) { return !other.tight; });
        tighten(std::move(node));
      }
    }
  }

 private:
  /// Shapes of a group that are equal in these cost the same in passes, states and exchanges.
  using Exchanges = std::tuple<std::string, plan::ContextExchange, plan::MoeDispatch,
                               plan::OverlapExperts, plan::TensorOverlap, std::string, bool, bool>;
  static Exchanges exchanges_of(const plan::Plan& shape) {
    const plan::ScheduleRow& row = row_of(shape.schedule);
    return {shape.order,          shape.cp_exchange,  shape.moe_dispatch,  shape.overlap_ep,
            shape.overlap_tensor, shape.batch_shares, row.whole_backwards, row.both_ends};
  }

  /// Shapes with the same exchanges: a valid one, and one with most chunks, which may wait least.
  struct Alike {
    const plan::Plan* valid = nullptr;
    const plan::Plan* most_chunks = nullptr;
  };

  /// The least bound of the ways to hold a shape's states; Time::max() where no device has room for
  /// any, 0 where nothing is known.
  template <class Bound>
  Time least_by_states(const plan::Plan& shape, const Bound& bound_of) {
    std::vector<plan::Plan> states = search_.states_with_room(shape);
    Time least = Time::max();
    for (plan::Plan& one : states) {
      if (search_.valid(one)) {
        const Result<Time> bound = bound_of(one);
        least = std::min(least, bound ? *bound : Time(0));
      }
    }
    return states.empty() || least < Time::max() ? least : Time(0);
  }

  Time outline(const Alike& alike) {
    return least_by_states(*alike.valid, [&](plan::Plan& one) {
      one.schedule = alike.most_chunks->schedule;
      one.chunks = alike.most_chunks->chunks;
      return search_.bounds.mean_step(one).map(
          [&](Time step) { return search_.score.of(one, step); });
    });
  }

  /// Numbers the exchanges of a group's shapes, in the order in which they first come.
  static std::vector<std::size_t> exchange_numbers(const std::vector<plan::Plan>& shapes) {
    std::map<Exchanges, std::size_t> known;
    return mapped(shapes, [&](const plan::Plan& shape) {
      return known.try_emplace(exchanges_of(shape), known.size()).first->second;
    });
  }

  /// Returns, by exchange_numbers(), a bound of all shapes that have them, from the mean of the
  /// stages; Time::max() where no device has room for their states, nothing where none is valid.
  std::vector<std::optional<Time>> outlines(const std::vector<plan::Plan>& shapes) {
    const std::vector<std::size_t> numbers = exchange_numbers(shapes);
    std::vector<Alike> by_exchanges;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      by_exchanges.resize(std::max(by_exchanges.size(), numbers[i] + 1));
      Alike& alike = by_exchanges[numbers[i]];
      if (alike.valid == nullptr && search_.valid(shapes[i])) {
        alike.valid = &shapes[i];
      }
      if (alike.most_chunks == nullptr ||
          plan::chunks_of(shapes[i]) > plan::chunks_of(*alike.most_chunks)) {
        alike.most_chunks = &shapes[i];
      }
    }
    return mapped(by_exchanges, [&](const Alike& alike) {
      return alike.valid != nullptr ? std::optional(outline(alike)) : std::nullopt;
    });
  }

  /// A group is first bounded by its kernels, then by what else its shapes do, then these are.
  void open_group(Node node) {
    const std::vector<plan::Plan> shapes = search_.space.shapes(node.plan);
    if (node.tight) {
      split_group(node, shapes);
      return;
    }
    search_.asked += 1 + shapes.size() / kShapesForABound;  // their blocks are lowered
    Time least = Time::max();
    bool valid = false;
    for (const std::optional<Time>& bound : outlines(shapes)) {
      valid = valid || bound;
      least = std::min(least, bound.value_or(Time::max()));
      node.outlines.push_back(bound.value_or(Time::max()));
    }
    if (valid && least == Time::max()) {
      search_.answer.counts.by_memory += node.plans;
      return;
    }
    node.bound = valid ? std::max(node.bound, least) : node.bound;
    node.tight = true;
    search_.open.put_back(std::move(node));
  }

  void split_group(const Node& group, const std::vector<plan::Plan>& shapes) {
    const std::vector<std::size_t> numbers = exchange_numbers(shapes);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::uint64_t plans = search_.space.variant_count(shapes[i]);
      if (!search_.valid(shapes[i])) {
        search_.answer.counts.invalid += plans;
        continue;
      }
      keep_shape({.bound = std::max(group.bound, group.outlines[numbers[i]]),
                  .level = Level::shape,
                  .plan = shapes[i],
                  .plans = plans});
    }
  }

  /// A shape is first bounded by what its group's shapes do, then by its schedule, then its
  /// variants are.
  void open_shape(Node node) {
    if (node.tight) {
      expand(node);
      return;
    }
    const Time least =
        least_by_states(node.plan, [&](const plan::Plan& one) { return search_.least(one); });
    node.bound = std::max(node.bound, least);
    node.tight = true;
    keep_shape(std::move(node));
  }

  /// Keeps a shape unless the answer has enough plans that are faster than all of its.
  void keep_shape(Node node) {
    if (node.bound == Time::max()) {
      search_.answer.counts.by_memory += node.plans;
      return;
    }
    if (node.bound < search_.kept_below() || !search_.has_enough()) {
      search_.open.put_back(std::move(node));
      return;
    }
    search_.answer.counts.by_bound += node.plans;
    search_.left = std::min(search_.left, node.bound);
  }

  void expand(const Node& shape) {
    if (!search_.has_room(search_.space.frugal(shape.plan))) {
      search_.answer.counts.by_memory += shape.plans;
      return;
    }
    for (plan::Plan& variant : search_.space.variants_to_save(shape.plan)) {
      if (!search_.has_room(search_.space.most_saving(variant))) {
        search_.answer.counts.by_memory += search_.space.savings();
        continue;
      }
      search_.answer.counts.by_bound += search_.space.savings();  // until they are taken
      save(std::make_shared<Savings>(search_.space, std::move(variant)));
    }
  }

  /// Pushes the lightest that may fit.
  void save(const std::shared_ptr<Savings>& savings) {
    for (std::size_t saving = savings->next(search_.space); saving < search_.space.savings();
         saving = savings->next(search_.space)) {
      --search_.answer.counts.by_bound;
      plan::Plan variant = savings->plan(search_.space, saving);
      if (!search_.runs(variant)) {
        ++search_.answer.counts.invalid;
        savings->fail(saving);
        continue;
      }
      if (!may_fit_again(search_, variant)) {
        ++search_.answer.counts.by_memory;
        search_.remember_frugal(variant);
        savings->fail(saving);
        continue;
      }
      const auto bound = search_.least(variant);
      if (!bound || *bound >= search_.kept_below()) {
        ++search_.answer.counts.by_bound;
        search_.left = bound ? std::min(search_.left, *bound) : search_.left;
      } else {
        search_.open.push(*bound, Level::variant, std::move(variant), savings, saving);
      }
    }
  }

  /// Returns the memory of the node's plan; nothing: it does not fit, what saves more comes next.
  std::optional<Bytes> fits(const Node& node) {
    const auto [fits, memory] = search_.memory(node.plan);
    if (fits) {
      return memory;
    }
    plan::Plan more = node.plan;
    if (recompute_enough(search_, more)) {
      if (const auto bound = search_.least(more)) {
        search_.open.push(*bound, Level::variant, std::move(more), node.savings, node.saving);
        return std::nullopt;
      }
    }
    ++search_.answer.counts.by_memory;
    search_.remember_frugal(node.plan);
    node.savings->fail(node.saving);
    save(node.savings);
    return std::nullopt;
  }

  void look(Node node) {
    const auto memory = fits(node);
    if (!memory) {
      return;
    }
    ++search_.answer.counts.estimated;
    const Candidate* candidate = search_.candidate(node.plan);
    candidate = candidate ? candidate : search_.estimate(node.plan, node.bound, *memory);
    if (candidate == nullptr) {
      search_.left = std::min(search_.left, node.bound);
      return;
    }
    node.value = candidate->value;
    search_.open.put_back(std::move(node));
  }

  // --- what is certain

  void tighten(Node node) {
    --bounds_left_;
    if (const auto bound = search_.estimator.lower_bound(node.plan)) {
      node.bound = std::max(node.bound, search_.score.of(node.plan, *bound));
    }
    node.tight = true;
    search_.open.put_back(std::move(node));
  }

  /// No bound says as much as the simulation.
  void prove(const Node& node) {
    search_.answer.counts.estimated += node.value ? 0 : 1;
    Candidate* candidate = search_.candidate(node.plan);
    candidate = candidate
                    ? candidate
                    : search_.estimate(node.plan, node.bound, search_.memory(node.plan).second);
    if (candidate == nullptr) {
      search_.left = std::min(search_.left, node.bound);
      return;
    }
    simulations_left_ -= candidate->simulated ? 0 : 1;
    simulate(search_, *candidate);
  }

  SearchState& search_;
  std::size_t bounds_left_ = 0;
  std::size_t simulations_left_ = 0;
};

}  // namespace

std::optional<Bytes> fit(SearchState& search, plan::Plan& plan) {
  if (!may_fit_again(search, plan)) {
    return std::nullopt;
  }
  auto [fits, memory] = search.memory(plan);
  if (!fits && recompute_enough(search, plan)) {
    std::tie(fits, memory) = search.memory(plan);
  }
  return fits ? std::optional(memory) : std::nullopt;
}

void explore(SearchState& search) {
  Explorer(search).run();
}

void raise_bounds(SearchState& search) {
  if (!search.answer.top.empty()) {
    Explorer(search).raise_bounds();
  }
}

}  // namespace orrery::full
