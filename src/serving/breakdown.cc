// SPDX-License-Identifier: Apache-2.0
#include "serving/breakdown.h"

#include <algorithm>
#include <vector>

#include "serving/metrics.h"

namespace orrery::serving {
namespace {

constexpr double kSlowest = 0.99;
using Parts = std::array<Time, 4>;

Parts parts_of_ttft(const Served& request) {
  const Time queued = request.scheduled - request.queued - request.fetching;
  return {request.queued - request.sent, request.fetching, queued,
          request.first - request.scheduled};
}

Parts parts_of_tpot(const Served& request) {
  const std::int64_t gaps = request.output - 1;
  const Time rest = request.last - request.first - request.moved - request.stalled - request.beside;
  return {request.moved / gaps, request.stalled / gaps, request.beside / gaps, rest / gaps};
}

Parts mean_from(const std::vector<Parts>& all, const std::vector<Time>& sums, Time least) {
  Parts total{};
  std::int64_t count = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (sums[i] >= least) {
      ++count;
      for (std::size_t part = 0; part < total.size(); ++part) {
        total[part] += all[i][part];
      }
    }
  }
  for (Time& part : total) {
    part = count > 0 ? part / count : Time(0);
  }
  return total;
}

std::array<TimePart, 4> summed(const std::array<std::string_view, 4>& names,
                               const std::vector<Parts>& all, const std::vector<Time>& sums) {
  std::vector<Time> sorted = sums;
  std::sort(sorted.begin(), sorted.end());
  const Parts mean = mean_from(all, sums, Time(0));
  const Parts slowest = mean_from(all, sums, percentile(sorted, kSlowest));
  std::array<TimePart, 4> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = {names[i], mean[i], slowest[i]};
  }
  return parts;
}

}  // namespace

Breakdown breakdown(const Run& run) {
  std::vector<Parts> first;
  std::vector<Time> ttft;
  std::vector<Parts> others;
  std::vector<Time> tpot;
  for (const Served& request : run.requests) {
    first.push_back(parts_of_ttft(request));
    ttft.push_back(request.ttft());
    if (request.output > 1) {
      others.push_back(parts_of_tpot(request));
      tpot.push_back(request.tpot());
    }
  }
  return {.ttft = summed({"front_end", "fetching", "queue", "computing"}, first, ttft),
          .tpot = summed({"moving", "stalled", "beside_prompts", "decoding"}, others, tpot)};
}

}  // namespace orrery::serving
