// SPDX-License-Identifier: Apache-2.0
#include "cli/step_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/reader.h"
#include "machine/device_groups.h"
#include "machine/slice.h"

namespace orrery::cli {
namespace {

/// Loads a description whose name must be given.
template <class T>
T required(const char* flag, const std::optional<std::string>& name,
           Result<T> (*load)(const std::string& name_or_path), Error& mistakes) {
  if (!name) {
    mistakes.add({flag, {}, {}, "missing; expected a name or a file"});
    return T{};
  }
  return load_named(flag, *name, load, mistakes);
}

}  // namespace

void PowerCapFlag::declare(Options& options) {
  options.value(
      "--power-cap", cap_, "POWER",
      "of every accelerator, such as 500W: clock and time follow; default: the machine's");
}

void PowerCapFlag::hold(machine::Machine& machine, Error& mistakes) const {
  if (!cap_) {
    return;
  }
  const auto cap = parse_value<Power>(*cap_);
  if (!cap || *cap <= Power(0)) {
    mistakes.add(
        wrong_value("--power-cap", *cap_, cap ? "a power above 0, such as 500 W" : cap.error()));
    return;
  }
  if (machine.device.memory.empty()) {
    return;  // no machine: a mistake of its own
  }
  auto held = machine::with_power_cap(machine, *cap);
  if (held) {
    machine = std::move(*held);
    return;
  }
  for (const Mistake& mistake : held.error().mistakes) {
    mistakes.add(wrong_value("--power-cap", *cap_, mistake.expected));
  }
}

namespace {

constexpr const char* kModelSentence =
    "a name of `orrery list models`, or a Hugging Face config.json";
constexpr const char* kMachineSentence = "a name of `orrery list machines`, or a file";

}  // namespace

void StepFlags::declare(Options& options) {
  options.value("--model", model_, "NAME|FILE", kModelSentence);
  options.value("--machine", machine_, "NAME|FILE", kMachineSentence);
  declare_rest(options);
}

void StepFlags::declare_each(Options& options) {
  options.value("--model", model_, "NAME|FILE", kModelSentence);
  options.values("--machine", machines_, "NAME|FILE",
                 std::string(kMachineSentence) + "; may be repeated");
  declare_rest(options);
}

void StepFlags::declare_rest(Options& options) {
  options.value("--devices", devices_, "INT", "accelerators; default: what the plan needs");
  cap_.declare(options);
  options.value("--slice", slice_, "EXTENTS|NAME",
                "block of a TPU pod, as 4x8x8 or v5p-512; default: the usual one of --devices");
}

StepInput StepFlags::read(Error& mistakes) const {
  StepInput step;
  step.model = required("--model", model_, zoo::load_model, mistakes);
  step.devices = whole_number("--devices", devices_, 0, INT64_MAX, mistakes);
  read_machine_named(machine_, step, mistakes);
  return step;
}

std::vector<StepInput> StepFlags::read_each(Error& mistakes) const {
  std::vector<StepInput> steps(1);
  steps.front().model = required("--model", model_, zoo::load_model, mistakes);
  steps.front().devices = whole_number("--devices", devices_, 0, INT64_MAX, mistakes);
  steps.resize(std::max<std::size_t>(1, machines_.size()), steps.front());
  if (machines_.empty()) {
    read_machine_named(std::nullopt, steps.front(), mistakes);
  }
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    read_machine_named(machines_[i], steps[i], mistakes);
  }
  return steps;
}

void StepFlags::read_machine_named(const std::optional<std::string>& name, StepInput& step,
                                   Error& mistakes) const {
  step.machine = required("--machine", name, machine::load_machine, mistakes);
  topology_.lay(step.machine, mistakes);
  cap_.hold(step.machine, mistakes);
  cut(step, mistakes);
}

StepInput StepFlags::read_machine(const std::string& other, Error& mistakes) const {
  refuse_given({{"--model", model_}}, "contradicts " + other + ", which says what is computed",
               mistakes);
  StepInput step;
  step.machine = required("--machine", machine_, machine::load_alike, mistakes);
  topology_.lay(step.machine, mistakes);
  cap_.hold(step.machine, mistakes);
  step.devices = whole_number("--devices", devices_, 0, INT64_MAX, mistakes);
  cut(step, mistakes);
  return step;
}

void StepFlags::cut(StepInput& step, Error& mistakes) const {
  if (!slice_ || step.machine.name.empty()) {
    return;
  }
  auto named = machine::with_slice(step.machine, *slice_);
  if (!named) {
    mistakes.add(wrong_value("--slice", *slice_, named.error().mistakes.front().expected));
    return;
  }
  if (step.devices > 0 && step.devices != named->devices) {
    mistakes.add(wrong_value("--devices", std::to_string(step.devices),
                             "the " + named->text + " of --slice, or none"));
  }
  step.machine = std::move(named->machine);
  step.machine.name += " (" + named->text + ")";
  step.devices = named->devices;
}

std::int64_t whole_number(const char* flag, const std::optional<std::string>& text,
                          std::int64_t fallback, std::int64_t most, Error& mistakes) {
  if (!text) {
    return fallback;
  }
  const auto number = parse_value<std::int64_t>(*text);
  if (number && *number >= 1 && *number <= most) {
    return *number;
  }
  const std::string range = most == INT64_MAX ? "at least 1" : fmt::format("1 to {}", most);
  mistakes.add(wrong_value(flag, *text, number ? range : number.error()));
  return fallback;
}

int thread_count(const std::optional<std::string>& text, std::int64_t fallback, Error& mistakes) {
  constexpr std::int64_t kMostThreads = 1024;
  return static_cast<int>(whole_number("--threads", text, fallback, kMostThreads, mistakes));
}

}  // namespace orrery::cli
