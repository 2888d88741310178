// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <set>
#include <utility>

#include "base/reader.h"
#include "study/jobs.h"
#include "study/run.h"
#include "study/trace_workload.h"
#include "workload/chakra/load.h"
#include "workload/parallel/lower.h"
#include "workload/plan/defaults.h"
#include "workload/plan/layout.h"

namespace orrery::study {
namespace {

constexpr std::int64_t kMostTimes = 1'000'000;

/// Every rank's buffer goes through one collective after the other.
graph::Workload collectives(graph::CollectiveKind kind, Bytes bytes, std::int64_t ranks,
                            std::int64_t times) {
  graph::Workload workload;
  workload.ranks = ranks;
  workload.roles = {{"rank", 0}};
  workload.phases = {{"compute", "nothing computes"}};
  workload.categories = {{"exposed", "communication"}};
  workload.streams = {{"compute", "nothing", graph::Order::issue},
                      {"collectives", "one after the other", graph::Order::issue}};
  graph::Members all;
  if (ranks > 1) {
    all.digits = {{ranks, 1}};
  }
  workload.groups = {{"all", "all ranks", all, graph::CategoryIndex(std::size_t{0})}};
  graph::Node node;
  node.kind = graph::Node::Kind::collective;
  node.name = std::string(name_of(kind));
  node.collective = kind;
  node.bytes = bytes;
  node.group = graph::GroupIndex(std::size_t{0});
  node.stream = graph::StreamIndex(std::size_t{1});
  graph::Node wait;  // the stream of kernels asks for the next instance
  wait.kind = graph::Node::Kind::wait;
  wait.name = "wait";
  wait.after = {0};
  workload.programs = {{{{"collective", {node, wait}}}}};
  workload.source =
      std::make_shared<graph::InstanceLists>(std::vector<std::vector<graph::Instance>>{
          std::vector<graph::Instance>(static_cast<std::size_t>(times))});
  return workload;
}

class JobReader {
 public:
  JobReader(const ConfigNode& node, Placement placement, const machine::Machine& machine)
      : read_(node), machine_(machine) {
    job_.name = read_.required<std::string>("name");
    job_.placement = read_.optional("placement", placement);
    job_.ranks = read_.list<std::int64_t>("ranks");
    job_.start = read_.optional("start", Time(0));
    read_.require(job_.start >= Time(0), "start", "a time of 0 or more");
  }

  Result<Job> read() {
    const ConfigNode& node = read_.node();
    const int kinds = (node.find("model") != nullptr ? 1 : 0) +
                      (node.find("chakra") != nullptr ? 1 : 0) +
                      (node.find("collective") != nullptr ? 1 : 0);
    if (kinds != 1) {
      read_.reject("name", "one of `model` (with `plan`), `chakra` or `collective` beside it");
    } else if (node.find("model") != nullptr) {
      read_plan();
    } else if (node.find("chakra") != nullptr) {
      read_traces();
    } else {
      read_collective();
    }
    return read_.finish(std::move(job_));
  }

 private:
  std::int64_t devices(bool must) {
    const auto devices =
        must ? read_.required<std::int64_t>("devices") : read_.optional<std::int64_t>("devices", 0);
    const bool given = must || read_.node().find("devices") != nullptr;
    read_.require(!given || (devices >= 1 && devices <= machine::kMostDevices), "devices",
                  "a number of devices");
    return devices;
  }

  /// Returns what a field names; nothing where that is no name.
  template <class T>
  T load(std::string_view field, Result<T> (*load_named)(const std::string&)) {
    const auto name = read_.required<std::string>(field);
    read_.require(!name.empty() || !read_.ok(), field, "a name or a file");
    return name.empty() ? T() : read_.absorb(load_named(name));
  }

  void read_plan() {
    const auto model = load("model", zoo::load_model);
    const auto placed = load("plan", plan::load_placed_plan);
    const std::int64_t count = devices(false);
    if (!read_.ok()) {
      return;
    }
    const plan::Plan plan = plan::complete(placed, &model, &machine_, count);
    const std::int64_t needed = count > 0 ? count : plan.tp * plan.cp * plan.pp * plan.dp;
    if (Error mistakes = plan_mistakes(model, machine_, plan, needed); !mistakes.empty()) {
      read_.absorb(Result<int>(fail(placed.placed(std::move(mistakes)))));
      return;
    }
    job_.algorithms = plan::algorithms_of(plan);
    job_.workload = read_.absorb(
        machine::with_devices(machine_, needed).and_then([&](const machine::Machine& fitted) {
          return parallel::lower(model, plan, {.machine = &fitted});
        }));
  }

  void read_traces() {
    chakra::LoadOptions options;
    options.prefix = read_.required<std::string>("chakra");
    options.groups = read_.maybe<std::string>("groups");
    options.ranks = devices(true);
    if (!read_.ok()) {
      return;
    }
    const auto fitted = machine::with_devices(machine_, options.ranks);
    if (!fitted) {
      read_.absorb(Result<int>(fail(fitted.error())));
      return;
    }
    job_.workload = read_.absorb(chakra::load(options)
                                     .and_then([&](chakra::TraceSet traces) {
                                       return chakra::with_work(std::move(traces), options.prefix);
                                     })
                                     .and_then([&](const chakra::TraceSet& traces) {
                                       return workload_of(traces, *fitted, true);
                                     }));
  }

  void read_collective() {
    const auto kind = read_.required<graph::CollectiveKind>("collective");
    const auto bytes = read_.required<Bytes>("bytes");
    const auto times = read_.optional<std::int64_t>("times", 1);
    const std::int64_t count = devices(true);
    read_.require(bytes >= Bytes(1), "bytes", "a size above 0");
    read_.require(times >= 1 && times <= kMostTimes, "times", "1 to 1000000");
    if (read_.ok()) {
      job_.workload = collectives(kind, bytes, count, times);
    }
  }

  Reader read_;
  const machine::Machine& machine_;
  Job job_;
};

Result<JobsFile> read_jobs(const ConfigNode& root, const machine::Machine& machine) {
  Reader read(root);
  JobsFile file;
  file.seed = read.optional<std::uint64_t>("seed", 0);
  const auto placement = read.optional("placement", Placement::packed);
  std::set<std::string> names;
  for (const ConfigNode* item : read.take_items("jobs", true)) {
    file.jobs.push_back(read.absorb(JobReader(*item, placement, machine).read()));
    const ConfigNode* name = item->find("name");
    if (name != nullptr && !name->text.empty() && !names.insert(name->text).second) {
      read.absorb(Result<int>(
          fail(Error(Mistake{name->where(), name->path, name->text, "a name of its own"}))));
    }
  }
  read.require(!file.jobs.empty(), "jobs", "at least one job");
  return read.finish(std::move(file));
}

}  // namespace

Result<JobsFile> load_jobs(const std::string& file, const machine::Machine& machine) {
  return load_config(file).and_then(
      [&](const ConfigNode& root) { return read_jobs(root, machine); });
}

}  // namespace orrery::study
