// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/launchable.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "workload/interop/capabilities.h"

namespace orrery::advice {
namespace {

std::string file_in(const std::string& path, const interop::LaunchFormat& launcher) {
  std::error_code ignored;
  const bool folder = path.ends_with('/') || std::filesystem::is_directory(path, ignored);
  return folder ? (std::filesystem::path(path) / launcher.file).string() : path;
}

/// "--recompute-modules" of recompute_modules.
std::string flag_of_field(std::string_view field) {
  std::string flag = "--" + std::string(field);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

}  // namespace

std::vector<Launchable> launchable(const plan::Plan& plan, const zoo::Model& model) {
  std::vector<Launchable> all;
  for (const interop::LaunchFormat& launcher : interop::launchers()) {
    all.push_back({std::string(launcher.name), interop::incapable(launcher.name, plan, &model)});
  }
  std::ranges::stable_partition(all, [](const Launchable& one) { return one.lacks.empty(); });
  return all;
}

Result<Launch> launch(const full::Task& task, const plan::Plan& plan, const std::string& model_name,
                      const std::string& path) {
  const interop::LaunchFormat* launcher = interop::launcher_named(task.launcher);
  interop::ExportOptions options{.model = &task.model};
  const auto& network = task.machine.network;
  options.devices_per_node = network.empty() ? 0 : network.front().size;
  const auto exported = launcher->write(plan, options);
  if (!exported) {
    return fail(exported.error());
  }
  Launch launch{.file = file_in(path, *launcher), .text = exported->text, .command = {}};
  launch.command =
      fmt::format("orrery import {} {} --framework {} --model {} --devices {}", launcher->name,
                  launch.file, plan.framework, model_name, plan.devices());
  for (const interop::Remark& lost : exported->lost) {  // what the training script says itself
    launch.command +=
        fmt::format(" {} {}", flag_of_field(lost.about), plan::field_text(plan, lost.about));
  }
  return launch;
}

}  // namespace orrery::advice
