// SPDX-License-Identifier: Apache-2.0
/// One step from layout to layout: which collective it is, and every message of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "graph/layout.h"

namespace orrery::graph {
enum class CollectiveKind : std::uint8_t;
}

namespace orrery::layout {

using graph::Box;
using graph::Layout;
using graph::Mesh;
using graph::Placement;
using graph::Shape;

enum class Operation : std::uint8_t {
  slice,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  send_recv,
  many_to_many,
  pad,
  apply
};
constexpr auto named_values(Operation) {
  return std::to_array<Named<Operation>>({
      {Operation::slice, "slice", "every rank keeps a part of what it has; nothing moves"},
      {Operation::all_gather, "all_gather", "slices to copies"},
      {Operation::reduce_scatter, "reduce_scatter", "summands to slices of the sum"},
      {Operation::all_reduce, "all_reduce", "summands to copies of the sum"},
      {Operation::all_to_all, "all_to_all", "slices of one dimension to slices of another"},
      {Operation::send_recv, "send_recv", "to the rank of equal place at another coordinate"},
      {Operation::many_to_many, "many_to_many",
       "every source sends every target the piece that it needs, each a different one"},
      {Operation::pad, "pad", "slices to summands, zeros around them; nothing moves"},
      {Operation::apply, "apply", "the work between, on what every rank has; nothing moves"},
  });
}

/// Returns whether elements go from rank to rank.
constexpr bool moves(Operation operation) {
  return operation != Operation::slice && operation != Operation::pad &&
         operation != Operation::apply;
}

/// Work is what is computed between two collectives: from a tensor to one of another shape, of
/// which it needs some dimensions whole (a gate: whole tokens) and can do others in shards. Never
/// linear: partial sums are added before.
struct Work {
  Shape shape;             ///< of its result
  std::vector<int> whole;  ///< dimensions
};

/// A tensor that has to get from one layout to another, perhaps through work that any rank can do
/// which holds enough of it.
struct Problem {
  Mesh mesh;
  Shape shape;
  std::optional<Work> work;
  Layout from;
  Layout to;
};

struct Step {
  Operation operation = Operation::slice;
  Layout from;
  Layout to;
  bool after_work = false;  ///< of the work's result; false: of what it reads, or no work
};

inline const Shape& shape_of(const Problem& problem, const Step& step) {
  return step.after_work && problem.work ? problem.work->shape : problem.shape;
}

/// Returns whether every rank can do its part of the work: no partial sums, the dimensions that it
/// needs whole not sliced (conditions 1 and 3 of a fusion).
bool can_apply(const Work& work, const Layout& layout);

/// Returns what converts one axis, whatever the others hold; nothing: no operation does. Requires
/// unlike placements.
///
///   from \ to   R            S(j)             P     only(d)
///   R                        slice
///   S(i)        all_gather   all_to_all       pad
///   P           all_reduce   reduce_scatter
///   only(c)                                         send_recv
std::optional<Operation> operation_between(const Placement& from, const Placement& to);

/// Returns the collective of a library that does it; none: nothing moves, or messages of their own.
std::optional<graph::CollectiveKind> collective_of(Operation operation);

/// Returns the step that turns `from` into `to` at once; nothing: more than one step does.
///
///   slice            copies -> shards
///   all_gather ...   of axes that change alike (send_recv: one axis) operation_between(); where
///                    axes nest in a dimension, those that cut last
///   many_to_many     a coordinate changes, and slices or copies of the other axes; no partial sums
///   all_to_all and many_to_many send each needed piece once; where several ranks hold a copy of
///   it, each sends an equal part of it.
std::optional<Step> conversion_between(const Layout& from, const Layout& to);

/// Returns the same of the steps that a search for the cheapest sequence is made of: collectives of
/// one axis each but for exchanges, and none that makes partial sums of what is whole.
std::optional<Step> step_between(const Layout& from, const Layout& to);

/// A piece goes from sender to receiver, which may be one rank; `reduce`: it is added to what the
/// others send it.
struct Piece {
  std::int64_t sender = 0;
  std::int64_t receiver = 0;
  Box box;
  bool reduce = false;
};
/// Holds every piece that makes up what each rank holds afterwards, its own included, in the order
/// in which sums add. An all_reduce is in its two halves, of which the second comes after the
/// first.
struct Moves {
  std::vector<Piece> pieces;
  std::vector<Piece> second;  ///< of an all_reduce: its all_gather
};
Moves moves_of(const Step& step, const Shape& shape, const Mesh& mesh);

/// Returns the most bytes that a rank sends to others.
Bytes sent_by_a_rank(const Moves& moves, const Shape& shape, const Mesh& mesh);

/// Returns "all_reduce tp".
std::string to_string(const Step& step, const Mesh& mesh);

}  // namespace orrery::layout
