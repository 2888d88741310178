// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "workload/parallel/chunk_templates.h"
#include "workload/parallel/draft.h"
#include "workload/parallel/template_builder.h"
#include "workload/plan/shares.h"

namespace orrery::parallel {
namespace {

/// Template numbers of one chunk; those that the schedule does not use are -1.
struct ChunkTemplates {
  int forward_first = -1;
  int forward = -1;
  int backward = -1;
  int backward_last = -1;
  int input_gradient = -1;
  int weight_gradient = -1;
  int weight_gradient_last = -1;
  std::vector<int> pair;  ///< by chunk of the backward beside this one's forward
};

struct RoleTemplates {
  plan::StageSchedule schedule;
  std::int64_t last_microbatch = 0;
  std::vector<ChunkTemplates> chunks;
  int finish = 0;
};

/// The pipeline schedule, then the end of the step.
class TrainingStep final : public graph::IssueList {
 public:
  explicit TrainingStep(std::vector<RoleTemplates> roles) : roles_(std::move(roles)) {}

  std::unique_ptr<graph::Source> restart() const override {
    return std::make_unique<TrainingStep>(*this);
  }

  std::int64_t length(int role) const override {
    return roles_[static_cast<std::size_t>(role)].schedule.size() + 1;
  }

  graph::Instance at(int role, std::int64_t index) const override {
    const RoleTemplates& templates = roles_[static_cast<std::size_t>(role)];
    if (index == templates.schedule.size()) {
      return {.template_index = templates.finish};
    }
    const plan::PipelineSlot work = templates.schedule[index];
    const ChunkTemplates& chunk = templates.chunks[static_cast<std::size_t>(work.chunk)];
    return graph::Instance{template_of(chunk, work, work.microbatch == templates.last_microbatch),
                           static_cast<int>(work.chunk), work.microbatch};
  }

  /// Returns the period of the schedule, without the microbatches at its ends that run other
  /// templates.
  std::optional<graph::Period> period(int role) const override {
    auto period = roles_[static_cast<std::size_t>(role)].schedule.period();
    if (!period) {
      return std::nullopt;
    }
    const auto repeats = [&](std::int64_t first) {
      for (std::int64_t i = first; i < first + period->length; ++i) {
        graph::Instance later = at(role, i + period->length);
        later.microbatch -= period->microbatches;
        if (later != at(role, i)) {
          return false;
        }
      }
      return true;
    };
    const auto two_left = [&] { return period->first + 2 * period->length <= period->end; };
    while (two_left() && !repeats(period->first)) {
      period->first += period->length;
    }
    while (two_left() && !repeats(period->end - 2 * period->length)) {
      period->end -= period->length;
    }
    return two_left() ? period : std::nullopt;
  }

 private:
  static int template_of(const ChunkTemplates& chunk, const plan::PipelineSlot& work, bool last) {
    switch (work.direction) {
      case plan::Direction::forward:
        return work.microbatch == 0 ? chunk.forward_first : chunk.forward;
      case plan::Direction::backward:
        return last ? chunk.backward_last : chunk.backward;
      case plan::Direction::input_gradient:
        return chunk.input_gradient;
      case plan::Direction::weight_gradient:
        return last ? chunk.weight_gradient_last : chunk.weight_gradient;
      case plan::Direction::forward_backward:
        return chunk.pair[static_cast<std::size_t>(work.backward_chunk)];
    }
    assert(false && "a direction");
    return 0;
  }

  std::vector<RoleTemplates> roles_;
};

/// Chunks of a forward and of a backward.
using ChunkPairs = std::set<std::pair<std::size_t, std::size_t>>;

/// Returns the pairs that are one piece of work on some stage: after the warm-up they repeat with
/// every round of stages x chunks.
ChunkPairs chunk_pairs(const plan::PipelineShape& shape) {
  if (shape.schedule == plan::Schedule::dualpipe) {
    return {{0, 1}, {1, 0}};
  }
  ChunkPairs pairs;
  const std::int64_t round = shape.stages * shape.chunks;
  for (std::int64_t stage = 0; shape.pairs && stage < shape.stages; ++stage) {
    const plan::StageSchedule schedule(shape, stage);
    const std::int64_t first = plan::warmup(shape, stage);
    const std::int64_t end = std::min(first + round, shape.microbatches * shape.chunks);
    for (std::int64_t i = first; i < end; ++i) {
      const plan::PipelineSlot work = schedule[i];
      pairs.emplace(static_cast<std::size_t>(work.chunk),
                    static_cast<std::size_t>(work.backward_chunk));
    }
  }
  return pairs;
}

/// Lists the templates of one role.
class RoleLists {
 public:
  RoleLists(const Draft& draft, std::size_t stage, const ChunkPairs& pairs)
      : draft_(draft), role_(draft.role(stage)), pairs_(pairs) {}

  RoleTemplates run(std::size_t stage) {
    RoleTemplates templates{.schedule = {draft_.shape, static_cast<std::int64_t>(stage)},
                            .last_microbatch = draft_.shape.microbatches - 1,
                            .chunks = {}};
    for (std::size_t c = 0; c < role_.chunks.size(); ++c) {
      templates.chunks.push_back(append_chunk(c));
    }
    append_pairs(templates);
    templates.finish = append(end_of_step());
    return templates;
  }

  std::vector<StepList> take_program() { return std::move(program_); }

 private:
  StepList end_of_step() const {
    StepList list{.name = "end of step", .lanes = {{}}, .steps = {}};
    for (const Step& step : role_.finish) {
      list.steps.push_back({.step = &step});
    }
    return list;
  }

  ChunkTemplates append_chunk(std::size_t number) {
    const ChunkDraft& chunk = role_.chunks[number];
    const plan::Schedule schedule = draft_.shape.schedule;
    const std::string of_chunk = suffix(number);
    ChunkTemplates templates;
    templates.forward_first = templates.forward =
        append(forward_steps(draft_, chunk, "forward" + of_chunk, When::always));
    if (has_variant(draft_, chunk, When::first_microbatch)) {
      templates.forward_first =
          append(forward_steps(draft_, chunk, "first forward" + of_chunk, When::first_microbatch));
    }
    if (!plan::splits_backward(schedule) || schedule == plan::Schedule::dualpipe) {
      append_backward(chunk, BackwardPart::whole, "backward" + of_chunk, templates.backward,
                      templates.backward_last);
    }
    if (plan::splits_backward(schedule)) {
      templates.input_gradient = append(backward_steps(draft_, chunk, BackwardPart::input_gradients,
                                                       "input gradients" + of_chunk, When::always));
      append_backward(chunk, BackwardPart::weight_gradients, "weight gradients" + of_chunk,
                      templates.weight_gradient, templates.weight_gradient_last);
    }
    templates.pair.assign(role_.chunks.size(), -1);
    return templates;
  }

  void append_pairs(RoleTemplates& templates) {
    for (const auto& [ahead, back] : pairs_) {
      templates.chunks[ahead].pair[back] =
          append(pair_steps(draft_, role_.chunks[ahead], role_.chunks[back],
                            "forward" + suffix(ahead) + ", backward" + suffix(back)));
    }
  }

  void append_backward(const ChunkDraft& chunk, BackwardPart part, const std::string& name,
                       int& usual, int& last) {
    last = usual = append(backward_steps(draft_, chunk, part, name, When::always));
    if (has_variant(draft_, chunk, When::last_microbatch)) {
      last = append(backward_steps(draft_, chunk, part, "last " + name, When::last_microbatch));
    }
  }

  std::string suffix(std::size_t chunk) const {
    return draft_.shape.chunks > 1 ? " chunk " + std::to_string(chunk) : std::string();
  }

  int append(StepList list) {
    program_.push_back(std::move(list));
    return static_cast<int>(program_.size()) - 1;
  }

  const Draft& draft_;
  const RoleDraft& role_;
  const ChunkPairs& pairs_;
  std::vector<StepList> program_;
};

/// Replicas of uneven shares in blocks that have as many each: consecutive ones, blocks of one
/// size.
struct ReplicaBlocks {
  std::vector<std::int64_t> shares;  ///< by block; empty: all replicas do the same
  graph::Digit digit;                ///< of the rank number: the block

  explicit ReplicaBlocks(const Draft& draft) {
    if (draft.shares.empty()) {
      return;
    }
    const graph::Digit replicas = plan::replica_digit(draft.layout);
    std::int64_t size = replicas.size;
    for (std::int64_t i = 1; i < replicas.size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      size = draft.shares[at] == draft.shares[at - 1] ? size : std::gcd(size, i);
    }
    digit = {.size = replicas.size / size, .stride = replicas.stride * size};
    for (std::int64_t block = 0; block < digit.size; ++block) {
      shares.push_back(draft.shares[static_cast<std::size_t>(block * size)]);
    }
  }
};

/// Allocates what the device holds between the first and the last kernel of the update.
void allocate_end(const RoleDraft& role, TemplateBuilder& builder) {
  const std::vector<graph::Node>& nodes = builder.nodes();
  const auto updates = [](const graph::Node& node) {
    return node.kind == graph::Node::Kind::compute;
  };
  const auto first = std::find_if(nodes.begin(), nodes.end(), updates) - nodes.begin();
  const auto after = nodes.rend() - std::find_if(nodes.rbegin(), nodes.rend(), updates);
  builder.allocate("reduction", plan::MemoryCategory::buffers, role.reduction, 0, 0);
  builder.allocate("update", plan::MemoryCategory::optimizer, role.update,
                   static_cast<std::size_t>(first), static_cast<std::size_t>(after - 1));
}

}  // namespace

graph::Template built(const StepList& list, const Draft& draft, const RoleDraft& role) {
  TemplateBuilder builder(list, draft.layout);
  if (list.lanes.front().chunk == nullptr) {
    allocate_end(role, builder);
    return builder.finish();
  }
  for (std::size_t lane = 0; lane < list.lanes.size(); ++lane) {
    const StepLane& one = list.lanes[lane];
    builder.allocate(one.chunk->memory[static_cast<std::size_t>(one.pass)], lane);
  }
  builder.allocate_messages(role.messages);
  return builder.finish();
}

StepLists list_steps(const Draft& draft) {
  StepLists lists;
  std::vector<RoleTemplates> roles;
  const ChunkPairs pairs = chunk_pairs(draft.shape);
  std::vector<std::size_t> first_with;  // by program: the stage that it was made for
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(draft.shape.stages); ++stage) {
    const RoleDraft& own = draft.role(stage);
    const auto same = std::find_if(first_with.begin(), first_with.end(), [&](std::size_t other) {
      return &draft.role(other) == &own || draft.role(other) == own;
    });
    lists.program_of.push_back(static_cast<std::size_t>(same - first_with.begin()));
    if (same != first_with.end()) {
      roles.push_back(roles[*same]);
      roles.back().schedule = {draft.shape, static_cast<std::int64_t>(stage)};
      continue;
    }
    first_with.push_back(stage);
    RoleLists role(draft, stage, pairs);
    roles.push_back(role.run(stage));
    lists.programs.push_back(role.take_program());
  }
  const ReplicaBlocks blocks(draft);
  const std::size_t stages = roles.size();
  for (std::size_t block = 0; block < blocks.shares.size(); ++block) {
    plan::PipelineShape shape = draft.shape;
    shape.microbatches = blocks.shares[block];
    for (std::size_t stage = 0; stage < stages; ++stage) {
      RoleTemplates role = roles[stage];
      role.schedule = {shape, static_cast<std::int64_t>(stage)};
      role.last_microbatch = shape.microbatches - 1;
      roles.push_back(std::move(role));
    }
  }
  if (!blocks.shares.empty()) {
    roles.erase(roles.begin(), roles.begin() + static_cast<std::ptrdiff_t>(stages));
  }
  lists.source = std::make_shared<TrainingStep>(std::move(roles));
  return lists;
}

namespace {

/// A role for every stage and block of replicas.
void split_roles(const ReplicaBlocks& blocks, graph::Workload& workload) {
  const std::vector<graph::Role> stages = std::move(workload.roles);
  workload.roles.clear();
  for (std::size_t block = 0; block < blocks.shares.size(); ++block) {
    for (graph::Role role : stages) {
      role.name += fmt::format(", {} microbatches", blocks.shares[block]);
      workload.roles.push_back(std::move(role));
    }
  }
  workload.role_map.digits.push_back(blocks.digit);
}

}  // namespace

graph::Workload assemble(const Draft& draft) {
  const StepLists lists = list_steps(draft);
  graph::Workload workload = plan::step_workload(draft.layout);
  workload.host_dispatch = draft.host_dispatch;
  workload.programs.resize(lists.programs.size());
  for (std::size_t stage = 0; stage < draft.roles.size(); ++stage) {
    const std::size_t program = lists.program_of[stage];
    workload.roles[stage].program = program;
    if (stage < draft.states.size()) {
      workload.roles[stage].state = draft.states[stage];
    }
    if (stage < draft.layers.size()) {
      workload.roles[stage].layers = draft.layers[stage];
    }
    std::vector<graph::Template>& templates = workload.programs[program].templates;
    for (std::size_t i = templates.size(); i < lists.programs[program].size(); ++i) {
      templates.push_back(built(lists.programs[program][i], draft, draft.roles[stage]));
    }
  }
  if (const ReplicaBlocks blocks(draft); !blocks.shares.empty()) {
    split_roles(blocks, workload);
  }
  workload.source = lists.source;
  return workload;
}

}  // namespace orrery::parallel
