// SPDX-License-Identifier: Apache-2.0
/// This header holds what the keys of a training framework's configuration say, before it is one
/// plan. Internal to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "workload/interop/framework_tables.h"
#include "workload/interop/interop.h"

namespace orrery::interop {

/// Numbers: 0 = not there, -1 = what the others leave.
struct FrameworkJob {
  std::string_view framework;
  plan::Plan plan{};
  std::vector<Remark> remarks{};
  Error error{};
  double devices = 0;
  double nodes = 0;
  double per_node = 0;  ///< devices
  double micro = 0;     ///< sequences of a replica
  double accumulation = 0;
  double global = 0;
  double sequence = 0;
  double tp = 0;
  double pp = 0;
  double cp = 0;
  double ep = 0;
  double replicas = 0;    ///< of parameters
  double shards = 0;      ///< of parameters
  double per_device = 0;  ///< sequences, whatever the device's axis
  double pipeline_microbatches = 0;
  double rank = 0;           ///< of adapters
  double dropout = 0;        ///< of what adapters read
  bool by_trl = false;       ///< whose adapters have defaults of their own
  std::string model_name{};  ///< in lower case
  std::string adapter_targets{};
  bool adapter = false;
  plan::FrozenType frozen = plan::FrozenType::compute_type;  ///< of what adapters leave alone
  bool checkpoints = false;  ///< activations of every layer are computed again
  bool compiled = false;     ///< whether kernels are fused is stated
  bool hybrid = false;       ///< shards stay within a node
  bool stated_sharding = false;
  bool stated_type = false;
  std::map<Meaning, Mistake> places{};  ///< where numbers were read: file, key and text
};

/// Returns the number that a key of this meaning states; nullptr: of another meaning.
double* count_of(FrameworkJob& job, Meaning meaning);

/// Says whether a key of this meaning states a batch or a sequence, which 0 is none of.
bool counts_sequences(Meaning meaning);

/// Says whether a key of this meaning states a degree of an axis.
bool is_degree(Meaning meaning);

/// Says whether a key of this meaning says something by null, false or 0, too.
bool reads_false(Meaning meaning);

/// Makes `job.plan` of them. `devices`: 0 = as the file says. Mistakes go to `job.error`.
void settle(FrameworkJob& job, std::int64_t devices);

}  // namespace orrery::interop
