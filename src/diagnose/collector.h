// SPDX-License-Identifier: Apache-2.0
/// Points in time as recorders write them, and telemetry under construction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "diagnose/telemetry.h"

namespace orrery::diagnose {

/// Nanoseconds since any moment, such as that of Unix: seconds as a double would lose them.
struct Moment {
  std::int64_t nanoseconds = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
  friend Time operator-(Moment a, Moment b) {
    return Time::from_double(1e3 * static_cast<double>(a.nanoseconds - b.nanoseconds));
  }
};

/// Reads decimal seconds, exactly: "1724779239.936775119", "12.5", "3e-6".
std::optional<Moment> parse_moment(std::string_view seconds);

/// Collects what files say. Times become relative to the first when all is known.
class Collector {
 public:
  struct Call {
    Operation operation;  ///< but for its times
    Moment entered;
    std::optional<Moment> ended;
  };
  /// False when there is one of this name with other ranks.
  bool add_communicator(const std::string& name, std::vector<std::int64_t> ranks);
  std::optional<std::size_t> communicator(const std::string& name) const;
  bool has(std::size_t communicator, std::int64_t rank) const;
  /// Returns false where the rank has made this call before, unless it was open and ends here.
  bool add(Call call);
  void add(Message message, const std::string& path);
  /// One end of a message between members of a communicator, of each in the order of its rank's
  /// calls. `whole`: the rank recorded all since it began.
  struct Ends {
    std::size_t communicator = 0;
    std::int64_t source = 0;
    std::int64_t target = 0;
    friend auto operator<=>(const Ends&, const Ends&) = default;
  };
  void add_end(const Ends& ends, Call call, bool whole);
  void skip(const std::string& kind) { ++telemetry_.skipped[kind]; }
  void snapshot(std::int64_t rank, Moment moment) { snapshots_[rank] = moment; }
  void after_timeout() { telemetry_.after_timeout = true; }

  Telemetry take() &&;

 private:
  struct Messages {
    std::vector<Call> sends;
    std::vector<Call> receives;
    bool whole = true;
  };
  void number_messages();

  Telemetry telemetry_;
  std::map<Ends, Messages> message_ends_;
  std::map<std::string, std::size_t> communicators_;
  std::map<std::string, std::size_t> paths_;
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, std::size_t> called_;  ///< calls_
  std::vector<Call> calls_;
  std::map<std::int64_t, Moment> snapshots_;
};

}  // namespace orrery::diagnose
