// SPDX-License-Identifier: Apache-2.0
/// Says how one budget of devices is divided between models that train at the same time.
///
///   time of a model   its tokens / tokens per second of the best plan on its devices
///   apart             every model on devices of its own; all run at once
///   in_turn           one after the other, each on all devices
///
///   objective time                    apart the longest time, in turn the sum: least wins
///   objective cost, tokens_per_joule  the sum of money or energy over the models
///
/// Numbers of devices are whole nodes: 1, 3, 5 or 7 times a power of two of them, and all; what
/// that leaves stays idle. Each is a search of good_limits(). More devices are taken to be no
/// slower: for the longest time the number of one model's devices is found by halving, between
/// those where it and those where the others end last; the last model has all that is left or one
/// number fewer. For sums all numbers are tried.
///
/// Ignores:  starts, checkpoints and failures; devices that a model frees when it ends.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/units.h"
#include "planner/advice/probe.h"

namespace orrery::advice {

/// A model with its own batch and fixed fields, and how many tokens it is trained on.
struct Work {
  std::string name;
  full::Task task;  ///< its devices are those of all
  double tokens = 0;
};

struct WorkShare {
  std::int64_t devices = 0;
  full::Found best;
  Duration time{0};
};

struct Arrangement {
  std::vector<WorkShare> shares;  ///< in the order of the models; empty: some model has no plan
  Duration end{0};                ///< of the last
  double score = 0;               ///< seconds, dollars or joules; least is best
};

struct Division {
  Arrangement apart;
  Arrangement in_turn;
  Error missing;  ///< where not in turn: why models have no plan on all devices, under their names
  bool runs() const { return !apart.shares.empty() || !in_turn.shares.empty(); }
  bool best_is_apart() const {
    return !apart.shares.empty() && (in_turn.shares.empty() || apart.score <= in_turn.score);
  }
};

/// Says how an arrangement's score follows from its models'.
enum class Together : std::uint8_t { longest, sum };

/// Returns a model's score on so many devices; infinity: it has no plan there.
using ScoreOf = std::function<double(std::size_t model, std::int64_t devices)>;

/// Returns the numbers of nodes up to `most` that are 1, 3, 5 or 7 times a power of two, and
/// `most`.
std::vector<std::int64_t> divisible_counts(std::int64_t most);

/// Returns the nodes of each of so many models with the least score together; empty: no division
/// has a plan for each. `score` is asked once for a model and number.
std::vector<std::int64_t> divide(std::size_t models, std::int64_t nodes, Together together,
                                 const ScoreOf& score);

/// Requires at least two models on one machine with devices that are alike, `devices` in whole
/// nodes.
Division division(const std::vector<Work>& works, std::int64_t devices,
                  const full::Options& options, const Progress& progress = {});

}  // namespace orrery::advice
