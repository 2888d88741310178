// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "machine/device_groups.h"
#include "workload/parallel/passes.h"

namespace orrery::parallel {
namespace {

/// The lists of other roles.
class RenumberedRoles final : public graph::IssueList {
 public:
  RenumberedRoles(std::shared_ptr<const graph::Source> source, std::vector<int> before)
      : source_(std::move(source)), list_(*source_->list()), before_(std::move(before)) {}

  std::unique_ptr<graph::Source> restart() const override {
    return std::make_unique<RenumberedRoles>(source_, before_);
  }
  graph::Instance at(int role, std::int64_t index) const override {
    return list_.at(before(role), index);
  }
  std::int64_t length(int role) const override { return list_.length(before(role)); }
  std::optional<graph::Period> period(int role) const override {
    return list_.period(before(role));
  }
  std::vector<graph::Period> periods(int role, std::int64_t from) const override {
    return list_.periods(before(role), from);
  }
  std::int64_t steps() const override { return list_.steps(); }

 private:
  int before(int role) const { return before_[static_cast<std::size_t>(role)]; }

  std::shared_ptr<const graph::Source> source_;
  const graph::IssueList& list_;
  std::vector<int> before_;  ///< by role
};

/// Digits that tell both roles and parts apart; nullopt where there are none.
std::optional<std::vector<graph::Digit>> digits_of_parts(const graph::Workload& workload,
                                                         const machine::Machine& machine) {
  if (!workload.role_map.list.empty()) {
    return std::nullopt;
  }
  std::int64_t block = workload.ranks;
  std::int64_t first = 0;
  for (const machine::DeviceGroup& part : machine.parts) {
    block = std::gcd(block, first);
    first += part.devices;
  }
  std::vector<graph::Digit> known = workload.role_map.digits;
  known.push_back({.size = workload.ranks / block, .stride = block});
  auto atoms = graph::refine(known, {}, workload.ranks);
  if (atoms) {
    std::erase_if(*atoms, [&](const graph::Digit& atom) {
      return std::ranges::none_of(known, [&](const graph::Digit& digit) {
        return digit.stride <= atom.stride && atom.stride * atom.size <= digit.stride * digit.size;
      });
    });
  }
  return atoms;
}

/// Roles by what they were and where they run.
class PartRoles {
 public:
  PartRoles(graph::Workload& workload, const machine::Machine& machine)
      : workload_(workload), machine_(machine) {}

  void split() {
    if (const auto digits = digits_of_parts(workload_, machine_)) {
      for (std::int64_t role = 0; role < graph::product_of(*digits); ++role) {
        append(graph::replaced(*digits, 0, role));
      }
      map_.digits = *digits;
    } else {
      list();
    }
    workload_.source = std::make_shared<RenumberedRoles>(workload_.source, std::move(before_));
    workload_.role_map = std::move(map_);
    workload_.roles = std::move(roles_);
    workload_.programs = std::move(programs_);
  }

 private:
  void list() {
    std::map<std::pair<int, std::size_t>, std::int32_t> known;
    for (std::int64_t rank = 0; rank < workload_.ranks; ++rank) {
      const auto [entry, fresh] =
          known.try_emplace({workload_.role_of(rank), machine::device_group_of(machine_, rank)},
                            static_cast<std::int32_t>(roles_.size()));
      if (fresh) {
        append(rank);
      }
      map_.list.push_back(entry->second);
    }
  }

  void append(std::int64_t rank) {
    const int before = workload_.role_of(rank);
    const std::size_t part = machine::device_group_of(machine_, rank);
    graph::Role role = workload_.role(before);
    role.name += " on " + machine_.parts[part].name;
    const auto [entry, fresh] = program_of_.try_emplace({role.program, part}, programs_.size());
    if (fresh) {
      programs_.push_back(workload_.programs[role.program]);
      programs_.back().part = part;
    }
    role.program = entry->second;
    roles_.push_back(std::move(role));
    before_.push_back(before);
  }

  graph::Workload& workload_;
  const machine::Machine& machine_;
  graph::RoleMap map_;
  std::vector<graph::Role> roles_;
  std::vector<graph::Program> programs_;
  std::vector<int> before_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> program_of_;
};

}  // namespace

graph::Workload passes::parts(graph::Workload workload, const PassSetting& setting) {
  const bool mixed = setting.machine != nullptr && !setting.machine->parts.empty();
  if (mixed && workload.source->list() != nullptr) {
    PartRoles(workload, *setting.machine).split();
  }
  return workload;
}

}  // namespace orrery::parallel
