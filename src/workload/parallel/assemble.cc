// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "base/lists.h"
#include "workload/parallel/chunk_templates.h"
#include "workload/parallel/draft.h"
#include "workload/parallel/template_builder.h"
#include "workload/parallel/training_run.h"
#include "workload/plan/schedule_row.h"
#include "workload/plan/shares.h"

namespace orrery::parallel {
namespace {

/// Chunks of a forward and of a backward.
using ChunkPairs = std::set<std::pair<std::size_t, std::size_t>>;

/// Returns the pairs that are one piece of work on some stage: after the warm-up they repeat with
/// every round of stages x chunks.
ChunkPairs chunk_pairs(const plan::PipelineShape& shape) {
  if (row_of(shape.schedule).both_ends) {
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

bool same_steps(const StepList& a, const StepList& b) {
  return std::ranges::equal(a.steps, b.steps, [](const PlacedStep& x, const PlacedStep& y) {
    return x.step == y.step && x.block == y.block && x.lane == y.lane;
  });
}

/// Lists the templates of one role, once for each sort of step of the run.
class RoleLists {
 public:
  RoleLists(const Draft& draft, std::size_t stage, const ChunkPairs& pairs)
      : draft_(draft), role_(draft.roles[stage]), pairs_(pairs) {}

  /// Lists the templates of step number `step` and of all that are like it.
  RoleTemplates run(std::size_t stage, std::int64_t step) {
    step_ = step;
    place_ = 0;
    RoleTemplates templates{.schedule = {draft_.shape, static_cast<std::int64_t>(stage)},
                            .last_microbatch = draft_.shape.microbatches - 1,
                            .chunks = {}};
    for (std::size_t c = 0; c < role_.chunks.size(); ++c) {
      templates.chunks.push_back(append_chunk(c));
    }
    append_pairs(templates);
    templates.finish = append(list_of(role_.finish, "end of step"));
    return templates;
  }

  /// The end of the run; -1: none.
  int append_drain() {
    step_ = 0;
    place_ = SIZE_MAX;
    return role_.drain.empty() ? -1 : append(list_of(role_.drain, "end of run"));
  }

  std::vector<StepList> take_program() { return std::move(program_); }

 private:
  StepList list_of(const std::vector<Step>& steps, std::string name) const {
    StepList list{.name = std::move(name), .lanes = {{}}, .steps = {}};
    for (const Step& step : steps) {
      if (takes_part(step, {When::always, step_})) {
        list.steps.push_back({.step = &step});
      }
    }
    return list;
  }

  ChunkTemplates append_chunk(std::size_t number) {
    const ChunkDraft& chunk = role_.chunks[number];
    const plan::ScheduleRow& schedule = row_of(draft_.shape.schedule);
    const std::string of_chunk = suffix(number);
    ChunkTemplates templates;
    templates.forward_first = templates.forward =
        append(forward_steps(draft_, chunk, "forward" + of_chunk, {When::always, step_}));
    if (has_variant(draft_, chunk, When::first_microbatch)) {
      templates.forward_first = append(forward_steps(draft_, chunk, "first forward" + of_chunk,
                                                     {When::first_microbatch, step_}));
    }
    if (schedule.whole_backwards) {
      append_backward(chunk, BackwardPart::whole, "backward" + of_chunk, templates.backward,
                      templates.backward_last);
    }
    if (schedule.split_backwards) {
      templates.input_gradient =
          append(backward_steps(draft_, chunk, BackwardPart::input_gradients,
                                "input gradients" + of_chunk, {When::always, step_}));
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
                            "forward" + suffix(ahead) + ", backward" + suffix(back), step_));
    }
  }

  void append_backward(const ChunkDraft& chunk, BackwardPart part, const std::string& name,
                       int& usual, int& last) {
    last = usual = append(backward_steps(draft_, chunk, part, name, {When::always, step_}));
    if (has_variant(draft_, chunk, When::last_microbatch)) {
      last = append(
          backward_steps(draft_, chunk, part, "last " + name, {When::last_microbatch, step_}));
    }
  }

  std::string suffix(std::size_t chunk) const {
    return draft_.shape.chunks > 1 ? " chunk " + std::to_string(chunk) : std::string();
  }

  /// The number of the list, which that of another sort of step may have already.
  int append(StepList list) {
    for (const auto& [place, number] : known_) {
      if (place == place_ && same_steps(program_[static_cast<std::size_t>(number)], list)) {
        ++place_;
        return number;
      }
    }
    if (step_ > 0) {
      list.name += fmt::format(" as of step {}", step_);
    }
    const int number = static_cast<int>(program_.size());
    program_.push_back(std::move(list));
    known_.emplace_back(place_++, number);
    return number;
  }

  const Draft& draft_;
  const RoleDraft& role_;
  const ChunkPairs& pairs_;
  std::vector<StepList> program_;
  std::int64_t step_ = 0;                           ///< whose templates are listed
  std::size_t place_ = 0;                           ///< of the next list among its step's
  std::vector<std::pair<std::size_t, int>> known_;  ///< places and numbers of lists
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

namespace {

/// The templates of a stage in every sort of step, and the one that ends the run.
struct StageTemplates {
  std::vector<RoleTemplates> by_sort;
  int drain = -1;
};

/// Makes the roles of every block of replicas from those of the stages.
std::vector<RoleTemplates> roles_of(const Draft& draft, const std::vector<StageTemplates>& stages,
                                    std::size_t sort, const ReplicaBlocks& blocks) {
  std::vector<RoleTemplates> roles =
      mapped(stages, [&](const StageTemplates& stage) { return stage.by_sort[sort]; });
  const std::size_t count = roles.size();
  for (const std::int64_t share : blocks.shares) {
    plan::PipelineShape shape = draft.shape;
    shape.microbatches = share;
    for (std::size_t stage = 0; stage < count; ++stage) {
      RoleTemplates role = roles[stage];
      role.schedule = {shape, static_cast<std::int64_t>(stage)};
      role.last_microbatch = shape.microbatches - 1;
      roles.push_back(std::move(role));
    }
  }
  if (!blocks.shares.empty()) {
    roles.erase(roles.begin(), roles.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return roles;
}

std::shared_ptr<const graph::IssueList> source_of(const Draft& draft, StepSorts sorts,
                                                  const std::vector<StageTemplates>& stages) {
  const ReplicaBlocks blocks(draft);
  std::vector<TrainingStep> steps;
  for (std::size_t sort = 0; sort < sorts.count(); ++sort) {
    steps.emplace_back(roles_of(draft, stages, sort, blocks));
  }
  if (draft.run_steps == 1) {
    return std::make_shared<TrainingStep>(std::move(steps.front()));
  }
  std::vector<int> drains;
  for (std::size_t block = 0; block < std::max<std::size_t>(1, blocks.shares.size()); ++block) {
    for (const StageTemplates& stage : stages) {
      drains.push_back(stage.drain);
    }
  }
  return std::make_shared<TrainingRun>(std::move(steps), std::move(sorts), draft.run_steps,
                                       std::move(drains));
}

/// All templates of a draft. Stages that do the same share a program. Refers to the draft.
struct StepLists {
  std::vector<std::size_t> program_of{};  ///< by stage
  std::vector<std::vector<StepList>> programs{};
  std::shared_ptr<const graph::IssueList> source{};
};

StepLists list_steps(const Draft& draft) {
  StepLists lists;
  StepSorts sorts(draft, draft.run_steps);
  std::vector<StageTemplates> stages;
  const ChunkPairs pairs = chunk_pairs(draft.shape);
  std::vector<std::size_t> first_with;  // by program: the stage that it was made for
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(draft.shape.stages); ++stage) {
    const auto same = std::find_if(first_with.begin(), first_with.end(), [&](std::size_t other) {
      return draft.roles[other] == draft.roles[stage];
    });
    lists.program_of.push_back(static_cast<std::size_t>(same - first_with.begin()));
    if (same != first_with.end()) {
      stages.push_back(stages[*same]);
      for (RoleTemplates& role : stages.back().by_sort) {
        role.schedule = {draft.shape, static_cast<std::int64_t>(stage)};
      }
      continue;
    }
    first_with.push_back(stage);
    RoleLists role(draft, stage, pairs);
    StageTemplates& templates = stages.emplace_back();
    for (std::size_t sort = 0; sort < sorts.count(); ++sort) {
      templates.by_sort.push_back(role.run(stage, sorts.example(sort)));
    }
    templates.drain = draft.run_steps > 1 ? role.append_drain() : -1;
    lists.programs.push_back(role.take_program());
  }
  lists.source = source_of(draft, std::move(sorts), stages);
  return lists;
}

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
