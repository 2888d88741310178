// SPDX-License-Identifier: Apache-2.0
/// A whole training run from one step: days, energy, money, checkpoints, failures.
///
///   steps   = tokens / tokens of a step
///   work    = steps * step time
///   days    = of a job that keeps that work (goodput/job_run.h); work alone where no rate of
///             failures is known
///   energy  = (energy of a step * (work + lost) / step time
///              + idle power * devices * (days - work - lost)) * pue
///   money   = devices * price per hour * days
///
/// where lost is the work that stops undo. Ignores: warm-up, evaluations, other sequence lengths or
/// batches later in the run; hosts and switches, but for what `pue` says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "goodput/job_run.h"
#include "goodput/question.h"
#include "study/run.h"

namespace orrery::study {

/// CheckpointPath names the tiers of the device's memory (device.memory) that a checkpoint goes to.
struct CheckpointPath {
  std::string to;       ///< durable there
  std::string through;  ///< copied there first; "": nowhere
  bool whole = false;  ///< one of the ranks that hold the same writes it; false: an equal part each
};

struct WrittenCheckpoint {
  Bytes bytes{0};  ///< of the device that writes most
  goodput::CheckpointCost cost;
};

struct RunPlan {
  double tokens = 0;
  double steps = 0;
  Duration work{0};        ///< without any stop or checkpoint
  goodput::Band days;      ///< all three alike where no rate is known
  double goodput = 1;      ///< work / mean days
  goodput::Band failures;  ///< none where no rate is known
  goodput::Band checkpoints;
  Duration interval{0};            ///< between checkpoints; 0: none is planned
  std::optional<Energy> energy;    ///< none where the machine states no power
  std::optional<Money> money;      ///< none where no price is known
  std::string price_source;        ///< where the price comes from, or why there is none
  std::int64_t price_year = 0;     ///< that the source names; 0: none
  std::int64_t price_devices = 1;  ///< that the stated price is of: a node's, or one
  std::optional<WrittenCheckpoint> checkpoint;  ///< where its cost follows from the machine
};

/// Plans a run. `pue` multiplies the devices' energy: what cooling and power supplies draw beside
/// them.
/// Mistakes: fewer tokens than one step has, a job that makes no progress between its stops.
Result<RunPlan> plan_run(const Run& run, double tokens, const goodput::Asked& asked,
                         std::int64_t seeds, double pue);

/// Returns what a device writes, of the stage where it is most, and how long that takes.
///
///   bytes    e s_p / n + o s_o / n, or e + o with `whole`; n ranks have the same stage, of which
///            s_p share parameters of e bytes a rank, s_o states of o; with experts n is edp
///   holds    bytes / bandwidth of `through`, else of `to`
///   persists bytes / bandwidth of `to` where there is `through`, else 0
///
/// Mistakes, by field checkpoint_to and checkpoint_through: no tier of that name, that of the
/// states, a tier to copy to first that is not above the other, states that do not lie on the
/// device.
/// Ignores:  latencies; what else uses the tiers meanwhile; that parameters of 16 bits follow from
///           the states' own.
Result<WrittenCheckpoint> written_checkpoint(const Run& run, const CheckpointPath& path);

/// Reads "15T", "300B" or "1.5e12" as tokens. K, M, B (or G) and T are powers of 1000.
tl::expected<double, std::string> parse_tokens(std::string_view text);

}  // namespace orrery::study
