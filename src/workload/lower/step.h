// SPDX-License-Identifier: Apache-2.0
/// A step is a node of a template before its place is known: it says what it reads and writes
/// instead of naming the nodes that it waits for.
///
/// A step waits for the last writer of what it reads; as with torch.distributed, a collective or
/// send also waits for the compute issued before it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/tensor.h"
#include "graph/workload.h"
#include "workload/plan/axes.h"

namespace orrery::lower {

/// A Value is what flows between the steps of one template.
enum class Value : std::uint8_t {
  none,
  flow,     ///< activations forward, their gradient backward
  input,    ///< the saved input of a GEMM, gathered again for its weight gradient
  message,  ///< a message or reduction that only a wait reads
  beside,   ///< what runs beside an exchange: the shared expert
  even,     ///< what arrives in even steps of a ring or pieces of a gather
  odd,      ///< and in odd ones
  shards,   ///< of parameters that were loaded from remote memory
  stored,   ///< gradients on their way to remote memory, and when all of them are there
};
inline constexpr int kValueCount = 9;

/// Returns what piece number `piece` of a ring or gather arrives as.
constexpr Value arrival(std::int64_t piece) {
  return piece % 2 == 0 ? Value::even : Value::odd;
}

/// Says in which instances of its template a step takes part.
enum class When : std::uint8_t { always, first_microbatch, last_microbatch };

/// Says in which steps of a run a step takes part: number `at`, and every `every`-th after it.
struct Turn {
  std::int32_t every = 1;
  std::int32_t at = 0;

  bool holds(std::int64_t step) const { return step >= at && (step - at) % every == 0; }

  friend bool operator==(const Turn&, const Turn&) = default;
};

/// An instance of a template as far as steps ask: its place among its step's microbatches, and the
/// number of its step.
struct Moment {
  Moment(When place, std::int64_t step_number = 0) : when(place), step(step_number) {}

  When when;
  std::int64_t step;
};

/// Says which part of its operator's work a step is.
enum class Part : std::uint8_t { other, forward, input_gradient, weight_gradient, accumulate };

/// A tensor of one rank: its bytes, and how the ranks of a communicator hold it together; none:
/// every rank has all of it.
struct Made {
  Bytes bytes{0};
  std::optional<graph::Sharding> held{};

  friend bool operator==(const Made&, const Made&) = default;
};

struct Step {
  graph::Node node;  ///< `after` is filled when the step becomes a node
  Value reads = Value::none;
  Value writes = Value::none;
  When when = When::always;
  Turn turn{};
  Part part = Part::other;
  int source = -1;             ///< index into the block's operators
  Made made{};                 ///< of an operator's kernel: what it writes; no bytes: unknown
  bool after_compute = false;  ///< waits for the compute issued before it, as collectives do
  int gathers_block = -1;      ///< brings the parameters of this block of the chunk
  int before_block = -1;       ///< a kernel that waits for the gathers of this block of the chunk

  friend bool operator==(const Step&, const Step&) = default;
};

inline bool takes_part(const Step& step, const Moment& moment) {
  return (step.when == When::always || step.when == moment.when) && step.turn.holds(moment.step);
}

struct BlockSteps {
  std::vector<Step> forward;
  std::vector<Step> recompute;  ///< before the whole backward
  std::vector<Step> backward;
};

/// Makers of steps, with the stream that belongs to the kind of node.
Step collective_step(plan::Axis axis, graph::CollectiveKind kind, Bytes bytes,
                     plan::StepPhase phase);
Step compute_step(graph::Operator op, plan::StepPhase phase);
/// Holds the compute stream until what it reads is there.
Step wait_step(std::string name, Value reads, plan::StepPhase phase);

}  // namespace orrery::lower
