// SPDX-License-Identifier: Apache-2.0
/// Published runs that are nearest to a run, with the error of their prediction: how far the
/// figures of the run may be trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::study {

struct NearestRow {
  std::string table;
  std::string key;      ///< of the row
  std::string model;    ///< name
  std::string machine;  ///< name
  std::string measure;  ///< what is predicted, as named_values(Measure) names it
  std::int64_t devices = 0;
  double predicted = 0;
  double published = 0;
  double error = 0;  ///< predicted / published - 1
};

/// Returns the `most` rows of the shipped tables of training steps (`memory`: of their memory) on
/// devices of the machine's sort whose distance is least, the nearest first; none where no table
/// has such devices.
///
///   distance = sum over parameters, devices, tp, pp, cp, ep of |log2(row's / the plan's)|
///              + |difference of ZeRO's stages|
///
/// Every row is looked at; those that cannot be read or run are left out. A row is predicted as
/// `orrery validate` predicts it.
///
/// Ignores: framework, data type and sequence of the row.
std::vector<NearestRow> nearest_rows(const zoo::Model& model, const plan::Plan& plan,
                                     const machine::Machine& machine, std::size_t most,
                                     bool memory = false);

}  // namespace orrery::study
