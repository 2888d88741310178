// SPDX-License-Identifier: Apache-2.0
/// Says how the ranks of communicators hold the tensors of a block, between operators and in them,
/// and which collectives convert the one into the other.
///
/// An axis is a communicator over which operators of the block are cut. On each axis a tensor is
/// held in one way between operators and, where an operator is cut, needed or made in another
/// (graph/layout.h: R, S, P). What differs is converted where the tensor enters the operator and
/// where it leaves it, in both passes:
///
///   forward    of what it reads     between.value -> inside.value         before it
///              of what it writes    inside.value -> between.value         after it
///   backward   of what it writes    between.gradient -> inside.gradient   before it
///              of what it reads     inside.gradient -> between.gradient   after it
///
/// Axes of one tensor nest: on the way in they are converted in their order, on the way out in
/// reverse. Bytes of a collective are those of graph::Node::bytes: of gathers and scatters the
/// gathered buffer, of sums and exchanges a rank's own one.
///
/// Tokens are the outermost dimension, so gathers and sums of them move runs of memory. Where an
/// exchange cuts columns, a kernel packs them (collective/layout/packing.h); rows that go to other
/// ranks' experts are packed by the permutations around them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "collective/layout/packing.h"
#include "graph/layout.h"
#include "graph/token_route.h"
#include "graph/workload.h"
#include "workload/lower/step.h"
#include "workload/plan/axes.h"

namespace orrery::lower {

/// A dimension that shards of a tensor divide.
enum ShardOf : std::uint8_t { kTokens, kColumns, kExperts };

/// A value and its gradient on one axis.
struct Placed {
  graph::Placement value;
  graph::Placement gradient;
};

/// Says when a gradient that leaves an operator is converted.
enum class Issue : std::uint8_t {
  concurrent,  ///< beside the weight gradient
  waited,      ///< before it
  last,        ///< after all work of the operator, as in forward passes what it makes
};

/// A communicator and how conversions over it are made.
struct CutAxis {
  plan::Axis axis = plan::Axis::tp;
  std::int64_t size = 1;
  /// A tensor's bytes are those of all ranks of the axis together; false: of one.
  bool counts_all = false;
  /// The copy for the backward pass is held as between operators, and converted again there: for
  /// products beside the input gradient, whose weight gradient alone reads it.
  bool keeps_shards = false;
  /// Rows go to other ranks, and all kernels of the operator work on those that come; false: what
  /// quantises its operands works before they are converted, which then moves narrow ones.
  bool exchanges_rows = false;
  Issue issue = Issue::concurrent;
  std::int64_t chunks = 1;  ///< of a product's rows, each with a collective of its own
  /// Says that engines copy a chunk for each rank between buffers of the ranks instead.
  bool copies_chunks = false;
  std::optional<graph::TokenRoute> route{};  ///< of all-to-alls that merge copies
};

/// Says how tensors that cross from one operator to another are held on one axis.
struct AxisLayout {
  std::size_t axis = 0;  ///< of Choice::axes
  Placed between;
  Placed inside;
};

/// Tensors that an operator needs or makes otherwise than they are held between operators.
struct Border {
  Bytes bytes{0};  ///< of all of them, as held between operators
  std::vector<AxisLayout> axes;

  bool empty() const { return axes.empty(); }
};

/// A sum over an axis in the middle of an operator's work.
struct InnerSum {
  std::size_t axis = 0;
  int count = 0;
  Bytes bytes{0};
};

/// Attention over keys that come in a ring: a piece of the kernel for those of each rank.
struct KeyRing {
  std::size_t axis = 0;
  std::int64_t size = 1;   ///< 1: no ring
  std::int64_t heads = 1;  ///< a rank has all queries of 1/heads of its heads
  Bytes bytes{0};          ///< keys and values of one rank
};

struct OperatorLayouts {
  Border reads;
  Border writes;
  InnerSum sums;
  KeyRing ring;
  bool first_reader = false;        ///< of the products that take all columns of what it reads
  bool after_norm = false;          ///< and the operator before it is a norm
  bool input_converted = false;     ///< what makes its input writes the product's operand
  bool gradient_converted = false;  ///< and so does what makes its result's gradient
  double narrower_result = 0;       ///< share of its bytes that it does not write, for that
  double narrower_gradient = 0;     ///< of its backward's bytes
  Made result{};
  Made gradient{};  ///< what its input gradient's kernel makes
};

/// A Choice says how one rank's operators of a block are cut.
struct Choice {
  std::vector<CutAxis> axes;
  std::vector<OperatorLayouts> operators;
  bool shared_concurrent = false;  ///< the shared expert runs beside the exchange of tokens
  bool shared_in_flight = false;   ///< and its sum may be on its way when that is over
};

struct Conversion {
  std::size_t axis = 0;
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes bytes{0};
  layout::Passes packing{};  ///< of kernels beside an exchange over those bytes
};

enum class Crossing : std::uint8_t { value_in, value_out, gradient_in, gradient_out };

/// Returns the conversions in their order; none over axes of one rank.
std::vector<Conversion> conversions(const Choice& choice, const Border& border, Crossing crossing);

/// Returns how many ranks' shards all-gathers bring together; 1: none.
std::int64_t gathered(const Choice& choice, const std::vector<Conversion>& steps);

}  // namespace orrery::lower
