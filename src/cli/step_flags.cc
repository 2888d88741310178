// SPDX-License-Identifier: Apache-2.0
#include "cli/step_flags.h"

#include <fmt/format.h>

#include "base/reader.h"
#include "machine/device_groups.h"

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

void StepFlags::declare(Options& options) {
  options.value("--model", model_, "NAME|FILE",
                "a name of `orrery list models`, or a Hugging Face config.json");
  options.value("--machine", machine_, "NAME|FILE", "a name of `orrery list machines`, or a file");
  options.value("--devices", devices_, "INT", "accelerators; default: what the plan needs");
  cap_.declare(options);
}

StepInput StepFlags::read(Error& mistakes) const {
  StepInput step;
  step.model = required("--model", model_, zoo::load_model, mistakes);
  step.machine = required("--machine", machine_, machine::load_machine, mistakes);
  topology_.lay(step.machine, mistakes);
  cap_.hold(step.machine, mistakes);
  step.devices = whole_number("--devices", devices_, 0, INT64_MAX, mistakes);
  return step;
}

StepInput StepFlags::read_machine(const std::string& other, Error& mistakes) const {
  refuse_given({{"--model", model_}}, "contradicts " + other + ", which says what is computed",
               mistakes);
  StepInput step;
  step.machine = required("--machine", machine_, machine::load_alike, mistakes);
  topology_.lay(step.machine, mistakes);
  cap_.hold(step.machine, mistakes);
  step.devices = whole_number("--devices", devices_, 0, INT64_MAX, mistakes);
  return step;
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
