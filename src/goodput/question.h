// SPDX-License-Identifier: Apache-2.0
/// A question about a job's goodput: rates of stops from one number, a file or a log, and the
/// times of checkpoints and recovery.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "goodput/scenario.h"

namespace orrery::goodput {

/// The times that are assumed where none is stated. They are round numbers, not measurements: every
/// result that rests on one says so.
inline constexpr Duration kAssumedCheckpoint{60};
inline constexpr Duration kAssumedRestart{300};

struct Question {
  Duration mtbf{0};
  Duration job_mtbf{0};
  std::string failures;
  std::string log;
  Duration log_length{0};
  std::int64_t log_devices = 0;
  Duration checkpoint_cost = kAssumedCheckpoint;
  Duration checkpoint_persist{0};
  Duration checkpoint_interval{0};
  std::int64_t storage_every = 1;
  Duration detection{0};
  Duration diagnosis{0};
  Duration restart = kAssumedRestart;
  std::int64_t node_devices = 8;
  std::int64_t spares = -1;
  Duration repair{86400};
  WithoutSpare without_spare = WithoutSpare::wait;
  double shrunk_speed = 0;
  std::int64_t seeds = 1000;

  template <class V>
  static void fields(V&& visit) {
    using Q = Question;
    visit("mtbf", &Q::mtbf, "mean time between failures of one device, such as '50000 h'");
    visit("job_mtbf", &Q::job_mtbf, "of the whole job instead: 16,384 devices of 50,677 h: 3.09 h");
    visit("failures", &Q::failures, "a YAML file of components with their rates instead");
    visit("log", &Q::log, "a CSV file of failures (hours, component) instead: rates are fitted");
    visit("log_length", &Q::log_length, "how long that log is, such as '54 d'");
    visit("log_devices", &Q::log_devices, "devices of that log; default: of the job");
    visit("checkpoint_cost", &Q::checkpoint_cost,
          "a checkpoint holds the job so long; assumed 60 s");
    visit("checkpoint_persist", &Q::checkpoint_persist,
          "from there until it is durable (asynchronous checkpoints); default 0 s");
    visit("checkpoint_interval", &Q::checkpoint_interval,
          "work between two checkpoints; default: the best");
    visit("storage_every", &Q::storage_every,
          "checkpoints in memory for each that also reaches storage; default 1");
    visit("detection", &Q::detection, "until a stop is noticed; default 0 s");
    visit("diagnosis", &Q::diagnosis, "until what failed is known and isolated; default 0 s");
    visit("restart", &Q::restart, "until the job runs again; assumed 300 s");
    visit("node_devices", &Q::node_devices, "devices of a node; default 8");
    visit("spares", &Q::spares, "spare nodes; default: one is always at hand");
    visit("repair", &Q::repair, "until a lost node is back; default 24 h");
    visit("without_spare", &Q::without_spare, "wait (default) or shrink: run on with fewer nodes");
    visit("shrunk_speed", &Q::shrunk_speed,
          "share of the speed with a node less (`orrery plan --elastic`); default: of the devices");
    visit("seeds", &Q::seeds, "simulated lives; default 1000");
  }
};

/// A question with its rates.
struct Asked {
  Scenario scenario;                 ///< no components: no rate is known
  Component otherwise;               ///< the stated times of a stop
  std::vector<FittedRate> fitted;    ///< of a log
  std::vector<std::string> assumed;  ///< a sentence for each number that nobody stated
};

/// `given` says whether a field was stated. Mistakes, all at once, by field: several sources of
/// rates, values out of range, those of the files, an interval that ends before its checkpoint is
/// durable.
Result<Asked> ask(const Question& question, std::int64_t devices,
                  const std::function<bool(std::string_view)>& given);

/// Reports a mistake where simulating this many stops would take more than minutes.
Result<void> check_stops(const Scenario& scenario, Duration length, std::int64_t seeds);

}  // namespace orrery::goodput
