// SPDX-License-Identifier: Apache-2.0
/// ASTRA-sim's command line arguments that name files -> what run() takes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "compat/astra/quirks.h"
#include "compat/astra/run.h"

namespace orrery::astra {

struct Files {
  std::string workload;  ///< prefix of the trace files
  std::string system;    ///< JSON
  std::string network;   ///< YAML; JSON when it ends in .json
  std::string memory;    ///< JSON
  std::optional<std::string> groups;
  bool warn_of_unknown = false;  ///< keys that nothing reads are warnings, not mistakes
  /// Dimensions, JSON: then `network` states links (link_network.h).
  std::optional<std::string> logical = std::nullopt;
};

struct Loaded {
  RunInput input;
  std::vector<std::string> warnings;  ///< one sentence each, with file and line
  std::string topology;               ///< file of the network's links; empty: none are stated
};

/// Reads all files and reports the mistakes of all of them; the traces only when the network says
/// how many ranks there are. Also mistakes: a list of implementations that does not fit the
/// network, and a collective in the traces whose list is missing.
Result<Loaded> load_files(const Files& files, const Quirks& quirks,
                          const std::function<void(double)>& progress = {});

/// The same of files that have been read, or of what a study made of them. Names of custom
/// collectives are relative to the folder of the system's file.
struct Documents {
  ConfigNode system;
  ConfigNode network;
  ConfigNode memory;
  std::string workload;  ///< prefix of the trace files
  std::optional<std::string> groups = std::nullopt;
};
Result<Loaded> load_documents(const Documents& documents, const Quirks& quirks);

}  // namespace orrery::astra
