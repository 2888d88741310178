// SPDX-License-Identifier: Apache-2.0
/// Predictions beside published runs of inference engines.
///
/// kind: serving           a run per row. Fields of `plan`, `columns` and `cases`: model, machine,
///                         engine, requests.* (study::ServedRequests), and the engine's by section
///                         (scheduler.max_num_seqs). A case column "a/b" is the texts of columns a
///                         and b joined with a slash. `flags`: a column that describes the run in
///                         words instead (described.h).
/// kind: serving_requests  a request per row with the columns of configs/validation/vllm_requests
///                         .csv (input_tokens, output_tokens, arrival_s, queued_s, first_token_s,
///                         last_token_s); rows of equal key are one run, whose arrival_s are served
///                         again. Compared: mean, median, P90, P95 and P99 of TTFT, TPOT and
///                         latency on the engine's clock (from queued_s).
///
/// `fitted`, `overrides` of plan fields but kKernels: not used.
#pragma once

#include <string_view>

#include "study/validate.h"

namespace orrery::served {

/// The one field of `options.overrides`: files of measured kernels (Engine::kernels), of all rows.
inline constexpr std::string_view kKernels = "kernels.tables";

/// Validates profiles of serving as study::validate does those of training.
Result<study::ValidationResult> validate_serving(const study::ValidationProfile& profile,
                                                 const CsvTable& table,
                                                 const study::ValidationOptions& options);

}  // namespace orrery::served
