// SPDX-License-Identifier: Apache-2.0
#include "serving/requests/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/collect.h"
#include "base/config_node.h"
#include "base/file.h"
#include "base/lists.h"
#include "base/misread.h"
#include "base/reader.h"

namespace orrery::requests {
namespace {

constexpr std::int64_t kMostTokens = 1'000'000'000;
constexpr std::int64_t kMooncakeBlock = 512;

/// Says where a kind has its numbers, and in which part of a second time counts; 0: a date.
struct Columns {
  std::string_view kind;
  std::string_view input;
  std::string_view output;
  std::string_view arrival;
  double seconds;
};
constexpr auto kTables = std::to_array<Columns>({
    {"vllm_requests", "input_tokens", "output_tokens", "arrival_s", 1},
    {"Azure", "ContextTokens", "GeneratedTokens", "TIMESTAMP", 0},
    {"BurstGPT", "Request tokens", "Response tokens", "Timestamp", 1},
    {"splitwise", "prompt_size", "token_size", "arrival_timestamp", 1},
});
constexpr auto kLines = std::to_array<Columns>({
    {"Mooncake", "input_length", "output_length", "timestamp", 1e-3},
    {"LLMServingSim", "input_toks", "output_toks", "arrival_time_ns", 1e-9},
    {"lengths", "input", "output", "arrival_s", 1},
});

std::string known_kinds() {
  const std::string text = joined(kTables, "; ", [&](const auto& table) {
    return fmt::format("{}, {} and {}", table.arrival, table.input, table.output);
  });
  return "unknown columns; expected a CSV file with " + text +
         "; or lines of JSON with input_length, input_toks or input";
}

/// Days since 1970-01-01 in the Gregorian calendar (Howard Hinnant's days_from_civil).
std::int64_t days(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t of_era = year - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/// "2023-11-16 18:15:46.6805900", also with a T and an offset of whole seconds left out.
std::optional<double> seconds_of_date(std::string_view text) {
  constexpr std::array<std::size_t, 5> kAt{0, 5, 8, 11, 14};
  constexpr std::array<std::size_t, 5> kWide{4, 2, 2, 2, 2};
  constexpr std::size_t kSeconds = 17;
  if (text.size() < kSeconds + 2 || text[4] != '-' || text[7] != '-' || text[13] != ':' ||
      text[16] != ':') {
    return std::nullopt;
  }
  std::array<std::int64_t, 5> part{};
  for (std::size_t i = 0; i < part.size(); ++i) {
    const char* first = text.data() + kAt[i];
    const auto read = std::from_chars(first, first + kWide[i], part[i]);
    if (read.ptr != first + kWide[i]) {
      return std::nullopt;
    }
  }
  std::string_view rest = text.substr(kSeconds);
  rest = rest.substr(0, rest.find_first_of("+Zz"));
  double seconds = 0;
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), seconds);
  const bool good = part[1] >= 1 && part[1] <= 12 && part[2] >= 1 && part[2] <= 31 &&
                    part[3] <= 23 && part[4] <= 59 && seconds >= 0 && seconds < 61;
  if (read.ptr != rest.data() + rest.size() || !good) {
    return std::nullopt;
  }
  const std::int64_t minutes = (days(part[0], part[1], part[2]) * 24 + part[3]) * 60 + part[4];
  return static_cast<double>(minutes) * 60 + seconds;
}

/// "seconds", by what part of one a number counts.
std::string_view unit_of(double seconds) {
  return seconds == 1 ? "seconds" : seconds == 1e-3 ? "milliseconds" : "nanoseconds";
}

/// Collects requests and what is wrong with them.
class Collector {
 public:
  Collector(const Columns& columns, const std::string& file) : columns_(columns), error_(file) {
    trace_.kind = columns.kind;
  }

  Request* add(const std::string& where, std::string_view input, std::string_view output,
               std::string_view arrival) {
    Request request;
    const bool in = tokens(where, columns_.input, input, 1, request.input);
    std::int64_t answer = 0;
    const bool out = tokens(where, columns_.output, output, 0, answer);
    const std::optional<double> when = time(where, arrival);
    if (!in || !out || !when) {
      return nullptr;
    }
    if (answer == 0) {
      ++trace_.left_out;
      return nullptr;
    }
    request.output = answer;
    first_ = arrivals_.empty() ? *when : std::min(first_, *when);
    arrivals_.push_back(*when);
    trace_.requests.push_back(std::move(request));
    return &trace_.requests.back();
  }
  void mistake(Mistake mistake) { error_.add(std::move(mistake)); }

  Result<Trace> finish(const std::string& file) {
    if (error_.empty() && trace_.requests.empty()) {
      error_.add({file, "", "", "no requests: expected at least one"});
    }
    if (!error_.empty()) {
      return fail(error_.take());
    }
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
      if (trace_.requests[i].after < 0) {
        trace_.requests[i].arrival = from_seconds(arrivals_[i] - first_);
      }
    }
    sort();
    return std::move(trace_);
  }

  /// The last one added is sent so long after the answer to the one before it, whose prompt and
  /// answer its own begins with, if it is long enough.
  void follow(Time after_answer) {
    const std::size_t last = trace_.requests.size() - 1;
    Request& turn = trace_.requests[last];
    const Request& before = trace_.requests[last - 1];
    turn.arrival = after_answer;
    turn.after = static_cast<std::int64_t>(last) - 1;
    share(turn, turn.input >= before.input + before.output ? before.ids.front() : last);
  }
  /// A session's first one.
  void begin_session() { share(trace_.requests.back(), trace_.requests.size() - 1); }
  std::size_t size() const { return trace_.requests.size(); }
  void untimed() { trace_.timed = false; }

 private:
  bool tokens(const std::string& where, std::string_view field, std::string_view text,
              std::int64_t least, std::int64_t& into) {
    const auto value = parse_number(text);
    if (!value || *value < static_cast<double>(least) ||
        *value > static_cast<double>(kMostTokens) || *value != std::floor(*value)) {
      error_.add(misread(where, std::string(field), std::string(text),
                         fmt::format("a whole number of tokens from {} on", least)));
      return false;
    }
    into = static_cast<std::int64_t>(*value);
    return true;
  }

  std::optional<double> time(const std::string& where, std::string_view text) {
    if (columns_.seconds == 0) {
      const auto date = seconds_of_date(text);
      if (!date) {
        error_.add(misread(where, std::string(columns_.arrival), std::string(text),
                           "a time such as '2023-11-16 18:15:46.6805900'"));
      }
      return date;
    }
    constexpr double kMost = 5e6;  // seconds of a trace, so that Time holds its end
    const auto value = parse_number(text);
    if (!value || std::abs(*value * columns_.seconds) > 1e12) {
      error_.add(misread(where, std::string(columns_.arrival), std::string(text),
                         fmt::format("a number of {}", unit_of(columns_.seconds))));
      return std::nullopt;
    }
    const double seconds = *value * columns_.seconds;
    if (!arrivals_.empty() && std::abs(seconds - arrivals_.front()) > kMost) {
      error_.add({where, std::string(columns_.arrival), std::string(text),
                  "a time within 57 days of the others"});
      return std::nullopt;
    }
    return seconds;
  }

  static void share(Request& turn, std::uint64_t id) {
    turn.ids = {id};
    turn.id_tokens = turn.shared = turn.input + turn.output;
  }

  /// Sorts requests by arrival; turns stay behind the one before them.
  void sort() {
    std::vector<std::size_t> firsts;
    for (std::size_t i = 0; i < trace_.requests.size(); ++i) {
      if (trace_.requests[i].after < 0) {
        firsts.push_back(i);
      }
    }
    std::stable_sort(firsts.begin(), firsts.end(), [&](std::size_t a, std::size_t b) {
      return trace_.requests[a].arrival < trace_.requests[b].arrival;
    });
    std::vector<Request> sorted;
    sorted.reserve(trace_.requests.size());
    for (std::size_t i : firsts) {
      do {
        sorted.push_back(std::move(trace_.requests[i]));
        if (sorted.back().after >= 0) {
          sorted.back().after = static_cast<std::int64_t>(sorted.size()) - 2;
        }
        ++i;
      } while (i < trace_.requests.size() && trace_.requests[i].after >= 0);
    }
    trace_.requests = std::move(sorted);
  }

  const Columns& columns_;
  Trace trace_;
  std::vector<double> arrivals_;
  double first_ = 0;
  FileMistakes error_;
};

Result<Trace> read_table(const CsvTable& table) {
  for (const Columns& columns : kTables) {
    const auto input = table.column(columns.input);
    const auto output = table.column(columns.output);
    const auto arrival = table.column(columns.arrival);
    if (!input || !output || !arrival) {
      continue;
    }
    Collector collector(columns, table.file);
    for (const CsvRow& row : table.rows) {
      collector.add(table.where(row), row.cells[*input], row.cells[*output], row.cells[*arrival]);
    }
    return collector.finish(table.file);
  }
  return fail(Error(Mistake{table.file + ":1", "header", "", known_kinds()}));
}

void take_ids(const ConfigNode& node, Request& request, const std::string& where,
              Collector& collector) {
  if (node.kind != ConfigNode::Kind::sequence) {
    collector.mistake({where, "hash_ids", node.shown(), "a list of whole numbers"});
    return;
  }
  for (const ConfigNode& id : node.items) {
    const auto value = parse_integer(id.text);
    if (!value || *value < 0) {
      collector.mistake({where, "hash_ids", id.text, "whole numbers from 0 on"});
      return;
    }
    request.ids.push_back(static_cast<std::uint64_t>(*value));
  }
  request.id_tokens = kMooncakeBlock;
  request.shared =
      std::min(request.input, kMooncakeBlock * static_cast<std::int64_t>(request.ids.size()));
}

/// A line of LLMServingSim with sub_requests.
void take_session(const ConfigNode& node, const std::string& where, Collector& collector) {
  const ConfigNode& calls = *node.find("sub_requests");
  if (calls.kind != ConfigNode::Kind::sequence || calls.items.empty()) {
    collector.mistake({where, "sub_requests", calls.shown(), "a list of at least one request"});
    return;
  }
  const auto text_of = [](const ConfigNode& of, std::string_view name) {
    const ConfigNode* value = of.find(name);
    return value == nullptr ? std::string() : value->text;
  };
  constexpr double kLongestTool = 1e15;  // nanoseconds
  const std::size_t begun = collector.size();
  double waited = 0;
  for (const ConfigNode& call : calls.items) {
    const std::size_t before = collector.size();
    collector.add(where, text_of(call, "input_toks"), text_of(call, "output_toks"),
                  text_of(node, "arrival_time_ns"));
    if (collector.size() > before) {
      if (before == begun) {
        collector.begin_session();
      } else {
        collector.follow(from_seconds(waited * 1e-9));
      }
      waited = 0;
    }
    const std::string tool = text_of(call, "tool_duration_ns");
    const auto value = parse_number(tool.empty() ? "0" : tool);
    if (!value || *value < 0 || *value > kLongestTool) {
      collector.mistake({where, "tool_duration_ns", tool, "a number of nanoseconds from 0 on"});
      return;
    }
    waited += *value;
  }
}

Result<Trace> parse_lines(std::string_view text, const std::string& file) {
  std::optional<Collector> collector;
  const Columns* columns = nullptr;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) {
      continue;
    }
    const std::string where = fmt::format("{}:{}", file, line);
    auto node = parse_config(content, where, ConfigSyntax::json);
    if (!node) {
      return fail(std::move(node.error()));
    }
    for (const Columns& each : kLines) {
      const bool session = each.kind == "LLMServingSim" && node->find("sub_requests") != nullptr;
      if (columns == nullptr && (session || node->find(each.input) != nullptr)) {
        columns = &each;
        collector.emplace(each, file);
      }
    }
    if (columns == nullptr) {
      return fail(Error(Mistake{where, "", "", known_kinds()}));
    }
    if (columns->kind == "LLMServingSim" && node->find("sub_requests") != nullptr) {
      take_session(*node, where, *collector);
      continue;
    }
    const auto text_of = [&](std::string_view name) {
      const ConfigNode* value = node->find(name);
      return value == nullptr ? std::string() : value->text;
    };
    const bool lengths_only = columns->kind == "lengths" && node->find(columns->arrival) == nullptr;
    if (lengths_only) {
      collector->untimed();
    }
    Request* request = collector->add(where, text_of(columns->input), text_of(columns->output),
                                      lengths_only ? "0" : text_of(columns->arrival));
    const ConfigNode* ids = node->find("hash_ids");
    if (request != nullptr && ids != nullptr) {
      take_ids(*ids, *request, where, *collector);
    }
  }
  if (!collector) {
    return fail(Error(Mistake{file, "", "", "no requests: expected at least one"}));
  }
  return collector->finish(file);
}

}  // namespace

Result<Trace> parse_trace(std::string_view text, const std::string& file) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '[') {
    return fail(Error(Mistake{file + ":1", "", "a list of JSON",
                              "lines of {\"input\": TOKENS, \"output\": TOKENS}: conversations of "
                              "ShareGPT are texts, which a model's tokenizer counts"}));
  }
  const bool json = first != std::string_view::npos && text[first] == '{';
  return json ? parse_lines(text, file) : read_csv(text, file, read_table);
}

Result<Trace> load_trace(const std::string& file) {
  auto text = read_file(file);
  return text ? parse_trace(*text, file) : fail(std::move(text.error()));
}

}  // namespace orrery::requests
