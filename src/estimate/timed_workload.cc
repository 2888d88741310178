// SPDX-License-Identifier: Apache-2.0
#include "estimate/timed_workload.h"

#include <algorithm>
#include <utility>

#include "estimate/node_timer.h"
#include "estimate/pass_map.h"
#include "estimate/template_tables.h"

namespace orrery::estimate {
namespace {

constexpr auto kUnknown = static_cast<std::uint32_t>(-1);

/// Number among `templates`, of which it becomes one.
int number_of(const std::shared_ptr<MappedTemplate>& one,
              std::vector<std::shared_ptr<MappedTemplate>>& templates) {
  const auto same = std::find(templates.begin(), templates.end(), one);
  const auto number = static_cast<int>(same - templates.begin());
  if (same == templates.end()) {
    templates.push_back(one);
  }
  return number;
}

/// What does not depend on templates.
TimedWorkload empty_of(const Timing& timing, std::int64_t stages) {
  TimedWorkload timed;
  timed.members = meeting_members(stages);
  timed.own_ports = !timing.placement.crossing();
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    auto& targets = timed.targets.emplace_back();
    for (const auto& channel : kNames<plan::Channel>) {
      targets[index_of(channel.value)] =
          static_cast<int>(plan::target_stage(channel.value, stage, stages));
    }
  }
  if (timing.placement.layout().size(plan::Axis::pp) > 1) {
    timed.message_lane = static_cast<int>(plan::StepStream::pp);
  }
  return timed;
}

class OutlineTimer {
 public:
  OutlineTimer(const parallel::Outline& outline, const Timing& timing, TemplateTables& tables)
      : outline_(outline),
        timing_(timing),
        tables_(tables),
        timer_(timing, outline.draft->host_dispatch, tables),
        parts_(timing.devices == nullptr ? 1 : timing.devices->machines.size()),
        programs_(outline.lists.programs.size() * parts_) {}

  TimedWorkload run(TimedWorkload timed) {
    const auto& program_of = outline_.lists.program_of;
    for (std::size_t stage = 0; stage < program_of.size(); ++stage) {
      Program& program = of(program_of[stage], stage);
      std::vector<int> ways = ways_of(program_of[stage], static_cast<std::int64_t>(stage));
      const auto same = std::find(program.ways.begin(), program.ways.end(), ways);
      if (same != program.ways.end()) {
        const auto before = program.stages[index_of(same - program.ways.begin())];
        timed.roles.push_back(std::vector<int>(timed.roles[before]));
        continue;
      }
      program.ways.push_back(std::move(ways));
      program.stages.push_back(stage);
      timed.roles.push_back(role_of(program_of[stage], static_cast<std::int64_t>(stage), timed));
    }
    timed.crosses = timer_.crosses();
    timed.messages_alike = timer_.messages_alike();
    return timed;
  }

 private:
  struct Program {
    std::vector<std::uint32_t> numbers;          ///< by Step::number; of messages those of a stage
    std::vector<const parallel::Step*> sends{};  ///< distinct ones
    bool listed = false;
    std::vector<std::vector<int>> ways{};  ///< that stages have been found to have
    std::vector<std::size_t> stages{};     ///< the first of each
  };

  /// On the stage's devices.
  Program& of(std::size_t number, std::size_t stage) {
    const std::size_t part = timing_.devices == nullptr ? 0 : timing_.devices->part_of[stage];
    return programs_[number * parts_ + part];
  }

  /// Of a stage's messages.
  std::vector<int> ways_of(std::size_t number, std::int64_t stage) {
    Program& program = of(number, index_of(stage));
    if (!program.listed) {
      list_sends(number, program);
    }
    std::vector<int> ways;
    ways.reserve(program.sends.size());
    for (const parallel::Step* send : program.sends) {
      ways.push_back(timing_.placement.way(static_cast<plan::Channel>(send->node.channel), stage));
    }
    return ways;
  }

  void list_sends(std::size_t number, Program& program) {
    program.listed = true;
    program.numbers.assign(index_of(outline_.numbers), kUnknown);
    for (const parallel::StepList& list : outline_.lists.programs[number]) {
      for (const parallel::PlacedStep& placed : list.steps) {
        std::uint32_t& seen = program.numbers[index_of(placed.step->number)];
        if (placed.step->node.kind == graph::Node::Kind::send && seen == kUnknown) {
          seen = 0;
          program.sends.push_back(placed.step);
        }
      }
    }
  }

  std::vector<int> role_of(std::size_t number, std::int64_t stage, TimedWorkload& timed) {
    Program& program = of(number, index_of(stage));
    for (const parallel::Step* send : program.sends) {
      program.numbers[index_of(send->number)] =
          tables_.add_step(*send, timer_.time(send->node, stage));
    }
    std::vector<int> role;
    for (const parallel::StepList& list : outline_.lists.programs[number]) {
      numbers_.clear();
      for (const parallel::PlacedStep& placed : list.steps) {
        std::uint32_t& step = program.numbers[index_of(placed.step->number)];
        if (step == kUnknown) {
          step = tables_.add_step(*placed.step, timer_.time(placed.step->node, stage));
        }
        numbers_.push_back(step);
      }
      role.push_back(number_of(tables_.find(list, numbers_), timed.templates));
    }
    return role;
  }

  const parallel::Outline& outline_;
  const Timing& timing_;
  TemplateTables& tables_;
  NodeTimer timer_;
  std::size_t parts_;
  std::vector<Program> programs_;       ///< by number and part of the machine
  std::vector<std::uint32_t> numbers_;  ///< of one template's steps
};

TimedTemplate time_template(const graph::Template& source, std::int64_t stage, NodeTimer& timer) {
  TimedTemplate timed;
  timed.nodes.reserve(source.nodes.size());
  for (const graph::Node& node : source.nodes) {
    TimedNode result = timer.time(node, stage);
    result.first_before = static_cast<std::uint32_t>(timed.before.size());
    result.befores = static_cast<std::uint32_t>(node.after.size());
    timed.before.insert(timed.before.end(), node.after.begin(), node.after.end());
    timed.nodes.push_back(result);
  }
  return timed;
}

}  // namespace

TimedWorkload time_workload(const graph::Workload& workload, const Timing& timing) {
  TemplateTables tables;
  NodeTimer timer(timing, workload.host_dispatch, tables);
  TimedWorkload timed = empty_of(timing, std::ssize(workload.roles));
  for (std::int64_t stage = 0; stage < std::ssize(workload.roles); ++stage) {
    std::vector<int>& role = timed.roles.emplace_back();
    for (const graph::Template& source : workload.program_of(static_cast<int>(stage)).templates) {
      TimedTemplate one = time_template(source, stage, timer);
      auto& known = timed.templates;
      const auto same = std::find_if(known.begin(), known.end(),
                                     [&](const auto& other) { return other->nodes == one; });
      role.push_back(static_cast<int>(same - known.begin()));
      if (same == known.end()) {
        known.push_back(std::make_shared<MappedTemplate>());
        known.back()->nodes = std::move(one);
      }
    }
  }
  timed.transfers = tables.transfers();
  timed.crosses = timer.crosses();
  timed.messages_alike = timer.messages_alike();
  return timed;
}

TimedWorkload time_outline(const parallel::Outline& outline, const Timing& timing,
                           TemplateTables& tables) {
  const auto stages = std::ssize(outline.lists.program_of);
  TimedWorkload timed = OutlineTimer(outline, timing, tables).run(empty_of(timing, stages));
  timed.transfers = tables.transfers();
  return timed;
}

}  // namespace orrery::estimate
