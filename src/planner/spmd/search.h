// SPDX-License-Identifier: Apache-2.0
/// The fastest strategy for a graph, exactly, by dynamic programming over cuts.
///
/// Cut i is before node i. A state is the cut and for every tensor made before it and used from it
/// on its one or two forms: the original, and at most one it was converted to. From every state, in
/// the order of cuts, one stage is built node by node:
///
///   1. a signature is usable if each input's form is there, or one legal conversion away from a
///      tensor that has one form and was there when the stage began;
///   2. dead tensors leave the state, outputs enter it; a conversion adds a form;
///   3. a stage has 1 to 11 nodes, loads too;
///   4. without communication it is the first or follows a stage of exactly 11;
///   5. after every node the stage may end: its clock (stage.h) joins those of the new state,
///      unless another can stand for it, whatever follows.
///
/// The answer is the least total at the last cut; of equal ones that found first, so it is always
/// the same. Work grows with cuts and states, not with devices.
///
/// Exact shortcuts: loads that one node uses are decided there (compiled_graph.h). Where nodes
/// repeat with a period and the frontiers at 11 cuts in a row are those of a period before, all
/// later by one and the same time to the picosecond, every further period adds that time: they are
/// skipped. Induction: a frontier is a function of the 11 before it and the nodes between, and that
/// function shifts with its arguments.
///
/// Source: rules 1 to 5 of HiDup (Zhang et al., SoCC'22), its published search; that keeps no "was
/// full" with a clock, which rule 4 needs.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "planner/spmd/compiled_graph.h"
#include "planner/spmd/operator_graph.h"
#include "planner/spmd/prices.h"
#include "planner/spmd/strategy.h"

namespace orrery::spmd {

struct SearchOptions {
  Restriction allowed{};     ///< empty: every signature
  bool skip_periods = true;  ///< false: every cut is searched, for tests
};

struct SearchCounts {
  std::int64_t cuts = 0;         ///< searched
  std::int64_t states = 0;       ///< of all of them
  std::int64_t most_states = 0;  ///< of one
  std::int64_t paths = 0;        ///< beginnings of stages
  std::int64_t skipped_periods = 0;
};

struct Solution {
  Time total{0};
  Strategy strategy{};
  SearchCounts counts{};
};

/// Mistakes: those of compile(); no strategy obeys the rules and restrictions; too many states; a
/// time beyond what counts. Requires a graph that verify() accepts.
Result<Solution> search(const OperatorGraph& graph, const Prices& prices,
                        const SearchOptions& options = {});

}  // namespace orrery::spmd
