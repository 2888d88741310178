// SPDX-License-Identifier: Apache-2.0
/// All-gathers of parameters that ZeRO has split (data_axes.h says over which ranks).
///
///   zero  overlap_param_gather   gathers
///   1, 2  no                     after the update, at the end of the step (pass optimizer)
///   1, 2  yes                    of updated parameters, at the start of the step, see below
///   3     no                     block by block before every forward, and before every backward
///                                with reshard_after_forward; issued when compute has come that
///                                far, and compute waits
///   3     yes                    the same, but each block's is issued before the block before it
///                                runs
///
/// zero 1 and 2 with overlap: parameters are whole afterwards, so nothing limits how many gathers
/// wait in the queue. The first chunk of a stage begins its first microbatch by queueing the
/// gathers of all its blocks and then of the stage's second chunk; every later chunk begins by
/// queueing those of the chunk after it. No gather waits for compute or for messages. A block of
/// the first chunk waits for its own gathers, a later chunk for all of its own. With buckets
/// (plan::bucket_size) a gather is of one bucket of gradients, which holds whole blocks, the last
/// ones first; its first block waits for it. Every pass
/// therefore runs at most as late as if all gathers of the step had run before it: hiding them
/// costs no more than one gather of all parameters in front of the step would. Source:
/// Megatron-Core, schedules.py (param_sync_func of chunks 0 and 1 before the first microbatch, of
/// chunk c + 1 when c begins) and distributed_data_parallel.py (start_param_sync queues all
/// buckets).
#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

#include "workload/parallel/passes.h"
#include "workload/plan/data_axes.h"

namespace orrery::parallel {
namespace {

/// Makes the gathers of blocks.
class BlockGather {
 public:
  BlockGather(const Draft& draft, const Context& context, When when, plan::StepPhase phase)
      : draft_(draft), context_(context), when_(when), phase_(phase) {}

  When when() const { return when_; }
  plan::StepPhase phase() const { return phase_; }

  void add(const ChunkDraft& chunk, int block, std::vector<Step>& steps) const {
    for (const plan::Owner owner : plan::kOwners) {
      add(chunk, {block, block + 1, owner}, steps);
    }
  }

  /// Gathers the buckets of a chunk in the order in which forwards need them.
  void add_buckets(const ChunkDraft& chunk, std::vector<Step>& steps) const {
    const Bytes least = plan::bucket_size(context_.plan);
    std::vector<Bucket> buckets;
    for (const plan::Owner owner : plan::kOwners) {
      Bytes waiting{0};
      int end = static_cast<int>(chunk.blocks.size());
      for (int block = end - 1; block >= 0; --block) {
        waiting +=
            graph::bytes_of(context_.plan.grad_reduce_type,
                            block_parameters(draft_, context_, kind_of(chunk, block), owner));
        if (block == 0 || waiting >= least) {
          buckets.push_back({block, end, owner});
          end = block;
          waiting = Bytes(0);
        }
      }
    }
    std::ranges::stable_sort(buckets, {}, &Bucket::first);
    for (const Bucket& bucket : buckets) {
      add(chunk, bucket, steps);
    }
  }

 private:
  /// Blocks [first, end) of a chunk.
  struct Bucket {
    int first = 0;
    int end = 0;
    plan::Owner owner = plan::Owner::dense;
  };

  static plan::BlockKind kind_of(const ChunkDraft& chunk, int block) {
    return chunk.blocks[static_cast<std::size_t>(block)].kind;
  }

  void add(const ChunkDraft& chunk, const Bucket& bucket, std::vector<Step>& steps) const {
    const auto hop = plan::parameter_hop(context_.plan, bucket.owner);
    Bytes bytes{0};
    for (int block = bucket.first; block < bucket.end; ++block) {
      bytes += gathered_parameter_bytes(draft_, context_, kind_of(chunk, block), bucket.owner);
    }
    if (!hop || bytes == Bytes(0)) {
      return;
    }
    Step step =
        collective_step(hop->axis, graph::CollectiveKind::all_gather, bytes / hop->divisor, phase_);
    step.reads = step.writes = Value::none;
    step.when = when_;
    step.gathers_block = bucket.first;
    steps.push_back(std::move(step));
  }

  const Draft& draft_;
  const Context& context_;
  When when_;
  plan::StepPhase phase_;
};

std::vector<int> block_order(const ChunkDraft& chunk, bool reversed) {
  std::vector<int> order(chunk.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  if (reversed) {
    std::reverse(order.begin(), order.end());
  }
  return order;
}

/// Sharded parameters (zero 3). order: block numbers as they run. before: the step list in front of
/// a block.
void gather_concurrently(const BlockGather& gather, bool ahead, ChunkDraft& chunk,
                         const std::vector<int>& order, std::vector<Step> Block::*before) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::vector<Step>& steps = chunk.blocks[static_cast<std::size_t>(order[i])].*before;
    if (i == 0 && !ahead) {  // only when compute has come this far
      steps.push_back(wait_step("block_reached", Value::flow, gather.phase()));
      steps.back().when = gather.when();
    }
    if (i == 0 || !ahead) {
      gather.add(chunk, order[i], steps);
    }
    if (ahead && i + 1 < order.size()) {
      gather.add(chunk, order[i + 1], steps);
    }
  }
}

/// Chunks of a stage in the order in which their first microbatches begin.
std::vector<std::size_t> chunk_order(const plan::PipelineShape& shape, std::int64_t stage) {
  std::vector<std::size_t> order;
  const plan::StageSchedule schedule(shape, stage);
  const auto chunks = static_cast<std::size_t>(shape.chunks);
  for (std::int64_t i = 0; i < schedule.size() && order.size() < chunks; ++i) {
    const plan::PipelineSlot slot = schedule[i];
    if (slot.direction == plan::Direction::forward && slot.microbatch == 0) {
      order.push_back(static_cast<std::size_t>(slot.chunk));
    }
  }
  return order;
}

/// Updated parameters of one stage (zero 1 and 2).
class UpdatedParameters {
 public:
  explicit UpdatedParameters(const BlockGather& gather) : gather_(gather) {}

  void add(RoleDraft& role, const std::vector<std::size_t>& order) const {
    std::vector<Step> queued;  // by the chunk before
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::vector<Step> steps = i == 0 ? gathers(role.chunks[order[i]]) : std::vector<Step>();
      const std::vector<graph::StreamIndex> streams = streams_of(queued);
      drain(streams, steps);
      queued = i + 1 < order.size() ? gathers(role.chunks[order[i + 1]]) : std::vector<Step>();
      for (Step step : queued) {
        step.gathers_block = -1;  // no block of this template waits for it
        steps.push_back(std::move(step));
      }
      wait(streams.size(), steps);
      std::vector<Step>& begin = role.chunks[order[i]].forward_begin;
      begin.insert(begin.begin(), steps.begin(), steps.end());
    }
  }

 private:
  static constexpr std::array kDrained = {Value::even, Value::odd};  // a dense and an expert stream

  std::vector<Step> gathers(const ChunkDraft& chunk) const {
    std::vector<Step> steps;
    gather_.add_buckets(chunk, steps);
    return steps;
  }

  static std::vector<graph::StreamIndex> streams_of(const std::vector<Step>& steps) {
    std::vector<graph::StreamIndex> streams;
    for (const Step& step : steps) {
      if (std::find(streams.begin(), streams.end(), step.node.stream) == streams.end()) {
        streams.push_back(step.node.stream);
      }
    }
    return streams;
  }

  /// Streams are in order: what was queued before this, the chunk before it queued.
  void drain(const std::vector<graph::StreamIndex>& streams, std::vector<Step>& steps) const {
    for (std::size_t i = 0; i < streams.size(); ++i) {
      Step step = wait_step("gathers_done", Value::none, gather_.phase());
      step.node.stream = streams[i];
      step.writes = kDrained[i];
      step.when = gather_.when();
      steps.push_back(std::move(step));
    }
  }

  void wait(std::size_t streams, std::vector<Step>& steps) const {
    for (std::size_t i = 0; i < streams; ++i) {
      steps.push_back(wait_step("parameters_ready", kDrained[i], gather_.phase()));
      steps.back().when = gather_.when();
    }
  }

  const BlockGather& gather_;
};

void gather_sharded(Draft& draft, const Context& context) {
  const plan::Plan& plan = context.plan;
  const BlockGather forward(draft, context, When::always, plan::StepPhase::forward);
  const BlockGather backward(draft, context, When::always, plan::StepPhase::backward);
  for (RoleDraft& role : draft.roles) {
    for (ChunkDraft& chunk : role.chunks) {
      gather_concurrently(forward, plan.overlap_param_gather, chunk, block_order(chunk, false),
                          &Block::before_forward);
      if (plan.reshard_after_forward) {
        gather_concurrently(backward, plan.overlap_param_gather, chunk, block_order(chunk, true),
                            &Block::before_backward);
      }
    }
  }
}

}  // namespace

void passes::zero(Draft& draft, const Context& context) {
  const plan::Plan& plan = context.plan;
  if (plan.offload_params != plan::Offload::none) {
    return;  // pass remote
  }
  if (plan.zero == 3) {
    gather_sharded(draft, context);
  } else if (plan.zero > 0 && plan.overlap_param_gather) {
    const BlockGather gather(draft, context, When::first_microbatch, plan::StepPhase::forward);
    const UpdatedParameters updated(gather);
    for (std::size_t stage = 0; stage < draft.roles.size(); ++stage) {
      updated.add(draft.roles[stage], chunk_order(draft.shape, static_cast<std::int64_t>(stage)));
    }
  }
}

}  // namespace orrery::parallel
