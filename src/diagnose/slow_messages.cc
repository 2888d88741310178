// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <optional>

#include "base/lists.h"
#include "diagnose/syndromes.h"

namespace orrery::diagnose {
namespace {

constexpr double kSigmas = 6;
constexpr double kMedianOfNoise = 1.25;  ///< standard error of a median over that of a mean
constexpr double kNormal = 1.4826;       ///< standard deviation over median absolute deviation
constexpr double kQuartiles = 1.349;     ///< distance of a normal's quartiles in its sigmas
constexpr double kSmallestOfLine = 0.05;
constexpr double kSmallestOfCell = 0.1;
constexpr double kOwnErrors = 4;  ///< of a cell's own standard error
constexpr std::size_t kFewestCells = 3;
constexpr double kLone = 4;  ///< times the excess of all others of both ends

struct Cell {
  std::int64_t source = 0;
  std::int64_t target = 0;
  double times = 1;   ///< as long as messages like it
  double noise = 0;   ///< standard error of `times`, from its messages
  double alike = 0;   ///< differences of `times` that its messages cannot tell
  bool lone = false;  ///< far slower than all others of both its ends
  bool explained = false;
};

/// Returns the standard error of the median; 0 of fewer than four values, which have no quartiles.
double noise_of(std::vector<double> values) {
  const std::size_t quarter = values.size() / 4;
  if (quarter == 0) {
    return 0;
  }
  const auto lower = values.begin() + static_cast<std::ptrdiff_t>(quarter);
  const auto upper = values.end() - 1 - static_cast<std::ptrdiff_t>(quarter);
  std::nth_element(values.begin(), lower, values.end());
  std::nth_element(lower + 1, upper, values.end());
  const double sigma = (*upper - *lower) / kQuartiles;
  return kMedianOfNoise * sigma / std::sqrt(static_cast<double>(values.size()));
}

/// Time per byte over that of messages of the same path and size, of each pair's last `window`,
/// over the median of all pairs.
std::vector<Cell> matrix(const Telemetry& telemetry, std::size_t window) {
  using Class = std::pair<std::size_t, int>;
  const auto class_of = [](const Message& message) {
    return Class(message.path, std::bit_width(static_cast<std::uint64_t>(message.bytes.value())));
  };
  const auto per_byte = [](Time time, const Message& message) {
    return to_seconds(time) / static_cast<double>(message.bytes.value());
  };
  const auto pace = [&](const Message& message) { return per_byte(message.duration, message); };
  std::map<Class, std::vector<double>> paces;
  for (const Message& message : telemetry.messages) {
    paces[class_of(message)].push_back(pace(message));
  }
  std::map<Class, double> usual;
  for (auto& [key, values] : paces) {
    usual[key] = median(std::move(values));
  }
  using Pair = std::pair<std::int64_t, std::int64_t>;
  std::map<Pair, std::vector<double>> samples;
  std::map<Pair, double> alike;
  for (const Message& message : telemetry.messages) {
    if (const double pace_of_class = usual[class_of(message)]; pace_of_class > 0) {
      const Pair pair(message.source, message.target);
      samples[pair].push_back(pace(message) / pace_of_class);
      alike[pair] = std::max(alike[pair], per_byte(message.resolution, message) / pace_of_class);
    }
  }
  std::vector<Cell> cells;
  for (auto& [pair, values] : samples) {
    if (values.size() > window) {
      values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(window));
    }
    const double noise = noise_of(values);
    cells.push_back({pair.first, pair.second, median(std::move(values)), noise, alike[pair]});
  }
  std::vector<double> times = mapped(cells, &Cell::times);
  for (const double usual_cell = times.empty() ? 1 : median(std::move(times));
       Cell & cell : cells) {
    cell.times /= usual_cell;
    cell.noise /= usual_cell;
    cell.alike /= usual_cell;
  }
  return cells;
}

/// A sender or a receiver that is slow, and by how much.
struct Line {
  std::int64_t Cell::*end = nullptr;
  std::int64_t rank = 0;
  double times = 1;
  double sigmas = 0;
  double beyond = 1;  ///< excess over the threshold's
};

class SlowMessages {
 public:
  SlowMessages(std::vector<Cell> cells, Diagnosis& diagnosis)
      : cells_(std::move(cells)), diagnosis_(diagnosis) {
    std::vector<double> distances =
        mapped(cells_, [&](const Cell& cell) { return std::abs(cell.times - 1); });
    sigma_ = std::max(kNormal * median(std::move(distances)),
                      median(mapped(cells_, [](const Cell& cell) { return cell.noise; })));
  }

  void find() {
    find_lone();
    std::vector<Line> lines;
    while (const std::optional<Line> line = slowest_line()) {
      lines.push_back(*line);
      for (Cell& cell : cells_) {
        cell.explained = cell.explained || cell.*(line->end) == line->rank;
      }
    }
    for (const Line& line : lines) {
      report(line, lines);
    }
    for (const Cell& cell : cells_) {
      if (cell.lone || (!cell.explained && cell.times > threshold(cell))) {
        report(cell);
      }
    }
  }

 private:
  double threshold(const Cell& cell) const {
    return 1 + std::max({kSigmas * sigma_, kSmallestOfCell, kOwnErrors * cell.noise, cell.alike});
  }

  /// A median of few cells would be moved by one that is far from them.
  void find_lone() {
    std::map<std::pair<bool, std::int64_t>, std::array<double, 2>> slowest;  // two of a line
    const auto lines_of = [](const Cell& cell) {
      return std::array{std::pair(true, cell.source), std::pair(false, cell.target)};
    };
    for (const Cell& cell : cells_) {
      for (const auto& line : lines_of(cell)) {
        auto& [first, second] = slowest[line];
        second = std::max(second, std::min(first, cell.times));
        first = std::max(first, cell.times);
      }
    }
    for (Cell& cell : cells_) {
      const auto [row, column] = lines_of(cell);
      const double next = std::max(slowest[row][1], slowest[column][1]);
      cell.lone = cell.times > threshold(cell) && cell.times - 1 > kLone * (next - 1);
    }
  }

  std::optional<Line> slowest_line() const {
    std::optional<Line> slowest;
    double alike = 0;
    for (const auto end : {&Cell::source, &Cell::target}) {
      std::map<std::int64_t, std::vector<double>> lines;
      for (const Cell& cell : cells_) {
        if (!cell.explained && !cell.lone) {
          lines[cell.*end].push_back(cell.times);
          alike = std::max(alike, cell.alike);
        }
      }
      for (auto& [rank, times] : lines) {
        if (times.size() < kFewestCells) {
          continue;
        }
        const double noise =
            sigma_ * kMedianOfNoise / std::sqrt(static_cast<double>(times.size() + 1));
        const double allowed = std::max({kSigmas * noise, kSmallestOfLine, alike});
        const double excess = median(std::move(times)) - 1;
        if (excess > allowed && (!slowest || excess / allowed > slowest->beyond)) {
          slowest = {end, rank, 1 + excess, excess / noise, excess / allowed};
        }
      }
    }
    return slowest;
  }

  void report(const Line& line, const std::vector<Line>& lines) {
    const bool sends = line.end == &Cell::source;
    const bool both = std::ranges::any_of(
        lines, [&](const Line& other) { return other.rank == line.rank && other.end != line.end; });
    if (both && !sends) {
      return;
    }
    add({.syndrome = both    ? Syndrome::slow_rank
                     : sends ? Syndrome::slow_sender
                             : Syndrome::slow_receiver,
         .ranks = {line.rank},
         .communicator = {},
         .sequence = {},
         .slowdown = line.times,
         .sigmas = line.sigmas,
         .because = fmt::format("what it {} takes {:.2f} times as long as messages like it",
                                both    ? "sends and receives"
                                : sends ? "sends"
                                        : "receives",
                                line.times)});
  }
  void report(const Cell& cell) {
    const std::string what =
        fmt::format("messages from {} to {} take {:.2f} times as long as those like them",
                    cell.source, cell.target, cell.times);
    const auto few = [&](std::int64_t Cell::*end) {
      return std::ranges::count(cells_, cell.*end, end) < std::ptrdiff_t{kFewestCells};
    };
    if (few(&Cell::source) || few(&Cell::target)) {
      diagnosis_.undecided.push_back(
          fmt::format("{}: {} too few others to tell the link from its ends", what,
                      few(&Cell::source) ? fmt::format("{} sends to", cell.source)
                                         : fmt::format("{} receives from", cell.target)));
      return;
    }
    add({.syndrome = Syndrome::slow_link,
         .ranks = {cell.source, cell.target},
         .communicator = {},
         .sequence = {},
         .slowdown = cell.times,
         .sigmas = (cell.times - 1) / sigma_,
         .because = what});
  }
  /// Adds a finding with a finite number of sigmas: without noise any number would do.
  void add(Finding finding) {
    if (!std::isfinite(finding.sigmas.value_or(0))) {
      finding.sigmas.reset();
    }
    diagnosis_.findings.push_back(std::move(finding));
  }

  std::vector<Cell> cells_;
  Diagnosis& diagnosis_;
  double sigma_ = 0;
};

}  // namespace

void find_slow_messages(const Telemetry& telemetry, const Options& options, Diagnosis& diagnosis) {
  std::vector<Cell> cells = matrix(telemetry, options.window);
  if (!cells.empty()) {
    SlowMessages(std::move(cells), diagnosis).find();
  }
}

}  // namespace orrery::diagnose
