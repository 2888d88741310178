// SPDX-License-Identifier: Apache-2.0
#include "graph/compose.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/lists.h"

namespace orrery::graph {
namespace {

/// Says where a role of the composition gets its work; none: it has none.
struct Origin {
  int job = -1;
  int role = 0;
};

class ComposedSource final : public Source {
 public:
  ComposedSource(std::vector<std::shared_ptr<Source>> jobs, std::vector<Time> starts,
                 std::vector<Origin> origins)
      : jobs_(std::move(jobs)), starts_(std::move(starts)), origins_(std::move(origins)) {}

  std::unique_ptr<Source> restart() const override {
    std::vector<std::shared_ptr<Source>> jobs = mapped<std::shared_ptr<Source>>(
        jobs_, [&](const std::shared_ptr<Source>& job) { return job->restart(); });
    return std::make_unique<ComposedSource>(std::move(jobs), starts_, origins_);
  }
  Next next(int role, std::int64_t index, Time now) override {
    const Origin& origin = origins_[static_cast<std::size_t>(role)];
    if (origin.job < 0) {
      return Next::done();
    }
    const auto job = static_cast<std::size_t>(origin.job);
    return now < starts_[job] ? Next::wait(starts_[job])
                              : jobs_[job]->next(origin.role, index, now);
  }
  void finished(int role, std::int64_t index, Time now) override {
    const Origin& origin = origins_[static_cast<std::size_t>(role)];
    Source& job = *jobs_[static_cast<std::size_t>(origin.job)];
    if (job.listens()) {
      job.finished(origin.role, index, now);
    }
  }
  bool listens() const override {
    return std::ranges::any_of(jobs_, [](const auto& job) { return job->listens(); });
  }

 private:
  std::vector<std::shared_ptr<Source>> jobs_;
  std::vector<Time> starts_;
  std::vector<Origin> origins_;  ///< by role
};

/// Returns where the row of that name is; it is made if need be.
template <class Row>
std::size_t row_named(std::vector<Row>& rows, const Row& row) {
  const auto found = std::ranges::find(rows, row.name, &Row::name);
  if (found != rows.end()) {
    return static_cast<std::size_t>(found - rows.begin());
  }
  rows.push_back(row);
  return rows.size() - 1;
}

class Composer {
 public:
  Composer(std::span<const PlacedJob> jobs, std::int64_t ranks) : jobs_(jobs) {
    made_.ranks = ranks;
    made_.role_map.list.assign(static_cast<std::size_t>(ranks), 0);
    std::int64_t busy = 0;
    for (const PlacedJob& job : jobs) {
      busy += std::ssize(job.ranks);
    }
    if (busy < ranks) {
      made_.roles.push_back({"idle", 0});
      made_.programs.emplace_back();
      origins_.emplace_back();
    }
  }

  Result<Composition> compose() {
    std::vector<std::shared_ptr<Source>> sources;
    std::vector<Time> starts;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const Workload& job = *jobs_[j].workload;
      add_tables(jobs_[j]);
      for (std::int64_t rank = 0; rank < job.ranks; ++rank) {
        add_rank(static_cast<int>(j), rank);
      }
      sources.push_back(job.source->restart());
      starts.push_back(jobs_[j].start);
      if (job.host_dispatch != jobs_.front().workload->host_dispatch) {
        error_.add(Error(fmt::format("{} and {} issue kernels at different speeds (host_dispatch)",
                                     jobs_.front().name, jobs_[j].name)));
      }
    }
    if (made_.groups.size() > kMostGroups) {
      error_.add(
          Error(fmt::format("the jobs have {} communicators of different names and sizes, "
                            "at most {} can be told apart",
                            made_.groups.size(), kMostGroups)));
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    for (std::size_t g = 0; g < lists_.size(); ++g) {
      if (!lists_[g].empty()) {
        made_.groups[g].members = Members::listed(std::move(lists_[g]), made_.ranks);
      }
    }
    made_.host_dispatch = jobs_.empty() ? Time(0) : jobs_.front().workload->host_dispatch;
    made_.source =
        std::make_shared<ComposedSource>(std::move(sources), std::move(starts), origins_);
    return Composition{std::move(made_), std::move(groups_)};
  }

 private:
  static constexpr std::size_t kMostGroups = 65'000;                   // GroupIndex has 16 bits
  using Offsets = std::vector<std::pair<std::int64_t, std::int64_t>>;  ///< in a job, as placed
  /// Groups of different jobs that are one.
  struct Family {
    std::string name;
    CategoryIndex category;
    std::int64_t size = 1;
    int kind = 0;
    int number = 0;  ///< of those before in the job that are equal otherwise

    friend auto operator<=>(const Family&, const Family&) = default;
  };
  /// Rows maps the rows of the present job to those of the composition.
  struct Rows {
    std::vector<StreamIndex> streams;
    std::vector<PhaseIndex> phases;
    std::vector<CategoryIndex> categories;
  };

  void add_tables(const PlacedJob& placed) {
    const Workload& job = *placed.workload;
    rows_ = {};
    for (const Stream& stream : job.streams) {
      const bool compute = rows_.streams.empty() && !made_.streams.empty();
      const std::size_t row = compute ? *kComputeStream : row_named(made_.streams, stream);
      if (made_.streams[row].order != stream.order) {
        error_.add(Error(fmt::format("{}: stream {} has another order than in a job before",
                                     placed.name, stream.name)));
      }
      rows_.streams.emplace_back(row);
    }
    for (const Phase& phase : job.phases) {
      rows_.phases.emplace_back(row_named(made_.phases, phase));
    }
    for (const Category& category : job.categories) {
      rows_.categories.emplace_back(row_named(made_.categories, category));
    }
    groups_.emplace_back();
    std::map<Family, int> known;  // of the job
    for (std::size_t g = 0; g < job.groups.size(); ++g) {
      const Group& group = job.groups[g];
      Family family{
          .name = group.name,
          .category = group.category.none() ? group.category : rows_.categories[*group.category],
          .size = group.members.size(),
          .kind = placed.kinds.empty() ? 0 : placed.kinds[g]};
      family.number = known[family]++;
      const std::size_t row = row_of(family, group.meaning);
      groups_.back().emplace_back(row);
      add_lists(group.members, placed, lists_[row]);
    }
  }

  std::size_t row_of(const Family& family, const std::string& meaning) {
    const auto [known, fresh] = families_.try_emplace(family, made_.groups.size());
    if (fresh) {
      made_.groups.push_back({family.name, meaning, {}, family.category});
      lists_.emplace_back();
    }
    return known->second;
  }

  /// Adds the communicators of a job where it is placed.
  static void add_lists(const Members& members, const PlacedJob& placed,
                        std::vector<std::vector<std::int64_t>>& lists) {
    std::vector<bool> seen(placed.ranks.size());
    for (std::size_t rank = 0; rank < seen.size(); ++rank) {
      if (seen[rank] || !members.holds(static_cast<std::int64_t>(rank))) {
        continue;
      }
      std::vector<std::int64_t> list = members.group(static_cast<std::int64_t>(rank));
      for (std::int64_t& member : list) {
        seen[static_cast<std::size_t>(member)] = true;
        member = placed.ranks[static_cast<std::size_t>(member)];
      }
      if (list.size() > 1) {
        lists.push_back(std::move(list));
      }
    }
  }

  /// Distinct peers of the messages of a program, as the job counts them.
  static std::vector<std::int64_t> peers_of(const Program& program) {
    std::set<std::int64_t> peers;
    for (const Template& part : program.templates) {
      for (const Node& node : part.nodes) {
        if (node.kind == Node::Kind::send || node.kind == Node::Kind::receive) {
          peers.insert(node.peer);
        }
      }
    }
    return {peers.begin(), peers.end()};
  }

  void add_rank(int number, std::int64_t rank) {
    const PlacedJob& placed = jobs_[static_cast<std::size_t>(number)];
    const int role = placed.workload->role_of(rank);
    const std::int64_t at = placed.ranks[static_cast<std::size_t>(rank)];
    Offsets offsets;
    const std::size_t program = placed.workload->role(role).program;
    const auto [peers, fresh_peers] = peers_.try_emplace({number, program});
    if (fresh_peers) {
      peers->second = peers_of(placed.workload->programs[program]);
    }
    for (const std::int64_t peer : peers->second) {
      offsets.emplace_back(peer, placed.ranks[static_cast<std::size_t>(rank + peer)] - at);
    }
    const auto [known, fresh] = roles_.try_emplace({number, role, offsets}, made_.roles.size());
    if (fresh) {
      made_.roles.push_back({placed.name + ", " + placed.workload->role(role).name,
                             program_of(number, role, offsets)});
      origins_.resize(made_.roles.size());
      origins_.back() = {number, role};
    }
    made_.role_map.list[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(known->second);
  }

  std::size_t program_of(int number, int role, const Offsets& offsets) {
    const Workload& job = *jobs_[static_cast<std::size_t>(number)].workload;
    const std::size_t program = job.role(role).program;
    const auto [known, fresh] =
        programs_.try_emplace({number, program, offsets}, made_.programs.size());
    if (fresh) {
      made_.programs.push_back(job.programs[program]);
      for (Template& part : made_.programs.back().templates) {
        part.tensors.clear();
        for (Node& node : part.nodes) {
          place(node, groups_[static_cast<std::size_t>(number)], offsets);
        }
      }
    }
    return known->second;
  }

  void place(Node& node, const std::vector<GroupIndex>& groups, const Offsets& offsets) const {
    node.stream = rows_.streams[*node.stream];
    node.phase = node.phase.none() ? node.phase : rows_.phases[*node.phase];
    const auto moved = [&](GroupIndex group) { return group.none() ? group : groups[*group]; };
    node.group = moved(node.group);
    node.sharers = moved(node.sharers);
    node.reads.clear();
    node.writes.clear();
    if (node.kind == Node::Kind::send || node.kind == Node::Kind::receive) {
      node.peer = std::ranges::find(offsets, node.peer, &Offsets::value_type::first)->second;
    }
  }

  std::span<const PlacedJob> jobs_;
  Workload made_;
  Rows rows_;
  std::vector<std::vector<GroupIndex>> groups_;  ///< by job
  std::map<Family, std::size_t> families_;
  std::vector<std::vector<std::vector<std::int64_t>>> lists_;  ///< by row of the composition
  std::vector<Origin> origins_;                                ///< by role
  std::map<std::pair<int, std::size_t>, std::vector<std::int64_t>> peers_;
  std::map<std::tuple<int, int, Offsets>, std::size_t> roles_;
  std::map<std::tuple<int, std::size_t, Offsets>, std::size_t> programs_;
  Error error_;
};

}  // namespace

Result<Composition> compose(std::span<const PlacedJob> jobs, std::int64_t ranks) {
  return Composer(jobs, ranks).compose();
}

}  // namespace orrery::graph
