// SPDX-License-Identifier: Apache-2.0
// What the published evaluator counts, with its weaknesses (score.h).
#include <algorithm>
#include <cctype>
#include <cmath>

#include "mpi_calls/matching.h"

namespace orrery::mpi_calls {
namespace {

struct Entry {
  std::int64_t place = 0;  ///< LINE.SUB in hundredths
  std::string name;
  std::vector<std::string> args;
  std::vector<std::int64_t> answered;  ///< places, of a prediction
};

std::int64_t hundredths(double value) {
  return static_cast<std::int64_t>(std::llround(value * 100));
}

/// "11", "1" -> 11.1; "11", "10" -> 11.10, the same.
double decimal_of(std::string_view line, std::string_view sub) {
  return std::strtod((std::string(line) + "." + std::string(sub)).c_str(), nullptr);
}

/// begin, begin + step ... below end, as many as (end - begin) / step rounds up to in doubles.
void add_range(double begin, double end, double step, std::vector<std::int64_t>& places) {
  const auto count = static_cast<std::int64_t>(std::ceil((end - begin) / step));
  for (std::int64_t i = 0; i < count; ++i) {
    places.push_back(hundredths(begin + static_cast<double>(i) * step));
  }
}

std::vector<std::int64_t> answered_by(double place, std::int64_t tolerance) {
  std::vector<std::int64_t> places;
  if (tolerance == 0) {
    places.push_back(hundredths(place));
    return places;
  }
  const auto v = static_cast<double>(tolerance);
  add_range(place - v, place + v + 1, 1, places);
  add_range(place - v / 10, place + 0.1 + v / 10, 0.1, places);
  return places;
}

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::vector<std::string> at_commas(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// Returns the first "DIGITS DIGITS, MPI_word(" of a piece; arguments go to the piece's last byte
/// but one.
std::optional<Entry> entry_of(std::string_view piece, std::int64_t tolerance) {
  for (std::size_t begin = 0; begin < piece.size(); ++begin) {
    std::size_t at = begin;
    const auto skip = [&](bool (*wanted)(char)) {
      const std::size_t first = at;
      while (at < piece.size() && wanted(piece[at])) {
        ++at;
      }
      return piece.substr(first, at - first);
    };
    const std::string_view line = skip(is_digit);
    if (line.empty() || at == piece.size() || piece[at++] != ' ') {
      continue;
    }
    const std::string_view sub = skip(is_digit);
    if (sub.empty() || at == piece.size() || piece[at++] != ',') {
      continue;
    }
    skip([](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
    const std::string_view name = skip(is_name_character);
    if (!name.starts_with("MPI_") || at == piece.size() || piece[at] != '(') {
      continue;
    }
    const std::size_t first = at + 1;
    const std::size_t last = std::max(first, piece.size() - 1);
    const double place = decimal_of(line, sub);
    return Entry{hundredths(place), std::string(name), at_commas(piece.substr(first, last - first)),
                 answered_by(place, tolerance)};
  }
  return std::nullopt;
}

/// "<|endoftext|>" and underscores behind it read as "(".
std::string without_ends(std::string text) {
  constexpr std::string_view kEnd = "<|endoftext|>";
  for (std::size_t at = text.find(kEnd); at != std::string::npos; at = text.find(kEnd, at + 1)) {
    std::size_t end = at + kEnd.size();
    while (end < text.size() && text[end] == '_') {
      ++end;
    }
    text.replace(at, end - at, "(");
  }
  return text;
}

/// Pieces from a "(" to the next ";" of the same line; of one place the last, where the first was.
std::vector<Entry> entries_of(const std::string& text, std::int64_t tolerance) {
  std::vector<Entry> entries;
  std::size_t at = text.find('(');
  while (at != std::string::npos) {
    const std::size_t end = text.find_first_of(";\n", at);
    if (end == std::string::npos) {
      break;
    }
    if (text[end] == '\n') {
      at = text.find('(', end);
      continue;
    }
    if (auto entry = entry_of(std::string_view(text).substr(at + 1, end - at - 1), tolerance)) {
      const auto same = std::ranges::find(entries, entry->place, &Entry::place);
      if (same == entries.end()) {
        entries.push_back(std::move(*entry));
      } else {
        *same = std::move(*entry);
      }
    }
    at = text.find('(', end);
  }
  return entries;
}

bool answers(const Entry& prediction, const Entry& call) {
  return std::ranges::find(prediction.answered, call.place) != prediction.answered.end();
}

double share_of_equal(const Entry& call, const Entry& prediction) {
  double equal = 0;
  for (std::size_t i = 0; i < std::min(call.args.size(), prediction.args.size()); ++i) {
    equal += call.args[i] == prediction.args[i] ? 1 : 0;
  }
  return equal / static_cast<double>(call.args.size());
}

}  // namespace

Matching match_as_mpirigen(const Record& truth, const Record& predicted,
                           const ScoreOptions& options) {
  const std::vector<Entry> calls = entries_of(truth.mpi_labels, options.tolerance);
  const std::vector<Entry> predictions =
      entries_of(without_ends(predicted.mpi_labels), options.tolerance);
  Matching matching;
  std::vector<bool> right(predictions.size());
  for (const Entry& call : calls) {
    Outcome outcome{call.name};
    for (std::size_t k = 0; k < predictions.size(); ++k) {
      if (!answers(predictions[k], call)) {
        continue;
      }
      outcome.located = true;
      if (predictions[k].name == call.name) {
        right[k] = true;
        outcome.named = true;
        outcome.args = share_of_equal(call, predictions[k]);
        break;
      }
    }
    if (options.common_core && !is_common_core(call.name)) {
      outcome = {call.name};  // it still counts among all calls
    }
    matching.calls.push_back(std::move(outcome));
  }
  for (std::size_t k = 0; k < predictions.size(); ++k) {
    matching.predictions.emplace_back(predictions[k].name, right[k]);
  }
  return matching;
}

}  // namespace orrery::mpi_calls
