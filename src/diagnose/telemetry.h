// SPDX-License-Identifier: Apache-2.0
/// Telemetry is what the ranks of a job recorded of their communication; here are its readers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace orrery::diagnose {

struct Communicator {
  std::string name;                 ///< unique in the job: "tp of ranks 0-7"
  std::vector<std::int64_t> ranks;  ///< ascending
  /// Source and target, where the communicator is the messages of one rank to another: both enter
  /// each of them.
  std::optional<std::pair<std::int64_t, std::int64_t>> pair = std::nullopt;
};

/// A collective as one of its ranks saw it. Times are since the first of the telemetry, on the
/// rank's own clock: only differences of times of one rank are ever used.
struct Operation {
  std::size_t communicator = 0;
  std::int64_t rank = 0;
  std::int64_t sequence = 0;  ///< counts the communicator's collectives
  std::string kind;           ///< "all_reduce"
  Bytes bytes{0};
  Time entered{0};
  std::optional<Time> ended;         ///< none: not yet
  std::optional<std::int64_t> sent;  ///< messages that the rank has sent for it, if counted
  bool begun = true;                 ///< false: called, but the device has not started it
  /// The time for which the rank has computed since it entered the collective before, if that is
  /// known.
  std::optional<Time> computed = std::nullopt;
};

/// One message between two ranks. Messages of one `path` ("same leaf") are expected to be alike.
struct Message {
  std::int64_t source = 0;
  std::int64_t target = 0;
  Bytes bytes{0};
  Time duration{0};
  std::size_t path = 0;  ///< into Telemetry::paths
  Time resolution{0};    ///< durations that are closer than that are alike
};

struct Telemetry {
  std::vector<Communicator> communicators;
  std::vector<Operation> operations;  ///< of a rank in the order in which it entered them
  std::vector<Message> messages;      ///< in the order of the files
  std::vector<std::string> paths;
  /// Holds, by rank, the time on its clock until which it recorded; a rank without one has the last
  /// time of all.
  std::map<std::int64_t, Time> recorded_until;
  /// Says that the record was made when an operation had timed out: whatever is not over hangs,
  /// since when is unknown.
  bool after_timeout = false;
  std::map<std::string, std::int64_t> skipped;  ///< entries that no reader understands, by kind

  /// Returns all ranks of communicators, operations and messages, ascending.
  std::vector<std::int64_t> ranks() const;
};

/// Reads files of either kind and puts them together:
///
///   telemetry, one JSON object per line (docs/diagnose.md):
///     {"type": "communicator", "name": "tp0", "ranks": [0, 1, 2, 3]}
///     {"type": "collective", "communicator": "tp0", "rank": 0, "sequence": 17,
///      "operation": "all_reduce", "bytes": 1048576, "entered_s": 12.25, "ended_s": 12.5,
///      "sent": 6, "computed_s": 0.5}
///     {"type": "message", "source": 0, "target": 1, "bytes": 65536, "begin_s": 12.25,
///      "end_s": 12.26, "resolution_s": 0.001, "path": "same leaf"}
///     {"type": "snapshot", "rank": 0, "time_s": 60}
///   PyTorch's NCCL flight recorder, one dump per rank, pickled or JSON: the rank is the number at
///   the end of the file's name (before an extension), as PyTorch writes them. Sends and receives
///   of a pair of ranks match in their order; where the oldest entries of a rank are gone, the last
///   that have ended match. Entries of coalesced messages have no peer and are skipped.
///
/// Mistakes: what is no such file; fields missing, unknown or of the wrong type; times that end
/// before they begin, computing that is negative; ranks outside their communicator; the same
/// operation of a rank twice, unless the first was open and the second says its end.
Result<Telemetry> load_telemetry(const std::vector<std::string>& files);
/// Parses the same of one file's text.
Result<Telemetry> parse_telemetry(const std::string& text, const std::string& file);

}  // namespace orrery::diagnose
