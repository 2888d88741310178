// SPDX-License-Identifier: Apache-2.0
#include "study/served/nearest.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "base/csv.h"
#include "base/file.h"
#include "base/remembered.h"
#include "study/served/published.h"

namespace orrery::served {
namespace {

constexpr std::int64_t kSampled = 64;  // requests whose mean lengths stand for all

/// A Place is what two runs are compared by.
struct Place {
  double parameters = 0;
  double devices = 0;
  double prompt = 0;  ///< tokens, mean
  double answer = 0;
  std::string framework;
};

std::string framework_of(const serving::Engine& engine) {
  return engine.name.substr(0, engine.name.find('@'));
}

/// Returns the place of a run with these requests, served ones or those to be served.
template <class Requests>
Place place_of(const zoo::Model& model, const serving::Engine& engine, const Requests& requests) {
  Place place{.parameters = static_cast<double>(zoo::count_parameters(model).total),
              .devices = static_cast<double>(engine.devices()),
              .framework = framework_of(engine)};
  for (const auto& request : requests) {
    place.prompt += static_cast<double>(request.input) / static_cast<double>(requests.size());
    place.answer += static_cast<double>(request.output) / static_cast<double>(requests.size());
  }
  return place;
}

double distance(const Place& a, const Place& b) {
  const auto doublings = [&](double Place::*of) { return std::abs(std::log2(a.*of / b.*of)); };
  return doublings(&Place::parameters) + doublings(&Place::devices) + doublings(&Place::prompt) +
         doublings(&Place::answer) + (a.framework == b.framework ? 0 : 1);
}

struct Candidate {
  std::string table;
  const machine::Machine* machine = nullptr;
  Task task;
  double distance = 0;
};

/// Models and machines by name, each read once.
template <class Named>
class Kept {
 public:
  explicit Kept(Result<Named> (*load)(const std::string&)) : load_(load) {}

  /// nullptr: it cannot be read.
  const Named* of(const std::string& name) {
    return remembered(known_, name,
                      [&] {
                        auto read = load_(name);
                        return read ? std::make_unique<Named>(std::move(*read)) : nullptr;
                      })
        .get();
  }

 private:
  Result<Named> (*load_)(const std::string&);
  std::map<std::string, std::unique_ptr<Named>> known_;
};

/// Adds the figures of the run, predicted; returns whether there are any.
bool predict(Candidate& candidate, std::vector<study::NearestRow>& rows) {
  Task& task = candidate.task;
  run_task(task, *candidate.machine);
  bool any = false;
  for (std::size_t i = 0; i < task.figures.size(); ++i) {
    const study::ValidationRow& figure = task.figures[i];
    if (figure.problem.empty()) {
      rows.push_back({.table = candidate.table,
                      .key = figure.key,
                      .model = task.row.model,
                      .machine = candidate.machine->name,
                      .measure = std::string(name_of(task.measures[i])),
                      .devices = figure.devices,
                      .predicted = figure.predicted,
                      .published = figure.published,
                      .error = figure.error});
      any = true;
    }
  }
  return any;
}

}  // namespace

std::vector<study::NearestRow> nearest_rows(const zoo::Model& model, const serving::Run& run,
                                            const machine::Machine& machine, std::size_t most) {
  Kept<machine::Machine> machines(machine::load_machine);
  Kept<zoo::Model> models(named_model);
  const Place own = place_of(model, run.engine, run.requests);
  const WantedMachine alike = [&](const std::string& name) {
    const machine::Machine* const other = machines.of(name);
    return other != nullptr && other->device.name == machine.device.name;
  };
  std::vector<Candidate> found;
  for (const std::string& name : list_configs("validation")) {
    const auto profile = study::load_profile(name);
    if (!profile || profile->kind != study::TableKind::serving) {
      continue;
    }
    const auto table = load_csv(profile->csv);
    auto tasks = table ? published_tasks(*profile, *table, alike) : fail(Error());
    if (!tasks) {
      continue;
    }
    for (Task& task : *tasks) {
      const std::string& place = task.row.machine.empty() ? profile->machine : task.row.machine;
      const bool read = std::ranges::all_of(
          task.figures, [](const auto& figure) { return figure.problem.empty(); });
      const zoo::Model* const of = read && alike(place) ? models.of(task.row.model) : nullptr;
      if (of != nullptr) {
        study::ServedRequests sample = task.row.requests;
        sample.count = std::min(sample.count, kSampled);
        const double far = distance(place_of(*of, task.row.engine, requests_of(sample)), own);
        found.push_back({profile->table, machines.of(place), std::move(task), far});
      }
    }
  }
  std::ranges::stable_sort(found, {}, &Candidate::distance);
  std::vector<study::NearestRow> rows;
  std::size_t runs = 0;
  for (auto candidate = found.begin(); candidate != found.end() && runs < most; ++candidate) {
    runs += predict(*candidate, rows) ? 1 : 0;
  }
  return rows;
}

}  // namespace orrery::served
