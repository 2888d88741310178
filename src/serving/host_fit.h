// SPDX-License-Identifier: Apache-2.0
/// Fits times of an engine's host and front end to the times of requests at a live endpoint.
#pragma once

#include <cstdint>
#include <vector>

#include "base/csv.h"
#include "serving/serve.h"

namespace orrery::serving {

/// Holds the times of one answer on its client's clock, as `orrery serve --observe` writes them.
struct MeasuredRequest {
  requests::Request request;  ///< its arrival is when it was sent
  Time ttft{0};
  Time tpot{0};  ///< 0: an answer of one token
};

/// Reads rows of a table with columns input_tokens, output_tokens, sent_s, ttft_s, tpot_s and, if
/// there are such, status: rows of another status than 200 are left out. Mistakes: missing columns,
/// what is no number, no rows at all.
Result<std::vector<MeasuredRequest>> read_measured_requests(const CsvTable& table);

/// Mean |ln(predicted / measured)| of requests.
struct HostErrors {
  double ttft = 0;
  double tpot = 0;
};

struct HostFit {
  Engine engine;  ///< with the fitted times
  HostErrors before;
  HostErrors after;
  std::int64_t requests = 0;
};

/// Fits front_end, gap (of an asynchronous engine; else step) and per_request of `engine`:
///
///   minimise  mean |ln(TTFT simulated / measured)| + mean |ln(TPOT simulated / measured)|
///
/// over runs of serve() with the measured requests, each logarithm at most 1 (calibrate::minimize).
/// The accelerator's time is the model's: its error goes into what is fitted. A load at which
/// few requests run at once leaves per_request uncertain.
/// Mistakes: those of Server::make.
Result<HostFit> fit_host(const zoo::Model& model, const machine::Machine& machine,
                         const Engine& engine, const std::vector<MeasuredRequest>& measured);

}  // namespace orrery::serving
