// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/rules.h"

#include <algorithm>

#include "mpi_calls/outline.h"

namespace orrery::mpi_calls {

std::vector<Label> complete_by_rules(const Record& record) {
  const Outline outline(record);
  std::vector<Label> labels;
  if (!outline.main()) {
    return labels;
  }
  const MainOutline& main = *outline.main();
  std::int64_t sub = 0;
  const auto add = [&](const std::string& call) {
    labels.push_back({main.declared, ++sub, "  " + call + ";"});
  };
  add(main.arguments ? "MPI_Init(&argc, &argv)" : "MPI_Init(NULL, NULL)");
  const auto& variables = outline.variables();
  for (const auto& [role, function] :
       {std::pair("rank", "MPI_Comm_rank"), std::pair("size", "MPI_Comm_size")}) {
    const auto variable = std::ranges::find_if(variables, [&, wanted = role](const auto& name) {
      return outline.role_of(name) == wanted;
    });
    if (variable != variables.end()) {
      add(std::string(function) + "(MPI_COMM_WORLD, &" + *variable + ")");
    }
  }
  const bool together = main.finish == main.declared;
  labels.push_back({main.finish, together ? sub + 1 : 1, "  MPI_Finalize();"});
  return labels;
}

}  // namespace orrery::mpi_calls
