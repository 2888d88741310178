// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/capabilities.h"

#include <algorithm>
#include <array>

#include "base/lists.h"
#include "base/names.h"
#include "workload/interop/capability_tables.h"
#include "workload/plan/framework.h"

namespace orrery::interop {
namespace {

constexpr auto kLaunchers = std::to_array<LaunchFormat>({
    {"megatron", "launch.sh", export_megatron},
    {"nemo", "nemo.yaml", export_nemo},
    {"torchtitan", "job.toml", export_torchtitan},
    {"deepspeed", "ds_config.json", export_deepspeed},
});

}  // namespace

std::span<const LaunchFormat> launchers() {
  return kLaunchers;
}

const LaunchFormat* launcher_named(std::string_view framework) {
  const auto* const found =
      std::ranges::find(kLaunchers, framework.substr(0, framework.find('@')), &LaunchFormat::name);
  return found == kLaunchers.end() ? nullptr : &*found;
}

std::string launcher_names() {
  const std::vector<std::string> names = mapped<std::string>(kLaunchers, &LaunchFormat::name);
  return enumerated(names);
}

std::vector<Remark> incapable(std::string_view launcher, const plan::Plan& plan,
                              const zoo::Model* model) {
  std::vector<Remark> found;
  const CapabilityTable table = capability_table(launcher);
  for (const std::span<const Capability> rows : {table.rows, common_capabilities()}) {
    for (const Capability& row : rows) {
      if (!row.runs({plan, model})) {
        found.push_back(
            {std::string(row.field), "the plan has " + plan::field_text(plan, row.field) + "; " +
                                         std::string(launcher.substr(0, launcher.find('@'))) +
                                         " runs " + std::string(row.can)});
      }
    }
  }
  return found;
}

bool can_run(std::string_view launcher, const plan::Plan& plan, const zoo::Model* model) {
  const auto runs = [&](const Capability& row) { return row.runs({plan, model}); };
  return std::ranges::all_of(capability_table(launcher).rows, runs) &&
         std::ranges::all_of(common_capabilities(), runs);
}

void impose(std::string_view launcher, plan::Plan& plan,
            const std::function<bool(std::string_view field)>& is_open) {
  for (const Imposed& row : capability_table(launcher).imposed) {
    if (is_open(row.field)) {
      row.set(plan);
    }
  }
}

void give_reasons(std::string_view launcher, const plan::Plan& plan, const zoo::Model* model,
                  std::vector<Remark>& lost) {
  for (const Remark& reason : incapable(launcher, plan, model)) {
    const auto remark = std::ranges::find(lost, reason.about, &Remark::about);
    if (remark != lost.end()) {
      remark->sentence += reason.sentence.substr(reason.sentence.find(';'));
    }
  }
}

plan::Plan rest_of(const std::string& framework) {
  plan::PlacedPlan rest;
  rest.plan.framework = framework;
  rest.places["framework"] = "the plan";
  plan::apply_framework(rest);
  return rest.plan;
}

}  // namespace orrery::interop
