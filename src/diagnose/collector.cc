// SPDX-License-Identifier: Apache-2.0
#include "diagnose/collector.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace orrery::diagnose {
namespace {

constexpr std::int64_t kPerSecond = 1'000'000'000;
constexpr double kLargest = 9e9;  ///< seconds

}  // namespace

std::optional<Moment> parse_moment(std::string_view seconds) {
  double value = 0;
  const char* end = seconds.data() + seconds.size();
  const auto parsed = std::from_chars(seconds.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(std::abs(value) < kLargest)) {
    return std::nullopt;
  }
  const std::size_t point = seconds.find('.');
  if (seconds.find_first_of("eE-") != std::string_view::npos || point == std::string_view::npos) {
    return Moment{std::llround(value * static_cast<double>(kPerSecond))};
  }
  std::int64_t whole = 0;
  std::from_chars(seconds.data(), seconds.data() + point, whole);
  std::int64_t rest = 0;
  std::int64_t unit = kPerSecond;
  for (const char digit : seconds.substr(point + 1)) {
    unit /= 10;
    rest += (digit - '0') * unit;
  }
  return Moment{whole * kPerSecond + rest};
}

bool Collector::add_communicator(const std::string& name, std::vector<std::int64_t> ranks) {
  std::ranges::sort(ranks);
  const auto [place, added] = communicators_.try_emplace(name, telemetry_.communicators.size());
  if (added) {
    telemetry_.communicators.push_back({name, std::move(ranks)});
    return true;
  }
  return telemetry_.communicators[place->second].ranks == ranks;
}

std::optional<std::size_t> Collector::communicator(const std::string& name) const {
  const auto place = communicators_.find(name);
  return place == communicators_.end() ? std::nullopt : std::optional(place->second);
}

bool Collector::has(std::size_t communicator, std::int64_t rank) const {
  return std::ranges::binary_search(telemetry_.communicators[communicator].ranks, rank);
}

bool Collector::add(Call call) {
  const Operation& made = call.operation;
  const auto [place, added] =
      called_.try_emplace({made.communicator, made.rank, made.sequence}, calls_.size());
  if (!added) {
    Call& before = calls_[place->second];
    if (before.ended || !call.ended) {
      return false;
    }
    before = std::move(call);
    return true;
  }
  calls_.push_back(std::move(call));
  return true;
}

void Collector::add(Message message, const std::string& path) {
  const auto [place, added] = paths_.try_emplace(path, telemetry_.paths.size());
  if (added) {
    telemetry_.paths.push_back(path);
  }
  message.path = place->second;
  telemetry_.messages.push_back(message);
}

void Collector::add_end(const Ends& ends, Call call, bool whole) {
  Messages& messages = message_ends_[ends];
  messages.whole = messages.whole && whole;
  (call.operation.rank == ends.source ? messages.sends : messages.receives)
      .push_back(std::move(call));
}

/// Messages of a pair become a communicator of two, whose operations both ends enter. From the
/// first where all are known. Else the first that is open has number 1 at both ends; but a receiver
/// may still wait for what its sender has long handed over: then the last are the same.
void Collector::number_messages() {
  for (auto& [ends, messages] : message_ends_) {
    const auto ended = [](const std::vector<Call>& calls) {
      return std::ranges::count_if(calls, [](const Call& call) { return call.ended.has_value(); });
    };
    const bool all_sent = ended(messages.sends) == std::ssize(messages.sends);
    const std::size_t group = telemetry_.communicators.size();
    std::vector<std::int64_t> ranks{ends.source, ends.target};
    std::ranges::sort(ranks);
    telemetry_.communicators.push_back(
        {"messages of " + telemetry_.communicators[ends.communicator].name, std::move(ranks),
         std::pair(ends.source, ends.target)});
    for (std::vector<Call>* calls : {&messages.sends, &messages.receives}) {
      std::int64_t number = messages.whole ? 0 : -(all_sent ? std::ssize(*calls) : ended(*calls));
      for (Call& call : *calls) {
        call.operation.communicator = group;
        call.operation.sequence = ++number;
        calls_.push_back(std::move(call));
      }
    }
  }
}

Telemetry Collector::take() && {
  number_messages();
  std::optional<Moment> first;
  for (const Call& call : calls_) {
    first = std::min(first.value_or(call.entered), call.entered);
  }
  const auto since = [&](Moment moment) { return moment - first.value_or(moment); };
  std::ranges::stable_sort(calls_, {}, &Call::entered);
  for (Call& call : calls_) {
    call.operation.entered = since(call.entered);
    if (call.ended) {
      call.operation.ended = since(*call.ended);
    }
    telemetry_.operations.push_back(std::move(call.operation));
  }
  for (const auto& [rank, moment] : snapshots_) {
    telemetry_.recorded_until[rank] = since(moment);
  }
  return std::move(telemetry_);
}

}  // namespace orrery::diagnose
