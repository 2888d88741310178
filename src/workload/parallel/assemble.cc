// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "workload/parallel/draft.h"

namespace orrery {
namespace {

constexpr int kNoNode = -1;
constexpr int kNoBlock = -1;

/// Appends steps of one template variant and finds their dependencies.
class TemplateBuilder {
 public:
  TemplateBuilder(std::string name, When variant, std::size_t blocks)
      : variant_(variant), gathered_(blocks) {
    template_.name = std::move(name);
    writers_.fill(kNoNode);
    for (auto& of_stream : satisfied_) {
      of_stream.fill(kNoNode);
    }
  }

  void add(const std::vector<Step>& steps, int block = kNoBlock, bool recomputes = true) {
    for (const Step& step : steps) {
      const bool left_out = step.node.phase == Phase::recompute && !recomputes;
      if (!left_out && (step.when == When::always || step.when == variant_)) {
        add(step, block);
      }
    }
  }

  Template finish() { return std::move(template_); }

 private:
  void add(const Step& step, int block) {
    const int index = static_cast<int>(template_.nodes.size());
    Node node = step.node;
    depend(node, writer(step.reads));
    const bool communicates = node.kind == Node::Kind::collective || node.kind == Node::Kind::send;
    if (communicates) {
      depend(node, last_compute_);
    }
    if (block != kNoBlock && node.stream == Stream::compute) {
      for (const int gather : gathered_[static_cast<std::size_t>(block)]) {
        depend(node, gather);
      }
    }
    if (step.gathers_block != kNoBlock) {
      gathered_[static_cast<std::size_t>(step.gathers_block)].push_back(index);
    }
    if (step.writes != Value::none) {
      writers_[static_cast<std::size_t>(step.writes)] = index;
    }
    if (node.stream == Stream::compute) {
      last_compute_ = index;
    }
    template_.nodes.push_back(std::move(node));
  }

  int writer(Value value) const {
    return value == Value::none ? kNoNode : writers_[static_cast<std::size_t>(value)];
  }

  /// Streams are in order, so a dependency is implied by one of the own stream, and by an earlier
  /// node of the own stream that waited for the same or a later node of the other.
  void depend(Node& node, int on) {
    if (on == kNoNode) {
      return;
    }
    const Stream other = template_.nodes[static_cast<std::size_t>(on)].stream;
    int& known = satisfied_[static_cast<std::size_t>(node.stream)][static_cast<std::size_t>(other)];
    if (other == node.stream || on <= known) {
      return;
    }
    known = on;
    node.after.push_back(on);
  }

  When variant_;
  Template template_;
  std::vector<std::vector<int>> gathered_;  // by block: all-gathers that bring its parameters
  std::array<int, kValueCount> writers_{};  // by Value
  int last_compute_ = kNoNode;
  std::array<std::array<int, kStreamCount>, kStreamCount> satisfied_{};
};

bool has(const std::vector<Step>& steps, When when) {
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step& step) { return step.when == when; });
}

bool has(const Draft& draft, const ChunkDraft& chunk, When when) {
  return has(chunk.forward_end, when) || has(chunk.backward_end, when) ||
         std::any_of(chunk.blocks.begin(), chunk.blocks.end(), [&](const Block& block) {
           return has(draft.steps[block.kind].forward, when) || has(block.before_forward, when) ||
                  has(block.before_backward, when) || has(block.after_backward, when);
         });
}

Template forward_template(const Draft& draft, const ChunkDraft& chunk, std::string name,
                          When variant) {
  TemplateBuilder builder(std::move(name), variant, chunk.blocks.size());
  builder.add(chunk.forward_begin);
  for (int b = 0; b < static_cast<int>(chunk.blocks.size()); ++b) {
    const Block& block = chunk.blocks[static_cast<std::size_t>(b)];
    builder.add(block.before_forward);
    builder.add(draft.steps[block.kind].forward, b);
  }
  builder.add(chunk.forward_end);
  return builder.finish();
}

Template backward_template(const Draft& draft, const ChunkDraft& chunk, std::string name,
                           When variant) {
  TemplateBuilder builder(std::move(name), variant, chunk.blocks.size());
  builder.add(chunk.backward_begin);
  for (int b = static_cast<int>(chunk.blocks.size()) - 1; b >= 0; --b) {
    const Block& block = chunk.blocks[static_cast<std::size_t>(b)];
    const BlockSteps& steps = draft.steps[block.kind];
    builder.add(block.before_backward);
    builder.add(steps.recompute, b, block.recomputes);
    builder.add(steps.backward, b, block.recomputes);
    builder.add(block.after_backward);
  }
  builder.add(chunk.backward_end);
  return builder.finish();
}

/// Template numbers of one chunk.
struct ChunkTemplates {
  int forward_first = 0;
  int forward = 0;
  int backward = 0;
  int backward_last = 0;
};

struct RoleTemplates {
  std::vector<ChunkTemplates> chunks;
  int finish = 0;
};

/// The pipeline schedule, then the end of the step.
class TrainingStep final : public Source {
 public:
  TrainingStep(PipelineShape shape, std::vector<RoleTemplates> roles)
      : shape_(shape), roles_(std::move(roles)) {}

  std::int64_t length(int) const override { return slot_count(shape_) + 1; }

  std::optional<Instance> issue(int role, std::int64_t index) const override {
    const RoleTemplates& templates = roles_[static_cast<std::size_t>(role)];
    if (index >= slot_count(shape_)) {
      return index == slot_count(shape_)
                 ? std::optional(Instance{.template_index = templates.finish})
                 : std::nullopt;
    }
    const PipelineSlot work = slot(shape_, role, index);
    const ChunkTemplates& chunk = templates.chunks[static_cast<std::size_t>(work.chunk)];
    return Instance{template_of(chunk, work), static_cast<int>(work.chunk), work.microbatch};
  }

 private:
  int template_of(const ChunkTemplates& chunk, const PipelineSlot& work) const {
    if (work.direction == Direction::forward) {
      return work.microbatch == 0 ? chunk.forward_first : chunk.forward;
    }
    return work.microbatch + 1 == shape_.microbatches ? chunk.backward_last : chunk.backward;
  }

  PipelineShape shape_;
  std::vector<RoleTemplates> roles_;
};

int append(Program& program, Template t) {
  program.templates.push_back(std::move(t));
  return static_cast<int>(program.templates.size()) - 1;
}

ChunkTemplates append_chunk(const Draft& draft, const ChunkDraft& chunk, std::size_t number,
                            Program& program) {
  const std::string suffix =
      draft.shape.chunks > 1 ? " chunk " + std::to_string(number) : std::string();
  ChunkTemplates templates;
  templates.forward =
      append(program, forward_template(draft, chunk, "forward" + suffix, When::always));
  templates.backward =
      append(program, backward_template(draft, chunk, "backward" + suffix, When::always));
  templates.forward_first = templates.forward;
  templates.backward_last = templates.backward;
  if (has(draft, chunk, When::first_microbatch)) {
    templates.forward_first = append(
        program, forward_template(draft, chunk, "first forward" + suffix, When::first_microbatch));
  }
  if (has(draft, chunk, When::last_microbatch)) {
    templates.backward_last = append(
        program, backward_template(draft, chunk, "last backward" + suffix, When::last_microbatch));
  }
  return templates;
}

}  // namespace

Workload assemble(const Draft& draft) {
  Workload workload{.layout = draft.layout,
                    .programs = {},
                    .source = nullptr,
                    .host_dispatch = draft.host_dispatch};
  std::vector<RoleTemplates> roles;
  for (std::size_t stage = 0; stage < draft.roles.size(); ++stage) {
    const RoleDraft& role = draft.roles[stage];
    Program program{.name = "stage " + std::to_string(stage), .templates = {}};
    RoleTemplates templates;
    for (std::size_t c = 0; c < role.chunks.size(); ++c) {
      templates.chunks.push_back(append_chunk(draft, role.chunks[c], c, program));
    }
    TemplateBuilder builder("end of step", When::always, 0);
    builder.add(role.finish);
    templates.finish = append(program, builder.finish());
    workload.programs.push_back(std::move(program));
    roles.push_back(std::move(templates));
  }
  workload.source = std::make_shared<TrainingStep>(draft.shape, std::move(roles));
  return workload;
}

}  // namespace orrery
