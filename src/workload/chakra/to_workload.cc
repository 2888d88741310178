// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/to_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/lists.h"
#include "graph/regular.h"
#include "workload/chakra/families.h"
#include "workload/chakra/message_ends.h"
#include "workload/chakra/mistakes.h"
#include "workload/chakra/template_tensors.h"
#include "workload/chakra/template_writer.h"

namespace orrery::chakra {
namespace {

/// Rows of a table that a 16-bit index can name, less those that are always there.
constexpr std::size_t kMostFamilies = 65'000;

bool is_collective(const Node& node) {
  return (node.type == NodeType::comm_coll && !node.on_cpu) || is_ring_shift(node);
}

bool has_durations(const TraceSet& traces) {
  const auto measured = [](const Node& node) {
    return node.type == NodeType::comp && !node.on_cpu && node.duration > Time(0);
  };
  return std::any_of(traces.programs.begin(), traces.programs.end(), [&](const Program& program) {
    return std::any_of(program.nodes.begin(), program.nodes.end(), measured);
  });
}

/// Says which ranks one template serves.
struct Variants {
  std::vector<std::int32_t> of_rank;
  std::vector<std::int64_t> first_rank;  ///< by variant
};

class Maker {
 public:
  Maker(const TraceSet& traces, const ToWorkloadOptions& options)
      : traces_(traces), options_(options), messages_(traces) {
    mistakes_.begin("");
  }

  Result<graph::Workload> make() {
    rows_.durations = options_.durations && has_durations(traces_);
    read_uses();
    messages_.check(mistakes_);
    if (!mistakes_.empty()) {
      return fail(mistakes_.take());
    }
    Families families(traces_, uses_, options_.dimensions);
    if (families.size() > kMostFamilies) {
      return fail(
          fmt::format("{} families of communicators that share no rank: expected at most {}",
                      families.size(), kMostFamilies));
    }
    rows_.families = families.size();
    workload_.ranks = traces_.ranks();
    const Variants variants = variants_of(families);
    write_programs(families, variants);
    if (!mistakes_.empty()) {
      return fail(mistakes_.take());
    }
    if (auto ok = write_tensors(variants); !ok) {
      return fail(std::move(ok.error()));
    }
    write_roles(variants);
    write_tables(families.take(workload_.role_map.digits));
    if (auto ok = graph::verify(workload_); !ok) {
      return fail(std::move(ok.error()));
    }
    return std::move(workload_);
  }

 private:
  void read_uses() {
    std::vector<std::int64_t> first(traces_.programs.size(), -1);
    for (std::int64_t rank = traces_.ranks() - 1; rank >= 0; --rank) {
      first[traces_.program_of[static_cast<std::size_t>(rank)]] = rank;
    }
    for (std::size_t program = 0; program < first.size(); ++program) {
      std::set<GroupUse> uses;
      for (const Node& node : traces_.programs[program].nodes) {
        if (is_collective(node)) {
          check_dimensions(node, first[program]);
          uses.insert({node.group, dimensions_of(node, options_.dimensions.size())});
        }
      }
      uses_.emplace_back(uses.begin(), uses.end());
    }
  }

  void check_dimensions(const Node& node, std::int64_t rank) {
    const std::size_t known = options_.dimensions.size();
    const bool all = dimensions_of(node, known) == GroupUse::kAllDimensions;
    if (rank < 0 || all || (known > 0 && node.involved_entries >= known)) {
      return;
    }
    mistakes_.name(fmt::format("rank {}", rank));
    mistakes_.add(node_label(node.id, traces_.program(rank).name_of(node)),
                  fmt::format("involved_dim of {} entries", node.involved_entries),
                  known > 0 ? fmt::format("one per dimension of the network, {}", known)
                            : "a network whose dimensions are known");
  }

  /// Ranks of one program whose uses mean the same families, in communicators of equal size.
  Variants variants_of(const Families& families) const {
    std::map<std::pair<std::uint32_t, std::vector<Families::Place>>, std::int32_t> known;
    Variants variants;
    for (std::int64_t rank = 0; rank < traces_.ranks(); ++rank) {
      const std::uint32_t program = traces_.program_of[static_cast<std::size_t>(rank)];
      std::vector<Families::Place> places =
          mapped(uses_[program], [&](const GroupUse& use) { return families.place(rank, use); });
      const auto [found, fresh] = known.try_emplace(
          {program, std::move(places)}, static_cast<std::int32_t>(variants.first_rank.size()));
      if (fresh) {
        variants.first_rank.push_back(rank);
      }
      variants.of_rank.push_back(found->second);
    }
    return variants;
  }

  void write_programs(const Families& families, const Variants& variants) {
    for (const std::int64_t rank : variants.first_rank) {
      TemplateWriter writer(traces_, rank, families, messages_, rows_, options_, mistakes_);
      workload_.programs.emplace_back().templates.push_back(writer.write());
    }
  }

  Result<void> write_tensors(const Variants& variants) {
    if (!options_.tensors) {
      return {};
    }
    constexpr graph::MemoryIndex kTensors(std::size_t{0});
    bool any = false;
    for (std::size_t variant = 0; variant < variants.first_rank.size(); ++variant) {
      const std::int64_t rank = variants.first_rank[variant];
      const auto uses = options_.tensors(rank);
      if (!uses) {
        return fail(uses.error());
      }
      const Program& program = traces_.program(rank);
      const auto begin = add_tensors(program, execution_order(program), *uses, kTensors,
                                     workload_.programs[variant].templates.front());
      if (!begin) {
        return fail(fmt::format("rank {}: {}", rank, begin.error().to_string()));
      }
      any = any || !uses->tensors.empty();
      states_.push_back(*begin > Bytes(0)
                            ? std::vector<graph::Tensor>{{.name = "there at the begin",
                                                          .bytes = *begin,
                                                          .layout = {},
                                                          .memory = kTensors,
                                                          .lifetime = graph::Tensor::Lifetime::run}}
                            : std::vector<graph::Tensor>());
    }
    if (any) {
      workload_.memory = {{"tensors", "what nodes of the traces read and write"}};
    }
    return {};
  }

  /// Writes roles by digits of the rank, unless every rank would have a role of its own although
  /// some do the same.
  void write_roles(const Variants& variants) {
    const auto programs = std::ssize(variants.first_rank);
    std::vector<graph::Digit> digits = graph::telling_digits(variants.of_rank);
    if (graph::product_of(digits) == traces_.ranks() && programs < traces_.ranks()) {
      workload_.role_map.list = variants.of_rank;
      for (std::size_t program = 0; program < variants.first_rank.size(); ++program) {
        add_role(variants.first_rank[program], program);
      }
    } else {
      for (std::int64_t role = 0; role < graph::product_of(digits); ++role) {
        const std::int64_t rank = graph::replaced(digits, 0, role);
        add_role(rank, static_cast<std::size_t>(variants.of_rank[static_cast<std::size_t>(rank)]));
      }
      workload_.role_map.digits = std::move(digits);
    }
    workload_.source =
        std::make_shared<graph::InstanceLists>(std::vector<std::vector<graph::Instance>>(
            workload_.roles.size(), std::vector<graph::Instance>(1)));
  }

  void add_role(std::int64_t rank, std::size_t program) {
    workload_.roles.push_back({fmt::format("rank {}", rank), program,
                               states_.empty() ? std::vector<graph::Tensor>() : states_[program]});
  }

  void write_tables(std::vector<Families::Family> families) {
    workload_.phases = {{"compute", "kernels"}};
    workload_.streams = {
        {"compute", "kernels", graph::Order::readiness},
        {"cpu", "nodes on the CPU", graph::Order::readiness},
        {"send", "messages sent", graph::Order::none},
        {"receive", "messages received, and what takes no time", graph::Order::none},
        {"store", "copies to a lower memory tier", graph::Order::readiness},
        {"load", "copies from a lower memory tier", graph::Order::readiness},
    };
    for (Families::Family& family : families) {
      const std::size_t count = std::max<std::size_t>(1, family.groups.size());
      add_group(family.name, std::move(family.members),
                fmt::format("collectives of {} communicator{}, the first of them {}", count,
                            count == 1 ? "" : "s", family.name));
      workload_.streams.push_back(
          {workload_.groups.back().name, "collectives, in order", graph::Order::issue});
    }
    add_group("messages", {}, "messages from rank to rank");
    add_group("to_host", {}, "memory nodes that store");
    add_group("from_host", {}, "memory nodes that load");
    add_group("cpu", {}, "nodes on the CPU");
  }

  /// Adds a group with a category of its own, under a name of its own, since names of traces need
  /// not be unique.
  void add_group(std::string name, graph::Members members, std::string meaning) {
    const std::string first = name;
    for (int number = 2; !workload_.group_named(name).none(); ++number) {
      name = fmt::format("{} ({})", first, number);
    }
    workload_.categories.push_back(
        {name + " exposed", fmt::format("{}, nothing computing", meaning)});
    workload_.groups.push_back({std::move(name), std::move(meaning), std::move(members),
                                graph::CategoryIndex(workload_.groups.size())});
  }

  const TraceSet& traces_;
  const ToWorkloadOptions& options_;
  MessageEnds messages_;
  std::vector<std::vector<GroupUse>> uses_;  ///< by program
  TraceRows rows_;
  std::vector<std::vector<graph::Tensor>> states_;  ///< by program, if tensors are asked for
  graph::Workload workload_;
  Mistakes mistakes_;
};

}  // namespace

Result<graph::Workload> to_workload(const TraceSet& traces, const ToWorkloadOptions& options) {
  if (traces.ranks() == 0) {
    return fail("traces of no ranks");
  }
  return Maker(traces, options).make();
}

}  // namespace orrery::chakra
