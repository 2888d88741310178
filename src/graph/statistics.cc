// SPDX-License-Identifier: Apache-2.0
#include "graph/workload.h"

namespace orrery {
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
  WorkloadStatistics total;
  for (std::size_t role = 0; role < workload.programs.size(); ++role) {
    const std::vector<TemplateSize> sizes = sizes_of(workload.programs[role]);
    std::vector<std::int64_t> uses(sizes.size(), 0);
    const std::int64_t length = workload.source->length(static_cast<int>(role));
    for (std::int64_t i = 0; i < length; ++i) {
      if (const auto instance = workload.source->issue(static_cast<int>(role), i)) {
        ++uses.at(static_cast<std::size_t>(instance->template_index));
      }
    }
    total.instances += length;
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      total.nodes += uses[t] * sizes[t].nodes;
      total.flops += sizes[t].flops * uses[t];
    }
  }
  return total;
}

}  // namespace orrery
