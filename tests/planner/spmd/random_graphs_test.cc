// SPDX-License-Identifier: Apache-2.0
// The search against two others on random graphs: one that tries everything, and the plain dynamic
// program without any of its shortcuts.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <random>

#include "planner/spmd/memory.h"
#include "published.h"
#include "random_graph.h"

namespace orrery::spmd {
namespace {

/// A tensor's forms, by code; -1: none.
struct Forms {
  int original = -1;
  int converted = -1;
  auto operator<=>(const Forms&) const = default;
};
using State = std::map<int, Forms>;  ///< by live tensor

/// The rules of search.h, word for word.
class Plain {
 public:
  Plain(const OperatorGraph& graph, const Prices& prices) : graph_(graph), prices_(prices) {}

  /// Calls `reach` for every stage that can begin at `cut` in `state`, with what it leaves.
  template <class Reach>
  void stages(int cut, const State& state, const Reach& reach) const {
    grow({cut, state, state, {}, false, 0, Bytes(0)}, reach);
  }

  int nodes() const { return static_cast<int>(graph_.nodes.size()); }
  StageRule rule() const { return prices_.rule(); }

  struct Begun {
    int cut;       ///< where the stage begins
    State before;  ///< there
    State state;   ///< now
    StageWork work;
    bool communicated;
    int length;
    Bytes memory{0};  ///< of a device
  };

 private:
  template <class Reach>
  void grow(const Begun& begun, const Reach& reach) const {
    const int i = begun.cut + begun.length;
    if (begun.length == kLongestStage || i == nodes()) {
      return;
    }
    for (const Signature& signature : graph_.nodes.at(static_cast<std::size_t>(i)).signatures) {
      Begun next = begun;
      if (apply(i, signature, next)) {
        ++next.length;
        reach(next);
        grow(next, reach);
      }
    }
  }

  bool apply(int i, const Signature& signature, Begun& next) const {
    const Node& node = graph_.nodes.at(static_cast<std::size_t>(i));
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const int tensor = node.inputs[k];
      const Form need = signature.inputs[k];
      Forms& forms = next.state.at(tensor);
      if (forms.original == need.code() || forms.converted == need.code()) {
        continue;
      }
      const Form from = Form::of_code(forms.original);
      if (forms.converted >= 0 || !next.before.contains(tensor) || !conversion(from, need)) {
        return false;
      }
      forms.converted = need.code();
      next.memory += held(graph_, tensor, need, true, kDevices);
      next.communicated = true;
      next.work += prices_.convert(graph_, tensor, from, need);
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      next.state[node.outputs[k]] = {signature.outputs[k].code(), -1};
      next.memory += held(graph_, node.outputs[k], signature.outputs[k], false, kDevices);
    }
    std::erase_if(next.state, [&](const auto& live) { return !used_after(live.first, i); });
    next.work.compute += prices_.compute(graph_, i, signature);
    return true;
  }

  bool used_after(int tensor, int i) const {
    return std::any_of(graph_.nodes.begin() + i + 1, graph_.nodes.end(), [&](const Node& node) {
      return std::count(node.inputs.begin(), node.inputs.end(), tensor) > 0;
    });
  }

  const OperatorGraph& graph_;
  const Prices& prices_;
};

/// The least total of every program there is.
class Exhaustive {
 public:
  explicit Exhaustive(const Plain& plain, Bytes limit = Bytes::max())
      : plain_(plain), limit_(limit) {
    from(0, {}, {}, false, Bytes(0));
  }
  std::optional<Time> best;

 private:
  void from(int cut, const State& state, const Clock& clock, bool full, Bytes memory) {
    if (memory > limit_) {
      return;
    }
    if (cut == plain_.nodes()) {
      const Time time = total(plain_.rule(), clock);
      best = best ? std::min(*best, time) : time;
      return;
    }
    plain_.stages(cut, state, [&](const Plain::Begun& stage) {
      if (stage.communicated || cut == 0 || full) {
        from(cut + stage.length, stage.state, advance(plain_.rule(), clock, stage.work),
             stage.length == kLongestStage, memory + stage.memory);
      }
    });
  }

  const Plain& plain_;
  Bytes limit_;
};

/// The published dynamic program: per state all clocks that no other is at or below in both.
class PlainSearch {
 public:
  explicit PlainSearch(const Plain& plain)
      : plain_(plain), cuts_(static_cast<std::size_t>(plain.nodes()) + 1) {
    cuts_[0][{}] = {{{}, false}};
    for (std::size_t cut = 0; cut + 1 < cuts_.size(); ++cut) {
      for (const auto& [state, ways] : cuts_[cut]) {
        plain_.stages(static_cast<int>(cut), state,
                      [&, &from = ways](const Plain::Begun& stage) { end(stage, from); });
      }
    }
    for (const auto& [state, ways] : cuts_.back()) {
      for (const Way& way : ways) {
        const Time time = total(plain_.rule(), way.clock);
        best = best ? std::min(*best, time) : time;
      }
    }
  }
  std::optional<Time> best;

 private:
  struct Way {
    Clock clock;
    bool full;
  };

  static bool below(const Way& a, const Way& b) {
    return a.clock.elapsed <= b.clock.elapsed && a.clock.debt <= b.clock.debt && a.full >= b.full;
  }

  void end(const Plain::Begun& stage, const std::vector<Way>& from) {
    auto& others = cuts_[static_cast<std::size_t>(stage.cut) +
                         static_cast<std::size_t>(stage.length)][stage.state];
    for (const Way& way : from) {
      if (!stage.communicated && stage.cut > 0 && !way.full) {
        continue;
      }
      const Way next{advance(plain_.rule(), way.clock, stage.work), stage.length == kLongestStage};
      if (std::none_of(others.begin(), others.end(),
                       [&](const Way& other) { return below(other, next); })) {
        std::erase_if(others, [&](const Way& other) { return below(next, other); });
        others.push_back(next);
      }
    }
  }

  const Plain& plain_;
  std::vector<std::map<State, std::vector<Way>>> cuts_;
};

std::optional<Time> plain_search(const Plain& plain) {
  return PlainSearch(plain).best;
}

std::optional<Time> found(const OperatorGraph& graph, const Prices& prices) {
  return replayed(graph, search(graph, prices), prices);
}

TEST(RandomGraphs, ExhaustiveSearchFindsNothingFaster) {
  int solved = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    const OperatorGraph graph = random_graph(seed, 3 + static_cast<int>(seed % 6));
    ASSERT_TRUE(verify(graph));
    for (const Overlap overlap : {Overlap::none, Overlap::forward, Overlap::both}) {
      const PublishedPrices prices(cost_of(seed, overlap));
      const Plain plain(graph, prices);
      const auto expected = Exhaustive(plain).best;
      EXPECT_EQ(found(graph, prices), expected) << seed;
      EXPECT_EQ(plain_search(plain), expected) << seed;
      solved += expected ? 1 : 0;
    }
  }
  EXPECT_GT(solved, 400);
}

TEST(RandomGraphs, NothingWithinALimitOfMemoryIsFasterThanItsBound) {
  int limited = 0;
  int exact = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const OperatorGraph graph = random_graph(seed, 4 + static_cast<int>(seed % 5));
    const PublishedPrices prices(cost_of(seed, Overlap::both));
    const auto free = search(graph, prices);
    if (!free) {
      continue;
    }
    const Bytes limit = memory_of(graph, free->strategy, kDevices) * 0.8;
    const auto expected = Exhaustive(Plain(graph, prices), limit).best;
    const auto found = search_within(graph, prices, kDevices, limit);
    EXPECT_EQ(found.has_value(), expected.has_value()) << seed;
    if (found && expected) {
      EXPECT_LE(found->bound, *expected) << seed;
      EXPECT_GE(found->solution.total, *expected) << seed;
      EXPECT_LE(found->memory, limit) << seed;
      ++limited;
      exact += found->solution.total == *expected ? 1 : 0;
    }
  }
  EXPECT_GT(limited, 30);
  EXPECT_GT(exact, limited / 2);
}

/// The block once more, after `time` of them; its first node reads what the one before made last.
void add_block(const OperatorGraph& block, int time, OperatorGraph& graph) {
  const int tensors = static_cast<int>(block.tensors.size());
  for (Tensor tensor : block.tensors) {
    tensor.producer += time * static_cast<int>(block.nodes.size());
    graph.tensors.push_back(tensor);
  }
  const auto later = [&](int tensor) { return tensor + time * tensors; };
  for (Node node : block.nodes) {
    std::transform(node.inputs.begin(), node.inputs.end(), node.inputs.begin(), later);
    std::transform(node.outputs.begin(), node.outputs.end(), node.outputs.begin(), later);
    graph.nodes.push_back(std::move(node));
  }
  Node& first = graph.nodes[graph.nodes.size() - block.nodes.size()];
  first.kind = NodeKind::op;
  first.inputs = {time * tensors - 1};
  for (Signature& signature : first.signatures) {
    signature.inputs = {Form::gather(0)};
  }
  first.signatures.push_back({{Form::full()}, first.signatures.front().outputs});
}

/// A block of nodes again and again, each time with the same choices.
OperatorGraph repeated_graph(unsigned seed, int nodes, int times) {
  const OperatorGraph block = random_graph(seed, nodes);
  OperatorGraph graph = block;
  for (int time = 1; time < times; ++time) {
    add_block(block, time, graph);
  }
  return graph;
}

TEST(RandomGraphs, SkippingPeriodsChangesNothing) {
  int skipped = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const OperatorGraph graph = repeated_graph(seed, 3 + static_cast<int>(seed % 6), 14);
    ASSERT_TRUE(verify(graph)) << verify(graph).error().to_string();
    const PublishedPrices prices(cost_of(seed, static_cast<Overlap>(seed % 3)));
    const auto all = search(graph, prices, {.skip_periods = false});
    EXPECT_EQ(found(graph, prices), all ? std::optional(all->total) : std::nullopt) << seed;
    const auto counts = search(graph, prices);
    skipped += counts && counts->counts.skipped_periods > 0 ? 1 : 0;
  }
  EXPECT_GT(skipped, 20);
}

TEST(RandomGraphs, ThePlainDynamicProgramFindsNothingFaster) {
  int solved = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const OperatorGraph graph = random_graph(seed, 12 + static_cast<int>(seed % 20));
    for (const Overlap overlap : {Overlap::none, Overlap::forward, Overlap::both}) {
      const PublishedPrices prices(cost_of(seed, overlap));
      const auto expected = plain_search(Plain(graph, prices));
      EXPECT_EQ(found(graph, prices), expected) << seed;
      solved += expected ? 1 : 0;
    }
  }
  EXPECT_GT(solved, 60);
}

TEST(RandomGraphs, ThePlainDynamicProgramAgreesOnAWholeModel) {
  OperatorGraph graph = model("Vmoe", 8, 1);
  const PublishedPrices prices(setting(8, "2m_10g"));
  EXPECT_EQ(found(graph, prices), plain_search(Plain(graph, prices)));
}

}  // namespace
}  // namespace orrery::spmd
