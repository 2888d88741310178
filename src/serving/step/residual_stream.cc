// SPDX-License-Identifier: Apache-2.0
#include "serving/step/residual_stream.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "collective/layout/convert.h"
#include "collective/layout/pairs.h"

namespace orrery::step {
namespace {

using layout::Operation;
using layout::Placement;

constexpr Placement kPartial = Placement::partial();
constexpr Placement kWhole = Placement::replicate();
constexpr Placement kShards = Placement::shard(0);

/// A change of layout: its steps' text, their time, and how many of them are kernels.
struct Change {
  std::string steps;
  Time time{0};
  std::int64_t kernels = 0;
};

Change operator+(Change a, const Change& b) {
  a.steps += (a.steps.empty() || b.steps.empty() ? "" : ", ") + b.steps;
  return {std::move(a.steps), a.time + b.time, a.kernels + b.kernels};
}

class Changes {
 public:
  Changes(std::int64_t tokens, std::int64_t tp, const StreamPrices& prices)
      : shape_{.extents = {tokens}, .element = Bytes(1)}, tp_(tp), prices_(prices) {
    const Time half = prices.all_reduce / 2;
    prices_.reduce_scatter = std::max(prices.reduce_scatter, half);
    prices_.all_gather = std::max(prices.all_gather, half);
  }

  /// Returns the change within a stage.
  Change inside(Placement from, Placement to) const {
    return cheapest({{{"tp", tp_}}}, {from}, {to});
  }
  /// Returns the change on the way to the next stage.
  Change onward(Placement from, Placement to) const {
    return cheapest({{{"tp", tp_}, {"pp", 2}}}, {from, Placement::only(0)},
                    {to, Placement::only(1)});
  }
  /// Returns what an engine does that fuses nothing.
  Change whole_sum() const { return {"all_reduce tp", prices_.all_reduce, 1}; }
  Change whole_hop() const { return {"send_recv pp", prices_.send_rows, 1}; }

 private:
  Time price(const layout::Step& step) const {
    switch (step.operation) {
      case Operation::all_reduce:
        return prices_.all_reduce;
      case Operation::reduce_scatter:
        return prices_.reduce_scatter;
      case Operation::all_gather:
        return prices_.all_gather;
      case Operation::send_recv:
        return step.from.front() == kShards ? prices_.send_shard : prices_.send_rows;
      default:
        return Time(0);
    }
  }

  Change cheapest(const layout::Mesh& mesh, layout::Layout from, layout::Layout to) const {
    const layout::Problem problem{mesh, shape_, {}, std::move(from), std::move(to)};
    const auto steps =
        layout::cheapest(problem, [&](const layout::Step& step, const layout::Shape&) {
          return step.operation == Operation::many_to_many ? std::numeric_limits<double>::infinity()
                                                           : to_seconds(price(step));
        });
    assert(steps && "summands and slices become whatever a stage needs");
    Change change;
    for (const layout::Step& step : *steps) {
      const bool moves = layout::moves(step.operation);
      change = change + Change{moves ? to_string(step, mesh) : "", price(step), moves ? 1 : 0};
    }
    return change;
  }

  layout::Shape shape_;
  std::int64_t tp_;
  StreamPrices prices_;
};

FusedPlace place(layout::Pair pair, std::int64_t places, const Change& before,
                 const Change& after) {
  return {.pair = std::string(name_of(pair)),
          .places = places,
          .before = before.steps,
          .after = after.steps,
          .time_before = before.time,
          .time_after = after.time,
          .reason = {}};
}

/// Time and kernels of `count` changes more than of as many others.
void exchange(StreamChoice& choice, std::int64_t count, const Change& before, const Change& after) {
  choice.saved += count * (before.time - after.time);
  choice.kernels += count * (after.kernels - before.kernels);
}

/// Copies all through: stages alone send shards.
StreamChoice copies(const StreamUses& uses, const Changes& changes) {
  StreamChoice choice;
  const Change before = changes.whole_sum() + changes.whole_hop();
  const Change after = changes.onward(kPartial, kWhole);
  exchange(choice, uses.hops, before, after);
  choice.places.push_back(place(layout::Pair::tp_pp, uses.hops, before, after));
  return choice;
}

StreamChoice shards(const StreamUses& uses, const Changes& changes) {
  StreamChoice choice{.shards = true, .saved = uses.norms, .kernels = 0, .places = {}};
  const Change sum = changes.whole_sum();
  const Change scatter = changes.inside(kPartial, kShards);
  const Change gather = changes.inside(kShards, kWhole);
  const Change onward = changes.onward(kPartial, kShards);
  exchange(choice, uses.readers + 1, sum, scatter);  // and the embedding's
  exchange(choice, uses.sharded, gather, {});
  exchange(choice, uses.readers + 1, {}, gather);  // the head's samples may lie anywhere
  exchange(choice, uses.hops, scatter + changes.whole_hop(), onward);
  using layout::Pair;
  choice.places = {place(Pair::tp_sp, uses.readers - uses.hops, sum, scatter + gather),
                   place(Pair::tp_ep, uses.sharded, sum, scatter),
                   place(Pair::tp_pp, uses.hops, sum + changes.whole_hop(), onward + gather)};
  return choice;
}

}  // namespace

StreamChoice choose_stream(const StreamUses& uses, const StreamPrices& prices) {
  assert(uses.tp > 1 && "one rank has no sums");
  const Changes changes(uses.tokens, uses.tp, prices);
  StreamChoice best = shards(uses, changes);
  const std::vector<FusedPlace> all = best.places;
  if (StreamChoice other = copies(uses, changes); other.saved >= best.saved) {
    best = std::move(other);
  }
  const bool gains = best.saved > Time(0);
  if (!gains) {
    best = {.shards = false, .saved = Time(0), .kernels = 0, .places = all};
  }
  for (const FusedPlace& one : all) {
    const bool known = std::any_of(best.places.begin(), best.places.end(),
                                   [&](const FusedPlace& p) { return p.pair == one.pair; });
    if (!known) {
      best.places.push_back(one);
      best.places.back().reason = "not faster";
    }
  }
  std::erase_if(best.places, [](const FusedPlace& one) { return one.places == 0; });
  for (FusedPlace& one : best.places) {
    one.reason = gains ? one.reason : "not faster";
  }
  std::sort(best.places.begin(), best.places.end(),
            [](const FusedPlace& a, const FusedPlace& b) { return a.pair < b.pair; });
  return best;
}

}  // namespace orrery::step
