// SPDX-License-Identifier: Apache-2.0
#include "study/served/table.h"

#include <iterator>

#include "study/parallel.h"
#include "study/ranking.h"
#include "study/served/published.h"

namespace orrery::served {

Result<study::ValidationResult> validate_serving(const study::ValidationProfile& profile,
                                                 const CsvTable& table,
                                                 const study::ValidationOptions& options) {
  auto machine = machine::load_machine(options.machine.value_or(profile.machine));
  if (!machine) {
    return fail(std::move(machine.error()));
  }
  std::optional<std::string> kernels;
  for (const study::Setting& setting : options.overrides) {
    if (setting.field != kKernels) {
      return fail(Error(Mistake{setting.where, setting.field, setting.value,
                                "no fields of training plans: the table is one of serving"}));
    }
    kernels = setting.value;
  }
  auto tasks = published_tasks(profile, table);
  if (!tasks) {
    return fail(std::move(tasks.error()));
  }
  for (Task& task : *tasks) {
    task.row.engine.kernels = kernels.value_or(task.row.engine.kernels);
  }
  study::run_parallel(
      tasks->size(), options.threads,
      [&](std::size_t i) {
        if (!options.go_on || options.go_on()) {
          run_task((*tasks)[i], *machine);
        } else {
          (*tasks)[i].figures.clear();
        }
      },
      options.progress);
  std::vector<study::ValidationRow> rows;
  for (Task& task : *tasks) {
    rows.insert(rows.end(), std::make_move_iterator(task.figures.begin()),
                std::make_move_iterator(task.figures.end()));
  }
  study::ValidationResult result =
      study::scored(profile, table.file, machine->name, std::move(rows));
  study::compare_rows(table, result);
  return result;
}

}  // namespace orrery::served
