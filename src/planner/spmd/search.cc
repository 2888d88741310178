// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>

#include "planner/spmd/frontier.h"
#include "planner/spmd/stage_paths.h"

namespace orrery::spmd {
namespace {

/// The most states at one cut; more would not fit in memory. HiDup's models have less than a
/// thousand.
constexpr int kMostStates = 4'000'000;

class Search {
 public:
  Search(const OperatorGraph& graph, const CompiledGraph& compiled, StageRule rule,
         bool skip_periods)
      : graph_(graph), compiled_(compiled), rule_(rule), skip_periods_(skip_periods) {}

  Result<Solution> run() {
    const int nodes = static_cast<int>(graph_.nodes.size());
    frontiers_.resize(static_cast<std::size_t>(nodes) + 1);
    last_ = nodes;
    at(0).add(rule_, Key{}, Entry{});
    for (int cut = 0; cut < last_; ++cut) {
      if (skip_periods_ && skipped_ == 0) {
        skip_repeats(cut);
      }
      if (at(cut).states() > kMostStates) {
        return fail(
            fmt::format("more than {} states before node {}: too many tensors are alive at "
                        "once in too many forms",
                        kMostStates, node_at(cut)));
      }
      expand(cut);
    }
    if (!best_) {
      return fail("no strategy obeys the rules: every way ends in forms that nothing converts");
    }
    if ((total(rule_, best_->clock) + skipped_ * step_).is_overflow()) {
      return fail("every strategy takes longer than 106 days");
    }
    Solution solution{.total = total(rule_, best_->clock) + skipped_ * step_, .counts = counts_};
    solution.counts.skipped_periods = skipped_;
    solution.strategy = trace_back();
    return solution;
  }

 private:
  Frontier& at(int cut) { return frontiers_[static_cast<std::size_t>(cut)]; }
  int period() const { return compiled_.repeats.period; }
  /// Returns the node after a cut; cuts count without the periods skipped.
  int node_at(int cut) const { return cut >= seam_ ? cut + skipped_ * period() : cut; }

  void expand(int cut) {
    Frontier& frontier = at(cut);
    frontier.close();
    counts_.cuts += 1;
    counts_.states += frontier.states();
    counts_.most_states = std::max<std::int64_t>(counts_.most_states, frontier.states());
    for (int state = 0; state < frontier.states(); ++state) {
      paths_.assign(1, Path{.key = frontier.key(state)});
      for (int length = 1; length <= kLongestStage && cut + length <= last_; ++length) {
        add_node(compiled_, rule_, node_at(cut) + length - 1, length - 1, paths_, longer_);
        std::swap(paths_, longer_);
        counts_.paths += static_cast<std::int64_t>(paths_.size());
        for (const Path& path : paths_) {
          end_stage(cut, state, length, path);
        }
      }
    }
  }

  bool may_end(int cut, const Entry& entry, const Path& path) const {
    return path.communicated || cut == 0 || entry.full;
  }

  /// The best of the state's ways joins the states of the cut after the stage.
  void end_stage(int cut, int state, int length, const Path& path) {
    const Frontier& frontier = at(cut);
    Entry found{.state = state,
                .entry = -1,
                .length = static_cast<std::uint8_t>(length),
                .full = length == kLongestStage};
    for (int i = frontier.first(state); i >= 0; i = frontier.entry(i).next) {
      if (may_end(cut, frontier.entry(i), path)) {
        const Clock clock = advance(rule_, frontier.entry(i).clock, path.work);
        if (found.entry < 0 || clock.elapsed < found.clock.elapsed) {
          found.clock = clock;
          found.entry = i;
        }
      }
    }
    if (found.entry < 0) {
      return;
    }
    if (cut + length < last_) {
      at(cut + length).add(rule_, path.key, found);
    } else if (!best_ || total(rule_, found.clock) < total(rule_, best_->clock)) {
      best_ = found;
    }
  }

  /// Skips as many periods as can be, if the 11 cuts up to this one are those of a period before.
  void skip_repeats(int cut) {
    const Repeats& repeats = compiled_.repeats;
    if (period() == 0 || cut - kLongestStage - period() <= repeats.first) {
      return;
    }
    const int further = (repeats.last + period() - kLongestStage - cut) / period();
    if (further < 1 || at(cut).states() == 0 || at(cut - period()).states() == 0) {
      return;
    }
    const std::optional<Time> step = common_step(cut);
    if (!step) {
      return;
    }
    step_ = *step;
    skipped_ = further;
    seam_ = cut;
    last_ -= further * period();
  }

  std::optional<Time> common_step(int cut) {
    // Entries of a state stand in the order in which they were added, so the first ones correspond;
    // if not, repeats() says no.
    const Entry& now = at(cut).entry(at(cut).first(0));
    const Entry& before = at(cut - period()).entry(at(cut - period()).first(0));
    const Time step = now.clock.elapsed - before.clock.elapsed;
    for (int c = cut; c > cut - kLongestStage; --c) {
      if (!at(c).repeats(at(c - period()), step)) {
        return std::nullopt;
      }
    }
    return step;
  }

  /// Traces the strategy back from the last cut to the first. Skipped periods are put back where
  /// the seam is: a cut at most a period before it has an equal one a period later, from where the
  /// way goes back once more.
  Strategy trace_back() {
    Strategy strategy;
    Entry entry = *best_;
    int cut = last_;
    int left = skipped_;
    Key after;
    while (cut > 0) {
      const int begin = cut - entry.length;
      strategy.stages.push_back(stage_of(begin, left * period(), entry, after));
      after = at(begin).key(entry.state);
      entry = at(begin).entry(entry.entry);
      cut = begin;
      while (left > 0 && cut + period() <= seam_) {
        const int state = at(cut + period()).find(after);
        const int same =
            at(cut + period())
                .find(state, {entry.clock.elapsed + step_, entry.clock.debt}, entry.full);
        assert(same >= 0 && "frontiers repeat");
        cut += period();
        entry = at(cut).entry(same);
        --left;
      }
    }
    std::reverse(strategy.stages.begin(), strategy.stages.end());
    for (Stage& stage : strategy.stages) {
      decide_loads(stage);
    }
    return strategy;
  }

  /// Returns the stage that made `entry`, found again; `later`: nodes skipped before it.
  Stage stage_of(int begin, int later, const Entry& entry, const Key& after) {
    const Entry& before = at(begin).entry(entry.entry);
    std::vector<std::vector<Path>> paths{{Path{.key = at(begin).key(entry.state)}}};
    for (int length = 1; length <= entry.length; ++length) {
      std::vector<Path> longer;
      add_node(compiled_, rule_, begin + later + length - 1, length - 1, paths.back(), longer);
      paths.push_back(std::move(longer));
    }
    const auto made_it = [&](const Path& path) {
      const Clock clock = advance(rule_, before.clock, path.work);
      return path.key == after && clock.elapsed == entry.clock.elapsed &&
             clock.debt == entry.clock.debt && may_end(begin, before, path);
    };
    const auto found = std::find_if(paths.back().begin(), paths.back().end(), made_it);
    assert(found != paths.back().end() && "the same paths again");
    Stage stage;
    int index = static_cast<int>(found - paths.back().begin());
    for (int length = entry.length; length > 0; --length) {
      const Path& path = paths[static_cast<std::size_t>(length)][static_cast<std::size_t>(index)];
      add_last_node(begin + later + length - 1, path, stage);
      index = path.parent;
    }
    std::reverse(stage.communications.begin(), stage.communications.end());
    std::reverse(stage.computations.begin(), stage.computations.end());
    return stage;
  }

  void add_last_node(int node, const Path& path, Stage& stage) {
    const CompiledNode& compiled = compiled_.node(node);
    const CompiledSignature& signature =
        compiled.signatures[static_cast<std::size_t>(path.signature)];
    stage.computations.push_back({node, signature.index});
    for (std::size_t k = compiled.inputs.size(); k-- > 0;) {
      const CompiledInput& input = compiled.inputs[k];
      const int form = static_cast<int>(path.forms >> (4 * input.position) & 15U);
      const int tensor = graph_.nodes[static_cast<std::size_t>(node)]
                             .inputs[static_cast<std::size_t>(input.position)];
      if (input.undecided) {
        loaded_as_[tensor] = form;
      }
      if (form != kNoForm && form != signature.needs[k]) {
        stage.communications.push_back(
            {tensor, Form::of_code(form), Form::of_code(signature.needs[k])});
      }
    }
  }

  /// Loads get the signature of the form that their one use chose; unused ones the first.
  void decide_loads(Stage& stage) const {
    for (Computation& computation : stage.computations) {
      if (computation.signature >= 0) {
        continue;
      }
      const Node& node = graph_.nodes[static_cast<std::size_t>(computation.node)];
      const int form = loaded_as_.at(node.outputs.front());
      const auto made = std::find_if(
          node.signatures.begin(), node.signatures.end(),
          [&](const Signature& signature) { return signature.outputs[0].code() == form; });
      computation.signature = static_cast<int>(made - node.signatures.begin());
    }
  }

  const OperatorGraph& graph_;
  const CompiledGraph& compiled_;
  StageRule rule_;
  bool skip_periods_;
  std::vector<Frontier> frontiers_;  ///< by cut, without the periods skipped
  std::vector<Path> paths_;
  std::vector<Path> longer_;
  std::optional<Entry> best_;  ///< at the last cut
  int last_ = 0;               ///< cut
  int seam_ = 0;               ///< the cut before which periods are skipped
  int skipped_ = 0;
  Time step_{0};                  ///< of one period
  std::map<int, int> loaded_as_;  ///< form's code by undecided tensor
  SearchCounts counts_;
};

}  // namespace

Result<Solution> search(const OperatorGraph& graph, const Prices& prices,
                        const SearchOptions& options) {
  const auto compiled = compile(graph, prices, options.allowed);
  if (!compiled) {
    return fail(compiled.error());
  }
  return Search(graph, *compiled, prices.rule(), options.skip_periods).run();
}

}  // namespace orrery::spmd
