// SPDX-License-Identifier: Apache-2.0
#include "datatype/profile.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <tuple>

namespace orrery::datatype {
namespace {

constexpr std::string_view kHeader = "kind,bytes,block,seconds";

/// Returns where `x` lies between a and b: 0 to 1.
double share(double x, double a, double b) {
  return b > a ? std::clamp((x - a) / (b - a), 0.0, 1.0) : 0.0;
}

std::array<std::string_view, 4> cells_of(std::string_view line) {
  std::array<std::string_view, 4> cells;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t end = i + 1 < cells.size() ? line.find(',') : line.size();
    cells[i] = line.substr(0, end);
    line.remove_prefix(std::min(line.size(), end == line.npos ? line.size() : end + 1));
  }
  return cells;
}

template <class T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

TimeTable* table_of(Profile& profile, std::string_view kind) {
  const std::array<std::pair<std::string_view, TimeTable*>, 4> tables{
      {{"pack", &profile.pack},
       {"unpack", &profile.unpack},
       {"library", &profile.library},
       {"message", &profile.message}}};
  const auto* const found = std::find_if(tables.begin(), tables.end(),
                                         [&](const auto& row) { return row.first == kind; });
  return found == tables.end() ? nullptr : found->second;
}

/// Returns what is wrong with a row, or adds it.
std::string take_row(std::string_view line, Profile& profile) {
  const auto cells = cells_of(line);
  std::int64_t bytes = 0;
  std::int64_t block = 0;
  double seconds = 0;
  TimeTable* const table = table_of(profile, cells[0]);
  if (table == nullptr) {
    return "kind: found '" + std::string(cells[0]) + "', expected pack, unpack, library or message";
  }
  if (!read(cells[1], bytes) || bytes < 1 || !read(cells[2], block) || block < 0) {
    return "expected whole numbers of bytes, at least 1, and of a block's bytes";
  }
  if (!read(cells[3], seconds) || !(seconds > 0) || !std::isfinite(seconds)) {
    return "seconds: found '" + std::string(cells[3]) + "', expected a number above 0";
  }
  table->add(bytes, block, seconds);
  return {};
}

}  // namespace

void TimeTable::add(std::int64_t bytes, std::int64_t block, double seconds) {
  const Point point{bytes, block, seconds};
  const auto before = [](const Point& a, const Point& b) {
    return std::tie(a.bytes, a.block) < std::tie(b.bytes, b.block);
  };
  points_.insert(std::upper_bound(points_.begin(), points_.end(), point, before), point);
  columns_ =
      static_cast<std::size_t>(std::count_if(points_.begin(), points_.end(), [&](const Point& p) {
        return p.bytes == points_.front().bytes;
      }));
}

bool TimeTable::is_full() const {
  if (points_.size() % columns_ != 0) {
    return false;
  }
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const Point& first_of_row = points_[i - i % columns_];
    const Point& first_row = points_[i % columns_];
    if (points_[i].bytes != first_of_row.bytes || points_[i].block != first_row.block) {
      return false;
    }
  }
  return true;
}

double TimeTable::on_row(std::size_t row, double block) const {
  const Point* const points = &points_[row * columns_];
  std::size_t right = 0;
  while (right + 1 < columns_ && static_cast<double>(points[right].block) < block) {
    ++right;
  }
  const Point& a = points[right > 0 ? right - 1 : 0];
  const Point& b = points[right];
  const double at =
      share(std::log2(std::max(block, 1.0)), std::log2(std::max(static_cast<double>(a.block), 1.0)),
            std::log2(std::max(static_cast<double>(b.block), 1.0)));
  return a.seconds + at * (b.seconds - a.seconds);
}

double TimeTable::seconds(double bytes, double block) const {
  std::size_t right = 0;
  while (right + 1 < rows() && static_cast<double>(points_[right * columns_].bytes) < bytes) {
    ++right;
  }
  const std::size_t left = right > 0 ? right - 1 : 0;
  const auto low = static_cast<double>(points_[left * columns_].bytes);
  const auto high = static_cast<double>(points_[right * columns_].bytes);
  const double beyond = std::max(bytes / high, 1.0);
  const double a = on_row(left, block);
  const double b = on_row(right, block);
  return (a + share(bytes, low, high) * (b - a)) * beyond;
}

double Profile::seconds(Method method, std::int64_t bytes, std::int64_t block) const {
  const auto b = static_cast<double>(bytes);
  const auto l = static_cast<double>(block);
  if (method == Method::library) {
    return library.seconds(b, l);
  }
  const std::int64_t chunks =
      method == Method::packed ? 1
                               : std::max<std::int64_t>((bytes + kChunkBytes - 1) / kChunkBytes, 1);
  const double c = b / static_cast<double>(chunks);
  const std::array<double, 3> steps{pack.seconds(c, l), message.seconds(c, 0),
                                    unpack.seconds(c, l)};
  return steps[0] + steps[1] + steps[2] +
         static_cast<double>(chunks - 1) * *std::max_element(steps.begin(), steps.end());
}

Method Profile::best(std::int64_t bytes, std::int64_t block, bool both_sides) const {
  Method best = Method::library;
  if (empty()) {
    return best;
  }
  double least = seconds(Method::library, bytes, block) * (1 - kLeastGain);
  for (const Method method : {Method::packed, Method::pipelined}) {
    if ((method == Method::packed || both_sides) && seconds(method, bytes, block) < least) {
      best = method;
      least = seconds(method, bytes, block);
    }
  }
  return best;
}

ReadProfile read_profile(std::string_view text) {
  ReadProfile made;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) {
      continue;
    }
    const std::string wrong =
        number == 1 ? (line == kHeader ? "" : "expected the header " + std::string(kHeader))
                    : take_row(line, made.profile);
    if (!wrong.empty()) {
      made.mistakes.push_back(std::to_string(number) + ": " + wrong);
    }
  }
  for (const std::string_view kind : {"pack", "unpack", "library", "message"}) {
    const TimeTable& table = *table_of(made.profile, kind);
    if (made.mistakes.empty() && (table.empty() || !table.is_full())) {
      made.mistakes.push_back("table " + std::string(kind) +
                              ": expected every block at every number of bytes");
    }
  }
  if (!made.mistakes.empty()) {
    made.profile = {};
  }
  return made;
}

ReadProfile load_profile(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) {
    return {.profile = {}, .mistakes = {file + ": cannot be opened"}};
  }
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  ReadProfile read = read_profile(text);
  for (std::string& mistake : read.mistakes) {
    mistake.insert(0, file + ":");
  }
  return read;
}

}  // namespace orrery::datatype
