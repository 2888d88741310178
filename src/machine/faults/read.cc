// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/reader.h"
#include "machine/faults/faults.h"

namespace orrery::faults {
namespace {

const char* places_field(FaultKind kind) {
  return kind == FaultKind::link ? "links" : kind == FaultKind::node ? "nodes" : "ranks";
}

Result<Fault> read_fault(const ConfigNode& node) {
  Reader read(node);
  Fault fault;
  fault.where = node.where();
  fault.kind = read.required<FaultKind>("kind");
  if (!read.ok()) {  // which of the others belong to it is not known
    for (const char* name :
         {"ranks", "links", "nodes", "factor", "bandwidth_share", "at", "mtbf_hours", "lasts"}) {
      read.ignore(name);
    }
    return read.finish(std::move(fault));
  }
  const char* field = places_field(fault.kind);
  fault.places = read.list<std::string>(field, true);
  read.require(!fault.places.empty(), field, "at least one, or all");
  if (fault.kind == FaultKind::straggler) {
    fault.value = read.required<double>("factor");
    read.require(fault.value >= 1 && fault.value <= 1e6, "factor", "1 to 1e6");
  } else if (fault.kind == FaultKind::link) {
    fault.value = read.required<double>("bandwidth_share");
    read.require(fault.value >= 0 && fault.value < 1, "bandwidth_share", "0 (lost) to below 1");
  }
  const auto at = read.maybe<Time>("at");
  const auto mtbf = read.maybe<double>("mtbf_hours");
  fault.at = at.value_or(Time(0));
  fault.mtbf_hours = mtbf.value_or(0);
  read.require(at.has_value() != mtbf.has_value(), at ? "mtbf_hours" : "at",
               "either `at` or `mtbf_hours`");
  read.require(fault.at >= Time(0), "at", "a time of 0 or more");
  read.require(!mtbf || (*mtbf > 0 && *mtbf <= 1e12), "mtbf_hours", "hours above 0");
  fault.lasts = read.optional("lasts", Time::max());
  read.require(fault.lasts > Time(0), "lasts", "a time above 0");
  return read.finish(std::move(fault));
}

Result<FaultPlan> read_plan(const ConfigNode& root) {
  Reader read(root);
  FaultPlan plan;
  plan.seed = read.optional<std::uint64_t>("seed", 0);
  plan.until = read.optional("until", Time(0));
  plan.reroute_after = read.optional("reroute_after", plan.reroute_after);
  plan.recolour = read.optional("recolour", false);
  plan.measurement_noise = read.optional("measurement_noise", 0.0);
  read.require(plan.until >= Time(0), "until", "a time of 0 or more");
  read.require(plan.reroute_after >= Time(0), "reroute_after", "a time of 0 or more");
  read.require(plan.measurement_noise >= 0 && plan.measurement_noise <= 2, "measurement_noise",
               "0 to 2");
  bool random = false;
  for (const ConfigNode* item : read.take_items("faults", true)) {
    plan.faults.push_back(read.absorb(read_fault(*item)));
    random = random || plan.faults.back().mtbf_hours > 0;
  }
  read.require(!random || plan.until > Time(0), "until",
               "a time above 0, until which faults of an `mtbf_hours` begin");
  return read.finish(std::move(plan));
}

}  // namespace

Result<FaultPlan> parse_faults(const std::string& text, const std::string& file) {
  return parse_config(text, file, ConfigSyntax::yaml).and_then(read_plan);
}

Result<FaultPlan> load_faults(const std::string& file) {
  return load_config(file).and_then(read_plan);
}

}  // namespace orrery::faults
