// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <set>

#include "diagnose/syndromes.h"

namespace orrery::diagnose {

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  constexpr std::size_t kMost = 8;
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    text += fmt::format("{} {}", i > 0 ? "," : "", ranks[i]);
  }
  return ranks.size() > kMost ? fmt::format("{} and {} more", text, ranks.size() - kMost) : text;
}

Diagnosis diagnose(const Telemetry& telemetry, const Options& options) {
  Diagnosis diagnosis;
  diagnosis.ranks = std::ssize(telemetry.ranks());
  diagnosis.operations = telemetry.operations.size();
  diagnosis.messages = telemetry.messages.size();
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const Message& message : telemetry.messages) {
    pairs.emplace(message.source, message.target);
  }
  diagnosis.pairs = pairs.size();

  Collectives collectives;
  for (const Operation& operation : telemetry.operations) {
    collectives[{operation.communicator, operation.sequence}].push_back(&operation);
  }
  for (auto& [key, calls] : collectives) {
    std::ranges::sort(calls, {}, &Operation::rank);
  }
  std::set<std::int64_t> recorded;
  for (const Operation& operation : telemetry.operations) {
    recorded.insert(operation.rank);
  }
  for (const Message& message : telemetry.messages) {
    recorded.insert({message.source, message.target});
  }
  std::vector<std::int64_t> silent = telemetry.ranks();
  std::erase_if(silent, [&](std::int64_t rank) { return recorded.contains(rank); });
  if (!silent.empty()) {
    diagnosis.skipped.push_back("no telemetry of " + ranks_text(silent));
  }
  for (const auto& [kind, count] : telemetry.skipped) {
    diagnosis.skipped.push_back(
        fmt::format("{} entries '{}', which do not say who sends to whom", count, kind));
  }
  find_hangs(telemetry, collectives, options, diagnosis);
  const bool hangs = !diagnosis.findings.empty();
  find_slow_messages(telemetry, options, diagnosis);
  if (!hangs) {
    find_stragglers(telemetry, collectives, diagnosis);
  }
  return diagnosis;
}

}  // namespace orrery::diagnose
