// SPDX-License-Identifier: Apache-2.0
#include "study/served/described.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/collect.h"
#include "base/file.h"
#include "base/letters.h"
#include "base/lists.h"
#include "base/reader.h"
#include "base/split.h"
#include "base/words.h"
#include "serving/launch_line.h"

namespace orrery::served {
namespace {

/// ShareGPT's prompts and answers as vLLM's benchmark filters them, tokens on the mean (recalled).
constexpr double kShareGptPrompt = 220;
constexpr std::int64_t kShareGptAnswer = 195;

/// A format as it stands behind a model's name.
struct Format {
  std::string_view name;
  graph::DataType weights;
  graph::DataType activations;
  double scale_bits;
  step::Narrow narrow;
};
constexpr auto kFormats = std::to_array<Format>({
    {"awq", graph::DataType::fp4, graph::DataType::bf16, 0.16, step::Narrow::all},
    {"mxfp4", graph::DataType::fp4, graph::DataType::bf16, 0.25, step::Narrow::experts},
    {"fp8", graph::DataType::fp8, graph::DataType::fp8, 0, step::Narrow::all},
});

void take_format(const Format& format, serving::Engine& engine) {
  engine.weights = format.weights;
  engine.activations = format.activations;
  engine.scale_bits = format.scale_bits;
  engine.narrow = format.narrow;
}

/// Sets the model and, where the name says one, the format.
void take_model(const std::string& name, RowCase& row, const std::string& where, Error& error) {
  const std::string text =
      lower_case(name.substr(name.find('/') == std::string::npos ? 0 : name.find('/') + 1));
  for (const std::string& shipped : list_configs("models")) {
    if (text.starts_with(shipped) && shipped.size() > row.model.size()) {
      row.model = shipped;
    }
  }
  if (row.model.empty()) {
    error.add({where, "model", name, "a shipped model"});
  }
  if (row.model.starts_with("gpt-oss")) {
    take_format(kFormats[1], row.engine);
  }
  for (const Format& format : kFormats) {
    if (text.ends_with("-" + std::string(format.name)) ||
        text.ends_with("(" + std::string(format.name) + ")")) {
      take_format(format, row.engine);
    }
  }
}

/// ENGINE as a file.
void take_engine(const std::string& text, RowCase& row, const std::string& where, Error& error) {
  std::string file = text;
  std::replace(file.begin(), file.end(), ';', '\n');
  std::string lines;
  for (const std::string_view line : split_at(file, '\n')) {
    lines += std::string(trimmed(line)) + "\n";
  }
  auto engine = parse_config(lines, where, ConfigSyntax::yaml).and_then([](const ConfigNode& node) {
    return serving::parse_engine(node);
  });
  if (engine) {
    row.engine = std::move(*engine);
  } else {
    error.add({where, "engine", text, engine.error().to_string()});
  }
}

/// One flag of the load.
bool take_flag(const std::string& flag, const std::string& value, study::ServedRequests& requests) {
  const auto number = parse_number(value);
  if (flag == "--dataset") {
    requests.input = kShareGptPrompt;
    requests.output = kShareGptAnswer;
    return value == "sharegpt";
  }
  if (flag == "--arrival") {
    requests.rate = value == "infinite" ? 0 : requests.rate;
    requests.arrival = value_of<requests::Arrival>(value).value_or(requests.arrival);
    return value_of<requests::Arrival>(value).has_value();
  }
  if (flag == "--input" || flag == "--output") {
    const auto length = requests::parse_length(value);
    const double mean = length ? length->mean() : 0;
    if (flag == "--input") {
      requests.input += mean;
    } else {
      requests.output = std::llround(mean);
    }
    return length.has_value();
  }
  if (!number) {
    return false;
  }
  if (flag == "--rate") {
    requests.rate = *number;
    requests.arrival = requests::Arrival::poisson;
  } else if (flag == "--requests") {
    requests.count = std::llround(*number);
  } else if (flag == "--max-concurrency") {
    requests.concurrency = std::llround(*number);
  } else if (flag == "--shared-prefix") {
    requests.input += *number;
  } else {
    return flag == "--prefix-groups";
  }
  return true;
}

/// Words, of which those of "uniform(1, 8130)" are one.
std::vector<std::string> arguments_of(const std::string& text) {
  std::vector<std::string> arguments;
  bool open = false;
  for (const std::string& word : words_of<std::string>(text, " ")) {
    if (open) {
      arguments.back() += " " + word;
    } else {
      arguments.push_back(word);
    }
    open = word.find(')') == std::string::npos && (open || word.find('(') != std::string::npos);
  }
  return arguments;
}

void take_flags(const std::string& text, RowCase& row, const std::string& where, Error& error) {
  const std::vector<std::string> arguments = arguments_of(text);
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    if (!take_flag(arguments[i], arguments[i + 1], row.requests)) {
      error.add(
          {where, arguments[i], arguments[i + 1], "a flag of the load (study/served/described.h)"});
    }
  }
}

/// A load of gpustack's performance lab: `vllm bench serve`, all requests at once.
struct Load {
  std::string_view name;
  std::int64_t count;
  double input;
  std::int64_t output;
};
constexpr auto kLoads = std::to_array<Load>({
    {"sharegpt", 1000, kShareGptPrompt, kShareGptAnswer},
    {"random-128", 1000, 128, 4},
    {"random-2k", 500, 2000, 100},
    {"random-4k", 500, 4000, 200},
    {"random-32k", 100, 32000, 100},
});

void take_load(const std::string& text, RowCase& row, const std::string& where, Error& error) {
  const std::size_t at = text.rfind("-c");
  const auto seats = parse_integer(at == std::string::npos ? "" : text.substr(at + 2));
  const std::string name = seats ? text.substr(0, at) : text;
  const auto load =
      std::find_if(kLoads.begin(), kLoads.end(), [&](const Load& one) { return one.name == name; });
  if (load == kLoads.end()) {
    error.add({where, "load", text, "sharegpt, random-128, random-2k, random-4k or random-32k"});
    return;
  }
  row.requests.count = load->count;
  row.requests.input = load->input;
  row.requests.output = load->output;
  row.requests.concurrency = seats ? *seats : 0;
}

/// Returns the framework of a launch line; "" for other texts.
std::string framework_of(const std::string& text) {
  return text.starts_with("vllm serve")                           ? "vllm"
         : text.find("sglang.launch_server") != std::string::npos ? "sglang"
         : text.find("trtllm-serve") != std::string::npos         ? "trtllm"
                                                                  : "";
}

void take_launch(const std::string& text, RowCase& row, const std::string& where, Error& error) {
  const std::vector<std::string> words = words_of<std::string>(text, " ");
  auto imported = serving::import_engine(framework_of(text), words);
  if (!imported) {
    error.add({where, "", text, imported.error().to_string()});
    return;
  }
  row.engine = std::move(imported->engine);
  const auto named = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word.find('/') != std::string::npos;
  });
  take_model(named == words.end() ? "" : *named, row, where, error);
}

}  // namespace

Result<RowCase> described_case(std::string_view text, const std::string& where) {
  std::vector<std::string> parts = mapped<std::string>(
      split_at(text, '|'), [](const std::string_view part) { return trimmed(part); });
  Error error;
  RowCase row;
  row.requests.count = 1;
  row.requests.input = 1;
  row.requests.output = 1;
  const bool launched = !framework_of(parts.front()).empty();
  if (parts.size() < 3) {
    error.add({where, "", std::string(text), "a model or a launch line, an engine and a machine"});
  } else if (launched) {
    take_launch(parts[0], row, where, error);
    take_load(parts[1], row, where, error);
    row.machine = parts[2];
  } else {
    row.machine = parts[1];
    take_engine(parts[2].find(':') == std::string::npos
                    ? "engine: " + parts[2].substr(0, parts[2].find(' '))
                    : parts[2],
                row, where, error);
    take_model(parts[0], row, where, error);
    if (parts.size() > 3 && !parts[3].empty()) {
      row.requests.input = 0;
      take_flags(parts[3], row, where, error);
    }
  }
  if (error.empty()) {
    collect(machine::load_machine(row.machine), error);
  }
  return or_mistakes(std::move(row), std::move(error));
}

}  // namespace orrery::served
