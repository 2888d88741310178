// SPDX-License-Identifier: Apache-2.0
#include "estimate/step_interval.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "estimate/least_step.h"
#include "estimate/schedule_run.h"
#include "workload/plan/schedule_row.h"

namespace orrery::estimate {
namespace {

/// Pieces of work for which a schedule is run.
constexpr std::int64_t kMostPieces = 40'000;

/// Returns how many times its value a plan's step takes at the most, in 19 of 20 plans that a
/// search may ask for: where devices share links, activations are copied to the host, gradients are
/// scattered every microbatch, tokens are exchanged, and of others. Measured
/// (docs/models/estimate.md).
double band(const plan::Plan& plan, const PlanCosts& costs) {
  const bool copies = plan.offload_activations > 0;
  return !costs.own_ports ? 1.6 : copies ? 1.35 : plan.zero >= 2 ? 1.15 : plan.ep > 1 ? 1.12 : 1.07;
}

/// Returns microbatches of a schedule with fewer of them, whole rounds of interleaved chunks.
std::int64_t fewer(const plan::PipelineShape& shape, std::int64_t pieces) {
  const std::int64_t round = row_of(shape.schedule).by_rounds ? shape.stages : 1;
  const std::int64_t each = pieces_of(shape) / shape.microbatches;
  const std::int64_t wanted = std::max(pieces / each, 4 * shape.stages) / round * round;
  return std::min(wanted, shape.microbatches);
}

/// Returns what a pass's kernels lose beside a collective.
Time lost_beside(Time collective, const PassTimes& pass, double slowdown) {
  const Time beside = std::min(collective, pass.kernels * slowdown);
  const double share = pass.chain > Time(0) ? std::min(1.0, pass.kernels / pass.chain) : 1;
  return beside * (share * (1 - 1 / slowdown));
}

class Composition {
 public:
  Composition(const plan::Plan& plan, const PlanCosts& costs)
      : plan_(plan), costs_(costs), shape_(plan::pipeline_shape(plan)) {}

  Interval run() {
    ScheduleTimes times{
        .shape = shape_, .pieces = {}, .waits_for_sends = !plan_.overlap_p2p && plan_.pp > 1};
    for (std::size_t stage = 0; stage < costs_.parts.size(); ++stage) {
      times.pieces.push_back(pieces(stage));
    }
    const std::int64_t all = shape_.microbatches;
    const std::int64_t longer = pieces_of(shape_) > kMostPieces ? fewer(shape_, kMostPieces) : all;
    times.shape.microbatches = longer;
    Interval found = with(run_schedule(times), longer);
    if (longer < all) {
      const std::int64_t shorter = fewer(shape_, kMostPieces / 2);
      times.shape.microbatches = shorter;
      const Interval before = with(run_schedule(times), shorter);
      if (shorter < longer) {
        extend(found, before,
               static_cast<double>(all - longer) / static_cast<double>(longer - shorter));
      }
    }
    return found;
  }

 private:
  static void extend(Interval& interval, const Interval& before, double times) {
    for (const auto member : {&Interval::value, &Interval::compute, &Interval::exposed,
                              &Interval::bubble, &Interval::tail}) {
      interval.*member += (interval.*member - before.*member) * times;
    }
  }

  double share(std::size_t stage, std::size_t chunk) const {
    std::int64_t layers = 0;
    for (const plan::ModelPart& part : costs_.parts[stage]) {
      layers += part.layers;
    }
    const std::size_t chunks = costs_.parts[stage].size();
    return layers > 0 ? static_cast<double>(costs_.parts[stage][chunk].layers) /
                            static_cast<double>(layers)
                      : 1 / static_cast<double>(chunks);
  }

  static std::int64_t blocks(const plan::ModelPart& part) {
    return std::max<std::int64_t>(1, part.layers + (part.embedding ? 1 : 0) + (part.head ? 1 : 0));
  }

  /// Returns the time of a pass that gathers parameters for so long and reduces gradients.
  Time pass_time(const PassTimes& pass, Time gathers, Time reductions,
                 const StagePasses& load) const {
    const double slowdown = load.slowdown();
    Time time = pass.chain;
    Time beside{0};
    (plan_.overlap_param_gather ? beside : time) += gathers;
    (plan_.overlap_grad_reduce ? beside : time) += reductions;
    time += lost_beside(std::min(beside, pass.chain), pass, slowdown);
    if (plan_.overlap_param_gather && gathers > Time(0)) {  // the next block's are ahead
      time = std::max(time, gathers + reductions);
    }
    return std::max(time, pass.host);
  }

  std::vector<PieceTimes> pieces(std::size_t stage) const {
    const StagePasses& load = costs_.loads[stage];
    const StageState& state = costs_.states[stage];
    std::vector<PieceTimes> pieces;
    Time all{0};
    for (std::size_t c = 0; c < load.chunks.size(); ++c) {
      const ChunkPasses& chunk = load.chunks[c];
      const plan::ModelPart& part = costs_.parts[stage][c];
      const Time gathers = state.gathered_always * (share(stage, c) / 2);
      const Time reductions = state.reduced_always * share(stage, c);
      const Time kernels = state.kernels_always * (share(stage, c) / 2);
      const Time forward = kernels + pass_time(chunk.forward, gathers, Time(0), load);
      const Time backward = kernels + pass_time(chunk.backward, gathers, reductions, load);
      const Time weights = weight_time(chunk);
      PieceTimes& piece = pieces.emplace_back();
      piece.forward = copied(forward, chunk, part, false);
      const Time back = copied(backward, chunk, part, true);
      piece.weights = std::min(weights, back / 2);
      piece.backward = back - piece.weights;
      piece.paired_forward = paired(chunk.forward, piece.forward, load);
      piece.paired_backward = paired(chunk.backward, back, load);
      piece.activations = chunk.forward.message;
      piece.gradients = chunk.backward.message;
      all += piece.forward + back;
    }
    stretch(pieces, all, load, state);
    return pieces;
  }

  /// Returns the time of the weight gradients of schedules that split the backward. Of dualpipe,
  /// whose blocks are whole, about the forward's kernels.
  Time weight_time(const ChunkPasses& chunk) const {
    const plan::ScheduleRow& row = row_of(shape_.schedule);
    return !row.split_backwards  ? Time(0)
           : row.whole_backwards ? chunk.forward.kernels
                                 : chunk.weights;
  }

  /// A pass whose layers wait for copies of activations: in a backward the first layer for all of
  /// its own.
  Time copied(Time time, const ChunkPasses& chunk, const plan::ModelPart& part,
              bool backward) const {
    if (plan_.offload_activations <= 0 || part.layers == 0) {
      return time;
    }
    const Time copies =
        chunk.kept * plan_.offload_activations / machine::fastest_tier(costs_.machine, 1);
    const Time first = copies / part.layers;
    return backward ? first + std::max(time, copies - first) : std::max(time, copies - first);
  }

  /// Returns the pass's time beside a pass of another microbatch, whose kernels run while it waits
  /// for exchanges.
  Time paired(const PassTimes& pass, Time time, const StagePasses& load) const {
    const Time waits = pass.chain - std::min(pass.chain, pass.kernels);
    return hides_exchanges(plan_) ? time - waits + waits * (1 - 1 / load.slowdown()) : time;
  }

  /// No microbatch takes less than its busiest port does.
  void stretch(std::vector<PieceTimes>& pieces, Time all, const StagePasses& load,
               const StageState& state) const {
    PortTimes ports = load.ports;
    add_ports(ports, state.always);
    if (plan_.offload_activations > 0) {
      const Time copied =
          load.kept() * plan_.offload_activations / machine::fastest_tier(costs_.machine, 1);
      for (const CopyUse& copy : load.copies) {
        ports[copy.port] += copied * copy.load;
      }
    }
    const double more = all > Time(0) ? busiest_port(ports) / all : 0;
    if (more <= 1) {
      return;
    }
    for (PieceTimes& piece : pieces) {
      for (const auto member : {&PieceTimes::forward, &PieceTimes::backward, &PieceTimes::weights,
                                &PieceTimes::paired_forward, &PieceTimes::paired_backward}) {
        piece.*member = piece.*member * more;
      }
    }
  }

  /// Returns when the stage's reductions are over.
  Time reduced(std::size_t stage, const StageEnds& ends, std::int64_t microbatches) const {
    const StagePasses& load = costs_.loads[stage];
    const StageState& state = costs_.states[stage];
    Time end = ends.end;
    if (!plan_.overlap_grad_reduce) {
      return end + state.reduced;
    }
    Time lane{0};
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < load.chunks.size(); ++c) {
      order.push_back(c);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return ends.last_backward[a] < ends.last_backward[b];
    });
    for (const std::size_t c : order) {
      const std::int64_t count = blocks(costs_.parts[stage][c]);
      const bool weights = plan::splits_backward(shape_.schedule);
      const Time pass = weights ? load.chunks[c].weights : load.chunks[c].backward.chain;
      const Time time = (state.reduced + state.reduced_always) * share(stage, c);
      const Time begin = ends.last_backward[c] - pass + pass / count;
      const Time lost = lost_beside(std::min(time, pass), load.chunks[c].backward, load.slowdown());
      lane = std::max(std::max(lane, begin) + time, ends.last_backward[c] + lost + time / count);
      end += lost;
    }
    return std::max({end, lane, ends.begin + state.reduced_always * microbatches + state.reduced});
  }

  Interval with(const std::vector<StageEnds>& ends, std::int64_t microbatches) const {
    std::size_t busiest = 0;
    Time together{0};
    Time after{0};
    for (std::size_t s = 0; s < ends.size(); ++s) {
      busiest = ends[s].busy > ends[busiest].busy ? s : busiest;
      together = std::max(together, reduced(s, ends[s], microbatches));
      const StageState& state = costs_.states[s];
      const Time gathered = plan_.overlap_param_gather ? Time(0) : state.gathered;
      after = std::max(after, state.finish + state.updated + gathered);
    }
    Interval found;
    found.value = together + after;
    found.compute = costs_.loads[busiest].kernels * microbatches;
    found.exposed = ends[busiest].busy - found.compute;
    found.bubble = ends[busiest].end - ends[busiest].busy;
    found.tail = found.value - ends[busiest].end;
    return found;
  }

  const plan::Plan& plan_;
  const PlanCosts& costs_;
  plan::PipelineShape shape_;
};

/// Returns the least times of a stage's pieces.
std::vector<PieceTimes> least_pieces(const plan::Plan& plan, const PlanCosts& costs,
                                     std::size_t stage) {
  const bool hides = hides_exchanges(plan);
  const bool splits = plan::splits_backward(plan.schedule);
  std::vector<PieceTimes> pieces;
  const std::vector<ChunkPasses>& chunks = costs.loads[stage].chunks;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const ChunkPasses& chunk = chunks[c];
    const Time copy =
        hides ? Time(0) : least_copy(plan, costs.parts[stage][c].layers, chunk.kept, costs.machine);
    PieceTimes& piece = pieces.emplace_back();
    piece.paired_forward = std::max(chunk.forward.least, copy);
    piece.paired_backward = std::max(chunk.backward.least, copy);
    piece.weights = splits ? chunk.weights : Time(0);
    piece.forward = piece.paired_forward;
    piece.backward = splits ? chunk.backward.least - piece.weights : piece.paired_backward;
    if (costs.lone != nullptr) {
      piece.forward = std::max(piece.forward, chunk.forward.chain);
      piece.backward = std::max(piece.backward, chunk.backward.chain);
    }
    if (!plan.fuse_communication) {
      piece.activations = chunk.forward.least_message;
      piece.gradients = chunk.backward.least_message;
    }
  }
  return pieces;
}

}  // namespace

Time least_interval(const plan::Plan& plan, const PlanCosts& costs) {
  const Time closed = least_step(plan, costs);
  if (plan.pp == 1 || row_of(plan.schedule).both_ends) {  // whose blocks are whole
    return closed;
  }
  ScheduleTimes times{.shape = plan::pipeline_shape(plan), .pieces = {}};
  Time least_work = Time::max();
  Time finish = Time::max();
  for (std::size_t stage = 0; stage < costs.parts.size(); ++stage) {
    times.pieces.push_back(least_pieces(plan, costs, stage));
    Time work{0};
    for (const PieceTimes& piece : times.pieces.back()) {
      work += piece.paired_forward +
              (costs.lone != nullptr ? piece.paired_backward : piece.backward + piece.weights);
    }
    least_work = std::min(least_work, work);
    finish = std::min(finish, costs.states[stage].finish);
  }
  const std::int64_t all = times.shape.microbatches;
  if (pieces_of(times.shape) > kMostPieces) {
    times.shape.microbatches = fewer(times.shape, kMostPieces);
  }
  Time end{0};
  for (const StageEnds& stage : run_schedule(times)) {
    end = std::max(end, stage.end);
  }
  return std::max(closed, end + least_work * (all - times.shape.microbatches) + finish);
}

Interval composed_interval(const plan::Plan& plan, const PlanCosts& costs) {
  Interval interval = Composition(plan, costs).run();
  interval.most = interval.value * band(plan, costs);
  return interval;
}

}  // namespace orrery::estimate
