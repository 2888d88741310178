// SPDX-License-Identifier: Apache-2.0
#include "report/run_table.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/format.h"

namespace orrery::report {
namespace {

constexpr double kBarWidth = 40;  // characters of a bar of 100 %

/// "tp_exposed" -> "tp exposed".
std::string label(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto i = static_cast<std::int64_t>(text.size()) - 3; i > (number < 0 ? 1 : 0); i -= 3) {
    text.insert(static_cast<std::size_t>(i), 1, ',');
  }
  return text;
}

std::string scaled(double number) {
  struct Prefix {
    double factor;
    std::string_view text;
  };
  for (const Prefix prefix : {Prefix{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}}) {
    if (number >= prefix.factor) {
      return fmt::format("{:.3g}{}", number / prefix.factor, prefix.text);
    }
  }
  return fmt::format("{:.3g}", number);
}

std::string gib(Bytes bytes) {
  return bytes == Bytes(0) ? "-"
                           : fmt::format("{:.2f}", static_cast<double>(bytes.value()) / (1 << 30));
}

std::string RunTable::write(const TableOptions& options) {
  machine();
  line("");
  step_time();
  line("");
  breakdown();
  hidden();
  peaks();
  simulator(options);
  return take();
}

void RunTable::machine() {
  line("{} on {} x {} ({}), network {}", run_.name, grouped(run_.devices), run_.machine.device.name,
       run_.machine.name, name_of(run_.network));
}

void RunTable::step_time() {
  line("{:<18}{:>14}", "Step time", to_string(run_.timeline.step_time));
}

void RunTable::steps() {
  const std::vector<Time>& ends = run_.timeline.step_ends;
  const auto count = std::ssize(ends);
  if (count == 1) {
    return;
  }
  line("Steps ({} of {} measured, the run takes {})", count - run_.warm_steps, count,
       to_string(run_.timeline.run_time));
  line("  {:<8}{:>16}{:>16}", "step", "ends", "takes");
  const std::int64_t listed = static_cast<std::int64_t>(kListed);
  for (std::int64_t i = 0; i < count; ++i) {
    if (count > listed && i == listed / 2) {
      line("  ...");
      i = count - listed / 2;
    }
    const Time end = ends[static_cast<std::size_t>(i)];
    const Time begin = i > 0 ? ends[static_cast<std::size_t>(i) - 1] : Time(0);
    line("  {:<8}{:>14.6f} s{:>14.6f} s{}", i, to_seconds(end), to_seconds(end - begin),
         i < run_.warm_steps ? "  warm-up" : "");
  }
  line("");
}

void RunTable::breakdown() {
  const double total = to_seconds(run_.timeline.step_time);
  line("Where the time goes (rank {}, the last to finish)", run_.timeline.critical_rank);
  const simulate::TimeCategories& categories = run_.timeline.categories;
  const int width = name_width();
  for (std::size_t row = 0; row < categories.size(); ++row) {
    const double seconds = to_seconds(run_.timeline.breakdown.time[row]);
    if (seconds == 0) {
      continue;
    }
    const double share = seconds / total;
    const auto bar = static_cast<std::size_t>(std::lround(share * kBarWidth));
    line("  {:<{}}{:>12.6f} s{:>9}{}", label(categories.name(row)), width, seconds, percent(share),
         bar == 0 ? "" : "  " + std::string(bar, '#'));
  }
  line("  {:<{}}{:>12.6f} s{:>9}", "total", width, total, percent(1));
  line("");
}

int RunTable::name_width() const {
  std::size_t width = 18;
  for (std::size_t row = 0; row < run_.timeline.categories.size(); ++row) {
    const bool printed = run_.timeline.breakdown.time[row] > Time(0);
    width = std::max(width, printed ? run_.timeline.categories.name(row).size() + 2 : 0);
  }
  return static_cast<int>(width);
}

void RunTable::hidden() {
  const auto& hidden = run_.timeline.breakdown.hidden;
  if (std::all_of(hidden.begin(), hidden.end(), [](Time t) { return t == Time(0); })) {
    return;
  }
  line("Communication hidden behind compute (same rank, not part of the total)");
  for (std::size_t group = 0; group < hidden.size(); ++group) {
    if (hidden[group] > Time(0)) {
      line("  {:<{}}{:>12.6f} s", run_.workload.groups[group].name, name_width(),
           to_seconds(hidden[group]));
    }
  }
  line("");
}

/// Writes peaks of memory; of more ranks than can be listed, the first, the last, the fullest and
/// the critical one.
void RunTable::peaks() {
  if (run_.peaks.empty()) {
    return;
  }
  const Bytes capacity = capacity_of(run_);
  line("Memory per device in GiB at each simulated rank's fullest moment; capacity {} GiB",
       gib(capacity));
  line("  {:>9}{:>14}{:>8}{:>16}", "rank", "total", "full", "at");
  const auto fullest = std::max_element(run_.peaks.begin(), run_.peaks.end(),
                                        [](const study::RankPeak& a, const study::RankPeak& b) {
                                          return a.fullest.bytes.total() < b.fullest.bytes.total();
                                        });
  const bool all = run_.peaks.size() <= kListed;
  for (const study::RankPeak& peak : run_.peaks) {
    if (all || &peak == &run_.peaks.front() || &peak == &run_.peaks.back() || &peak == &*fullest ||
        peak.rank == run_.timeline.critical_rank) {
      const Bytes total = peak.fullest.bytes.total();
      line("  {:>9}{:>14}{:>6.0f} %{:>16}{}", peak.rank, gib(total),
           capacity > Bytes(0) ? 100 * (total / capacity) : 0, to_string(peak.fullest.at),
           total <= capacity ? "" : "  DOES NOT FIT");
    }
  }
  if (!all) {
    line("  (first, last, fullest and critical of {} ranks; --json has them all)",
         run_.peaks.size());
  }
  line("");
}

void RunTable::simulator(const TableOptions& options) {
  const simulate::FoldReport& fold = run_.timeline.fold;
  line("Simulated {} of {} ranks{}; {} events in {}: {} events/s", grouped(fold.simulated),
       grouped(fold.ranks), fold.simulated < fold.ranks ? " (the others are their mirrors)" : "",
       grouped(static_cast<std::int64_t>(run_.timeline.events)),
       to_string(from_seconds(run_.wall_s)), scaled(events_per_second(run_)));
  for (const std::string& reason : fold.reasons) {
    line("  not folded: {}", reason);
  }
  if (options.verbose) {
    for (const study::PassTime& pass : run_.passes) {
      line("  {:<18}{:>12}", pass.name, to_string(from_seconds(pass.seconds)));
    }
  }
}

std::string table_report(const study::WorkloadRun& run, const TableOptions& options) {
  return RunTable(run).write(options);
}

}  // namespace orrery::report
