// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/format.h"
#include "diagnose/syndromes.h"

namespace orrery::diagnose {
namespace {

/// The first collective of a communicator that hangs.
struct Hang {
  std::int64_t sequence = 0;
  std::string kind;
  Time since{0};                       ///< the longest that a rank has waited
  std::vector<const Operation*> open;  ///< calls that are not over
  std::vector<std::int64_t> missing;   ///< members that have not called, or whose device waits
  bool scheduled = false;              ///< some of these have called
};

class Hangs {
 public:
  Hangs(const Telemetry& telemetry, const Options& options)
      : telemetry_(telemetry), options_(options) {
    for (const Operation& operation : telemetry.operations) {
      last_time_ = std::max({last_time_, operation.entered, operation.ended.value_or(Time(0))});
      auto& last =
          last_entered_.try_emplace({operation.communicator, operation.rank}, operation.sequence)
              .first->second;
      last = std::max(last, operation.sequence);
    }
  }

  void add(std::size_t communicator, std::int64_t sequence, const Calls& calls) {
    if (hangs_.contains(communicator)) {
      return;
    }
    Hang hang{.sequence = sequence, .kind = calls.front()->kind, .open = {}, .missing = {}};
    bool late = false;
    const bool runs = std::ranges::any_of(calls, &Operation::begun);
    for (const Operation* call : calls) {
      if (!call->ended && runs && !call->begun) {
        hang.missing.push_back(call->rank);
        hang.scheduled = true;
      } else if (!call->ended) {
        hang.open.push_back(call);
        hang.since = std::max(hang.since, age(*call));
        late = late || telemetry_.after_timeout || age(*call) > options_.timeout;
      }
    }
    if (!late) {
      return;
    }
    for (const std::int64_t rank : telemetry_.communicators[communicator].ranks) {
      const auto last = last_entered_.find({communicator, rank});
      if (last == last_entered_.end() || last->second < sequence) {
        hang.missing.push_back(rank);
      }
    }
    std::ranges::sort(hang.missing);
    for (const Operation* call : hang.open) {
      waits_in_[call->rank].push_back(communicator);
    }
    hangs_.emplace(communicator, std::move(hang));
  }

  /// Hangs of communicators with a mismatch are explained by that.
  void report(std::set<std::size_t> explained, Diagnosis& diagnosis) const {
    for (const auto& [communicator, hang] : hangs_) {
      if (explained.contains(communicator)) {
        continue;
      }
      if (hang.missing.empty()) {
        blame_sender(communicator, hang, diagnosis);
        explained.insert(communicator);
      } else if (blame_missing(communicator, hang, diagnosis)) {
        explained.insert(communicator);
      }
    }
    blame_circle(std::move(explained), diagnosis);
  }

 private:
  Time age(const Operation& call) const {
    const auto until = telemetry_.recorded_until.find(call.rank);
    return (until == telemetry_.recorded_until.end() ? last_time_ : until->second) - call.entered;
  }
  const std::string& name(std::size_t communicator) const {
    return telemetry_.communicators[communicator].name;
  }
  Finding finding(Syndrome syndrome, std::size_t communicator, const Hang& hang) const {
    return {.syndrome = syndrome,
            .ranks = {},
            .communicator = name(communicator),
            .sequence = hang.sequence,
            .lost = hang.since,
            .sigmas = {},
            .because = {}};
  }
  std::string waited(const Hang& hang) const {
    return telemetry_.after_timeout ? std::string("until a timeout")
                                    : "for " + to_string(hang.since) + " by now";
  }

  void blame_sender(std::size_t communicator, const Hang& hang, Diagnosis& diagnosis) const {
    const auto sent = [](const Operation* call) { return call->sent.value_or(-1); };
    const std::int64_t least = sent(*std::ranges::min_element(hang.open, {}, sent));
    const std::string where =
        fmt::format("{} {} of {} has been entered by all and is not over on {} of {} ranks, {}",
                    hang.kind, hang.sequence, name(communicator), hang.open.size(),
                    telemetry_.communicators[communicator].ranks.size(), waited(hang));
    if (least < 0) {
      diagnosis.undecided.push_back(where +
                                    ": without counts of what each has sent, nobody can "
                                    "be blamed");
    } else if (std::ranges::count(hang.open, least, sent) > 1) {
      diagnosis.undecided.push_back(fmt::format("{}: {} of them have sent {} messages, the least",
                                                where, std::ranges::count(hang.open, least, sent),
                                                least));
    } else {
      Finding found = finding(Syndrome::communication_hang, communicator, hang);
      found.ranks = {(*std::ranges::find(hang.open, least, sent))->rank};
      found.because =
          fmt::format("{}; {} has sent least: {} messages", where, ranks_text(found.ranks), least);
      diagnosis.findings.push_back(std::move(found));
    }
  }

  /// Blames the missing ranks that wait nowhere themselves; false when there are none.
  bool blame_missing(std::size_t communicator, const Hang& hang, Diagnosis& diagnosis) const {
    Finding found = finding(Syndrome::missing_rank, communicator, hang);
    for (const std::int64_t rank : hang.missing) {
      if (!waits_in_.contains(rank)) {
        found.ranks.push_back(rank);
      }
    }
    if (found.ranks.empty()) {
      return false;
    }
    const bool silent = std::ranges::none_of(telemetry_.operations, [&](const Operation& call) {
      return std::ranges::binary_search(found.ranks, call.rank);
    });
    const std::string what =
        hang.scheduled ? "not started it, though some have scheduled it" : "not entered it";
    found.because = fmt::format("{} rank{} wait{} in {} {} of {} {}; {} {} {}{}", hang.open.size(),
                                hang.open.size() == 1 ? "" : "s", hang.open.size() == 1 ? "s" : "",
                                hang.kind, hang.sequence, name(communicator), waited(hang),
                                ranks_text(found.ranks), found.ranks.size() == 1 ? "has" : "have",
                                what, silent ? ", and left no telemetry at all" : "");
    if (const auto& pair = telemetry_.communicators[communicator].pair) {
      const bool sent = hang.open.front()->rank == pair->first;
      found.because = fmt::format(
          "rank {} waits {} in a {} rank {}, number {} of {}, which has no {} there{}",
          hang.open.front()->rank, waited(hang), sent ? "send to" : "receive from",
          found.ranks.front(), hang.sequence, name(communicator), sent ? "receive" : "send",
          hang.scheduled ? " but a scheduled one"
          : silent       ? ": it left no telemetry at all"
                         : "");
    }
    diagnosis.findings.push_back(std::move(found));
    return true;
  }

  /// Returns whether a rank that is missing here waits in a collective that has been explained.
  bool follows(const Hang& hang, const std::set<std::size_t>& explained) const {
    const auto is_explained = [&](std::size_t in) { return explained.contains(in); };
    return std::ranges::any_of(hang.missing, [&](std::int64_t rank) {
      const auto waits = waits_in_.find(rank);
      return waits != waits_in_.end() && std::ranges::any_of(waits->second, is_explained);
    });
  }

  /// Hangs that lead to none that has been explained, whoever is missing is followed, wait for each
  /// other.
  void blame_circle(std::set<std::size_t> explained, Diagnosis& diagnosis) const {
    for (bool more = true; more;) {
      more = false;
      for (const auto& [communicator, hang] : hangs_) {
        if (!explained.contains(communicator) && follows(hang, explained)) {
          explained.insert(communicator);
          more = true;
        }
      }
    }
    Finding found;
    std::vector<std::string> names;
    std::set<std::int64_t> ranks;
    for (const auto& [communicator, hang] : hangs_) {
      if (!explained.contains(communicator)) {
        found = finding(Syndrome::wrong_order, communicator, hang);
        names.push_back(fmt::format("{} {} of {}", hang.kind, hang.sequence, name(communicator)));
        ranks.insert(hang.missing.begin(), hang.missing.end());
      }
    }
    if (names.empty()) {
      return;
    }
    found.ranks.assign(ranks.begin(), ranks.end());
    found.communicator.clear();
    found.sequence.reset();
    found.because =
        fmt::format("in each of {} some ranks wait for others that wait in another of them",
                    fmt::join(names, ", "));
    diagnosis.findings.push_back(std::move(found));
  }

  const Telemetry& telemetry_;
  const Options& options_;
  Time last_time_{0};
  /// Holds, by communicator and rank, the last sequence number.
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> last_entered_;
  std::map<std::size_t, Hang> hangs_;
  std::map<std::int64_t, std::vector<std::size_t>> waits_in_;  ///< by rank: what hangs
};

/// Returns whether ranks may give a collective of this kind different sizes.
bool sizes_may_differ(const std::string& kind) {
  return kind.find("all_to_all") != std::string::npos ||
         kind.find("alltoall") != std::string::npos || kind.find("gather") != std::string::npos ||
         kind.find("scatter") != std::string::npos || kind.find("send") != std::string::npos ||
         kind.find("recv") != std::string::npos;
}

std::string call_text(const Operation& call) {
  return sizes_may_differ(call.kind) ? call.kind
                                     : fmt::format("{} of {}", call.kind, to_string(call.bytes));
}

/// Blames those that are fewer.
bool find_mismatch(const Telemetry& telemetry, std::int64_t sequence, const Calls& calls,
                   Diagnosis& diagnosis) {
  std::map<std::string, std::vector<std::int64_t>> ranks_of;
  for (const Operation* call : calls) {
    ranks_of[call_text(*call)].push_back(call->rank);
  }
  if (ranks_of.size() < 2) {
    return false;
  }
  const auto size = [](const auto& entry) { return entry.second.size(); };
  const auto most = std::ranges::max_element(ranks_of, {}, size);
  Finding found{.syndrome = Syndrome::mismatch,
                .ranks = {},
                .communicator = telemetry.communicators[calls.front()->communicator].name,
                .sequence = sequence,
                .sigmas = {},
                .because = fmt::format("collective {} is {} to {}", sequence, most->first,
                                       ranks_text(most->second))};
  const bool tie = std::ranges::count(ranks_of, size(*most), size) > 1;
  for (const auto& [call, ranks] : ranks_of) {
    if (call != most->first) {
      found.because += fmt::format(", {} to {}", call, ranks_text(ranks));
    }
    if (tie || call != most->first) {
      found.ranks.insert(found.ranks.end(), ranks.begin(), ranks.end());
    }
  }
  std::ranges::sort(found.ranks);
  diagnosis.findings.push_back(std::move(found));
  return true;
}

}  // namespace

void find_hangs(const Telemetry& telemetry, const Collectives& collectives, const Options& options,
                Diagnosis& diagnosis) {
  Hangs hangs(telemetry, options);
  std::set<std::size_t> mismatched;
  for (const auto& [key, calls] : collectives) {
    const auto& [communicator, sequence] = key;
    if (!mismatched.contains(communicator)) {
      if (find_mismatch(telemetry, sequence, calls, diagnosis)) {
        mismatched.insert(communicator);
      }
      hangs.add(communicator, sequence, calls);
    }
  }
  hangs.report(mismatched, diagnosis);
}

}  // namespace orrery::diagnose
