// SPDX-License-Identifier: Apache-2.0
#include "serving/metrics.h"

#include <algorithm>
#include <cmath>

#include "base/reader.h"

namespace orrery::serving {

Time percentile(const std::vector<Time>& sorted, double share) {
  if (sorted.empty()) {
    return Time(0);
  }
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below] + (sorted[above] - sorted[below]) * part;
}

Statistics statistics(std::vector<Time> values) {
  Statistics result;
  if (values.empty()) {
    return result;
  }
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  double squares = 0;
  for (const Time value : values) {
    sum += to_seconds(value);
    squares += to_seconds(value) * to_seconds(value);
  }
  const double mean = sum / count;
  result.mean = from_seconds(mean);
  result.deviation = from_seconds(std::sqrt(std::max(0.0, squares / count - mean * mean)));
  result.median = percentile(values, 0.5);
  result.p90 = percentile(values, 0.9);
  result.p95 = percentile(values, 0.95);
  result.p99 = percentile(values, 0.99);
  return result;
}

Statistics statistics(std::vector<Gap> gaps) {
  Statistics result;
  std::sort(gaps.begin(), gaps.end(),
            [](const Gap& left, const Gap& right) { return left.gap < right.gap; });
  double count = 0;
  double sum = 0;
  double squares = 0;
  for (const Gap& gap : gaps) {
    const auto weight = static_cast<double>(gap.count);
    const double seconds = to_seconds(gap.gap);
    count += weight;
    sum += weight * seconds;
    squares += weight * seconds * seconds;
  }
  if (count == 0) {
    return result;
  }
  const double mean = sum / count;
  result.mean = from_seconds(mean);
  result.deviation = from_seconds(std::sqrt(std::max(0.0, squares / count - mean * mean)));
  // The value at a rank of the list in which each gap stands as often as it was.
  const auto at = [&](double share) {
    const double place = share * (count - 1);
    double passed = 0;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      const auto weight = static_cast<double>(gaps[i].count);
      if (place <= passed + weight - 1 || i + 1 == gaps.size()) {
        return gaps[i].gap;
      }
      if (place < passed + weight) {  // between its last and the next one's first
        const double part = place - (passed + weight - 1);
        return gaps[i].gap + (gaps[i + 1].gap - gaps[i].gap) * part;
      }
      passed += weight;
    }
    return gaps.back().gap;
  };
  result.median = at(0.5);
  result.p90 = at(0.9);
  result.p95 = at(0.95);
  result.p99 = at(0.99);
  return result;
}

namespace {

void add_energy_and_cost(const Run& run, const compute::Device& device, Metrics& result) {
  const auto devices = static_cast<double>(run.devices);
  const double held =
      run.held > Time(0) && result.duration > Time(0)
          ? run.held / result.duration / static_cast<double>(run.engine.most_replicas)
          : 1;  // share of them on the mean
  if (device.power > Power(0)) {
    const Time waiting = std::max(Time(0), result.duration * held - run.busy);
    result.energy = (run.drawn + device.idle_power * waiting) * devices;
  }
  if (device.price_per_hour > Money(0) && result.output_tokens > 0) {
    constexpr double kHour = 3600;
    result.cost_per_million_tokens =
        Money(device.price_per_hour.value() * devices * held * to_seconds(result.duration) / kHour /
              static_cast<double>(result.output_tokens) * 1e6);
  }
}

/// Returns the most half-open intervals [sent, last) at one instant: those that end go first.
std::int64_t peak_concurrent(const Run& run) {
  std::vector<Time> begins;
  std::vector<Time> ends;
  for (const Served& request : run.requests) {
    begins.push_back(request.sent);
    ends.push_back(request.last);
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  std::size_t ended = 0;
  std::size_t most = 0;
  for (std::size_t begun = 0; begun < begins.size(); ++begun) {
    while (ended < ends.size() && ends[ended] <= begins[begun]) {
      ++ended;
    }
    most = std::max(most, begun + 1 - ended);
  }
  return static_cast<std::int64_t>(most);
}

std::int64_t kept(const Run& run, const Objectives& objectives) {
  return std::count_if(run.requests.begin(), run.requests.end(), [&](const Served& request) {
    const Time tpot = request.output > 1 ? request.tpot() : Time(0);
    return request.ttft() <= objectives.ttft && tpot <= objectives.tpot &&
           request.latency() <= objectives.e2e;
  });
}

}  // namespace

Power mean_power(const Metrics& metrics) {
  return metrics.duration > Time(0) ? Power(metrics.energy->value() / to_seconds(metrics.duration))
                                    : Power(0);
}

Metrics metrics(const Run& run, const machine::Machine& machine, const Objectives* objectives) {
  Metrics result;
  std::vector<Time> ttft;
  std::vector<Time> tpot;
  std::vector<Time> e2e;
  std::vector<Time> queue;
  std::vector<Time> moved;
  Time first = Time::max();
  for (const Served& request : run.requests) {
    ++result.completed;
    result.input_tokens += request.input;
    result.output_tokens += request.output;
    first = std::min(first, request.sent);
    ttft.push_back(request.ttft());
    e2e.push_back(request.latency());
    queue.push_back(request.scheduled - request.queued);
    if (request.output > 1) {
      tpot.push_back(request.tpot());
    }
    if (request.moved > Time(0)) {
      moved.push_back(request.moved);
    }
  }
  result.duration = run.requests.empty() ? Time(0) : run.duration - first;
  const double seconds = to_seconds(result.duration);
  if (seconds > 0) {
    const auto output = static_cast<double>(result.output_tokens);
    result.requests_per_s = static_cast<double>(result.completed) / seconds;
    result.output_tokens_per_s = output / seconds;
    result.total_tokens_per_s = (output + static_cast<double>(result.input_tokens)) / seconds;
    result.output_tokens_per_s_per_device =
        result.output_tokens_per_s / static_cast<double>(run.devices);
  }
  result.ttft = statistics(std::move(ttft));
  result.tpot = statistics(std::move(tpot));
  result.e2e = statistics(std::move(e2e));
  result.queue = statistics(std::move(queue));
  result.moved = statistics(std::move(moved));
  result.itl = statistics(run.gaps);
  if (result.tpot.mean > Time(0)) {
    result.output_tokens_per_s_per_user = 1 / to_seconds(result.tpot.mean);
  }
  result.mean_kv_use = seconds > 0 ? run.kv_use_s / seconds : 0;
  result.peak_running = static_cast<double>(run.peak_running);
  for (const Sample& sample : run.samples) {  // of several engines together
    result.peak_running = std::max(result.peak_running, static_cast<double>(sample.running));
  }
  if (!run.tokens.empty()) {
    result.peak_tokens_per_s =
        static_cast<double>(*std::max_element(run.tokens.begin(), run.tokens.end()));
  }
  result.peak_concurrent = peak_concurrent(run);
  if (objectives != nullptr) {
    result.goodput = seconds > 0 ? static_cast<double>(kept(run, *objectives)) / seconds : 0;
  }
  add_energy_and_cost(run, machine.device, result);
  return result;
}

tl::expected<Objectives, std::string> parse_objectives(std::string_view text) {
  Objectives result;
  const auto wrong = [] {
    return tl::make_unexpected(
        std::string("limits such as 'ttft=500 ms,tpot=30 ms', of ttft, tpot and e2e"));
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return wrong();
    }
    const auto time = parse_time(part.substr(equals + 1));
    const std::string_view name = part.substr(0, equals);
    Time* const into = name == "ttft"   ? &result.ttft
                       : name == "tpot" ? &result.tpot
                       : name == "e2e"  ? &result.e2e
                                        : nullptr;
    if (!time || *time <= Time(0) || into == nullptr) {
      return wrong();
    }
    *into = *time;
  }
  return result;
}

double attainment(const Run& run, const Objectives& objectives) {
  const auto all =
      static_cast<double>(run.requests.size()) + static_cast<double>(run.refused + run.rejected);
  return all > 0 ? static_cast<double>(kept(run, objectives)) / all : 0;
}

}  // namespace orrery::serving
