// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/reader.h"
#include "workload/plan/layout.h"
#include "workload/plan/plan_lists.h"

namespace orrery::plan {
namespace {

/// "12*8": eight times 12; "12": once.
struct ShareRun {
  std::int64_t microbatches = 0;
  std::int64_t replicas = 1;
};

std::optional<ShareRun> parse_share_run(const std::string& item) {
  const std::size_t star = std::min(item.find('*'), item.size());
  const auto microbatches = parse_integer(item.substr(0, star));
  const auto replicas = parse_integer(star == item.size() ? "1" : item.substr(star + 1));
  if (!microbatches || !replicas || *microbatches < 1 || *replicas < 1) {
    return std::nullopt;
  }
  return ShareRun{*microbatches, *replicas};
}

}  // namespace

Result<std::vector<std::int64_t>> replica_microbatches(const Plan& plan) {
  if (plan.batch_shares.empty() || plan.batch_shares == "auto") {
    return std::vector<std::int64_t>(static_cast<std::size_t>(plan.dp), plan.microbatches());
  }
  const auto mistake = [&](std::string expected) {
    return fail(Error(Mistake{{}, "batch_shares", plan.batch_shares, std::move(expected)}));
  };
  std::vector<std::int64_t> all;
  for (const std::string& item : list_items(plan.batch_shares)) {
    const auto run = parse_share_run(item);
    if (!run) {
      return mistake("microbatches of every replica, each 1 or more, such as '12*8,4*8'; or auto");
    }
    if (run->replicas > plan.dp - std::ssize(all)) {
      return mistake(fmt::format("shares of dp = {} replicas", plan.dp));
    }
    all.insert(all.end(), static_cast<std::size_t>(run->replicas), run->microbatches);
  }
  if (std::ssize(all) != plan.dp) {
    return mistake(fmt::format("shares of dp = {} replicas (here {})", plan.dp, all.size()));
  }
  Bytes sum{0};  // saturates
  for (const std::int64_t microbatches : all) {
    sum += Bytes(microbatches) * plan.microbatch;
  }
  if (sum.value() != plan.global_batch) {
    return mistake(fmt::format("a sum of global_batch / microbatch = {} / {} (here {} sequences)",
                               plan.global_batch, plan.microbatch, sum.value()));
  }
  return all;
}

std::string to_batch_shares(const std::vector<std::int64_t>& microbatches) {
  std::string text;
  for (auto at = microbatches.begin(); at != microbatches.end();) {
    const auto end =
        std::find_if(at, microbatches.end(), [&](std::int64_t other) { return other != *at; });
    if (at == microbatches.begin() && end == microbatches.end()) {
      return "";
    }
    text += fmt::format("{}{}", text.empty() ? "" : ",", *at);
    text += end - at > 1 ? fmt::format("*{}", end - at) : "";
    at = end;
  }
  return text;
}

Plan with_microbatches(Plan plan, std::int64_t microbatches) {
  plan.batch_shares.clear();
  plan.global_batch = microbatches * plan.microbatch * plan.dp;
  return plan;
}

std::vector<RankClass> rank_classes(const Plan& plan, const machine::Machine& machine) {
  const auto stages = static_cast<std::size_t>(plan.pp);
  const std::vector<std::int64_t> shares = *replica_microbatches(plan);
  std::set<RankClass> classes;
  if (machine.parts.empty()) {
    for (const std::int64_t microbatches : shares) {
      classes.insert({microbatches, std::vector<std::size_t>(stages, 0)});
    }
    return {classes.begin(), classes.end()};
  }
  std::vector<std::size_t> part_of;
  for (std::size_t part = 0; part < machine.parts.size(); ++part) {
    part_of.insert(part_of.end(), static_cast<std::size_t>(machine.parts[part].devices), part);
  }
  const RankLayout layout = layout_of(plan);
  const graph::Digit replicas = replica_digit(layout);
  for (std::int64_t rank = 0; rank < plan.devices(); ++rank) {
    if (plan.pp > 1 && layout.coordinate(rank, Axis::pp) > 0) {
      continue;
    }
    RankClass one{shares[static_cast<std::size_t>(replicas.of(rank))], {}};
    for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
      const std::int64_t other = plan.pp > 1 ? layout.with(rank, Axis::pp, stage) : rank;
      one.parts.push_back(part_of[std::min(static_cast<std::size_t>(other), part_of.size() - 1)]);
    }
    classes.insert(std::move(one));
  }
  return {classes.begin(), classes.end()};
}

graph::Digit replica_digit(const RankLayout& layout) {
  std::int64_t stride = 1;
  for (const RankLayout::Entry& entry : layout.axes) {
    if (entry.axis == Axis::dp) {
      return {.size = entry.size, .stride = stride};
    }
    stride *= entry.size;
  }
  return {};
}

}  // namespace orrery::plan
