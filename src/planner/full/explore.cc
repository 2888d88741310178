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

constexpr std::size_t kWithoutWarmStart = 40'000;  // bounds without a plan that fits

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
      if (node.level != Level::variant) {
        open(std::move(node));
      } else if (!node.value) {
        look(std::move(node));
      } else {
        search_.expect(Question::simulation, search_.cutoff(), estimated);
        simulate(search_, *search_.candidate(node.plan));
      }
    }
    const bool opened = search_.left > Time(0);  // all groups
    search_.answer.complete = opened && !search_.open.any_below(search_.cutoff());
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
      if (node.level != Level::variant) {
        open(std::move(node));
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

  /// Returns the shapes of a group with the exchanges of a number.
  std::vector<plan::Plan> shapes_of(const Node& exchanges) {
    std::vector<plan::Plan> shapes = search_.space.shapes(exchanges.plan);
    const std::vector<std::size_t> numbers = exchange_numbers(shapes);
    std::size_t i = 0;
    std::erase_if(shapes, [&](const plan::Plan&) { return numbers[i++] != exchanges.exchanges; });
    return shapes;
  }

  void open(Node node) {
    if (node.level == Level::group) {
      split_group(node);
    } else if (node.level == Level::exchanges) {
      node.tight ? split_exchanges(node) : outline_exchanges(std::move(node));
    } else {
      open_shape(std::move(node));
    }
  }

  /// Splits a group by what its shapes exchange, with the bounds of these kernels.
  void split_group(const Node& group) {
    ++search_.asked;
    const std::vector<plan::Plan> shapes = search_.space.shapes(group.plan);
    const std::vector<std::size_t> numbers = exchange_numbers(shapes);
    std::vector<Node> parts;
    std::vector<const plan::Plan*> valid;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (numbers[i] == parts.size()) {
        parts.push_back(
            {.level = Level::exchanges, .plan = group.plan, .plans = 0, .exchanges = numbers[i]});
        valid.push_back(nullptr);
      }
      parts[numbers[i]].plans += search_.space.variant_count(shapes[i]);
      const plan::Plan*& one = valid[numbers[i]];
      one = one == nullptr && search_.valid(shapes[i]) ? &shapes[i] : one;
    }
    using Exchange = std::tuple<std::string, plan::ContextExchange, plan::MoeDispatch,
                                plan::TensorOverlap>;  // which alone change kernels
    std::map<Exchange, Time> known;
    for (Node& part : parts) {
      const plan::Plan* one = valid[part.exchanges];
      if (one == nullptr) {
        search_.answer.counts.invalid += part.plans;
        continue;
      }
      const auto [least, is_new] = known.try_emplace(
          {one->order, one->cp_exchange, one->moe_dispatch, one->overlap_tensor}, Time(0));
      if (is_new) {
        least->second = search_.least_of_exchanges(*one).value_or(Time::max());
      }
      part.bound = std::max(group.bound, least->second);
      keep(std::move(part));
    }
  }

  /// Bounds shapes that exchange alike by what else they all do.
  void outline_exchanges(Node node) {
    ++search_.asked;
    const std::vector<plan::Plan> shapes = shapes_of(node);
    Alike alike;
    for (const plan::Plan& shape : shapes) {
      if (alike.valid == nullptr && search_.valid(shape)) {
        alike.valid = &shape;
      }
      if (alike.most_chunks == nullptr ||
          plan::chunks_of(shape) > plan::chunks_of(*alike.most_chunks)) {
        alike.most_chunks = &shape;
      }
    }
    node.bound = std::max(node.bound, outline(alike));
    node.tight = true;
    keep(std::move(node));
  }

  void split_exchanges(const Node& node) {
    for (plan::Plan& shape : shapes_of(node)) {
      const std::uint64_t plans = search_.space.variant_count(shape);
      if (!search_.valid(shape)) {
        search_.answer.counts.invalid += plans;
        continue;
      }
      keep({.bound = node.bound, .level = Level::shape, .plan = std::move(shape), .plans = plans});
    }
  }

  /// A shape is first bounded by what all that exchange alike do, then by its schedule, then its
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
    keep(std::move(node));
  }

  /// Keeps plans unless the answer has enough that are faster than all of them.
  void keep(Node node) {
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

void explore(SearchState& search) {
  Explorer(search).run();
}

void raise_bounds(SearchState& search) {
  if (!search.answer.top.empty()) {
    Explorer(search).raise_bounds();
  }
}

}  // namespace orrery::full
