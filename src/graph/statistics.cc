// SPDX-License-Identifier: Apache-2.0
#include <cassert>

#include "graph/workload.h"

namespace orrery::graph {
namespace {

struct TemplateSize {
  std::int64_t nodes = 0;
  Flops flops{0};
};

std::vector<TemplateSize> sizes_of(const Program& program) {
  std::vector<TemplateSize> sizes;
  for (const Template& t : program.templates) {
    TemplateSize size{.nodes = static_cast<std::int64_t>(t.nodes.size())};
    for (const Node& node : t.nodes) {
      for (const Operator& op : node.operators) {
        size.flops += op.flops;
      }
    }
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

WorkloadStatistics statistics(const Workload& workload) {
  const IssueList* list = workload.source->list();
  assert(list != nullptr && "the source is a list");
  WorkloadStatistics total;
  const Excerpt excerpt(*list, workload.roles.size(), 1);
  for (int role = 0; role < static_cast<int>(workload.roles.size()); ++role) {
    const std::vector<TemplateSize> sizes = sizes_of(workload.program_of(role));
    excerpt.for_each(role, [&](const Instance& instance, std::int64_t times) {
      const TemplateSize& size = sizes.at(static_cast<std::size_t>(instance.template_index));
      total.nodes += times * size.nodes;
      total.flops += size.flops * times;
    });
    total.instances += list->length(role);
  }
  return total;
}

}  // namespace orrery::graph
