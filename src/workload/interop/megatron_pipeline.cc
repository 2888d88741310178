// SPDX-License-Identifier: Apache-2.0
/// Pipelines of Megatron-LM: virtual stages, uneven stages, layouts.
#include <algorithm>
#include <cctype>

#include "base/lists.h"
#include "base/reader.h"
#include "base/split.h"
#include "workload/interop/megatron.h"

namespace orrery::interop {
namespace {

constexpr std::string_view kPerStage = "--num-layers-per-virtual-pipeline-stage";
constexpr std::string_view kStages = "--num-virtual-stages-per-pipeline-rank";
constexpr std::string_view kNoop = "--noop-layers";
constexpr std::string_view kPartition = "--pp-partition-method";
constexpr std::string_view kLayout = "--pipeline-model-parallel-layout";
constexpr std::string_view kFirst = "--decoder-first-pipeline-num-layers";
constexpr std::string_view kLast = "--decoder-last-pipeline-num-layers";
constexpr std::size_t kMostLetters = std::size_t{1} << 16;

/// Returns one pass of the layout's "x*n": the item before the star n times. nullopt when it is too
/// long.
std::optional<std::string> unroll(const std::string& text, bool parentheses) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    std::string item(1, text[at]);
    std::size_t next = at + 1;
    const std::size_t close = parentheses && text[at] == '(' ? text.find(')', at) : text.npos;
    if (close != std::string::npos) {
      item = text.substr(at + 1, close - at - 1);
      next = close + 1;
    }
    std::size_t times = 1;
    const bool repeats =
        next < text.size() && text[next] == '*' && (text[at] == '(') == parentheses;
    if (repeats) {
      std::size_t end = next + 1;
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) {
        ++end;
      }
      const auto number = parse_integer(text.substr(next + 1, end - next - 1));
      if (!number || *number < 0 || *number > static_cast<std::int64_t>(kMostLetters)) {
        return std::nullopt;
      }
      times = static_cast<std::size_t>(*number);
      next = end;
    }
    if (result.size() + times * item.size() > kMostLetters) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < times; ++i) {
      result += item;
    }
    at = next;
  }
  return result;
}

/// Layers when `total` spread evenly over `parts` must come out whole; the flag to blame otherwise.
std::int64_t even_share(Arguments& arguments, std::int64_t total, std::int64_t parts,
                        std::string_view blame) {
  if (total < 0 || parts < 1 || total % parts != 0) {
    arguments.reject(blame, "stages of equal length: " + std::to_string(total) + " layers over " +
                                std::to_string(parts) + " parts");
    return 0;
  }
  return total / parts;
}

class Pipeline {
 public:
  Pipeline(Arguments& arguments, plan::Plan& plan)
      : arguments_(arguments),
        plan_(plan),
        layers_(std::min(arguments.number("--num-layers", 1).value_or(0), kMostDegree)) {}

  void run() {
    const auto layout = arguments_.word(kLayout);
    const auto first = arguments_.number(kFirst);
    const auto last = arguments_.number(kLast);
    embedding_ = arguments_.flag("--account-for-embedding-in-pipeline-split") ? 1 : 0;
    loss_ = arguments_.flag("--account-for-loss-in-pipeline-split") ? 1 : 0;
    const auto partition = arguments_.word(kPartition);
    if (partition && partition->find("embedding") != std::string::npos) {
      embedding_ = loss_ = 1;  // the tied table stands at both ends
    }
    chunks();
    if (layout) {
      laid_out(*layout);
    } else if (plan_.pp > 1 && (first || last)) {
      uneven(first, last);
    } else if (plan_.pp > 1 && partition && partition->starts_with("type:")) {
      partitioned();
    } else if (plan_.pp > 1 && embedding_ + loss_ > 0) {
      edges();
    }
    if (const auto idle = read_noop_layers(arguments_, layers_); !idle.empty() && plan_.pp > 1) {
      leave_out(idle);
    }
    plan_.schedule = plan_.chunks > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b;
  }

 private:
  void chunks() {
    const auto per_stage = arguments_.number(kPerStage, 1);
    const auto stages = arguments_.number(kStages, 1);
    arguments_.require(!per_stage || !stages, kStages,
                       "not together with " + std::string(kPerStage));
    plan_.chunks = std::min(stages.value_or(1), kMostDegree);
    if (per_stage && needs_layers(kPerStage)) {
      const std::int64_t on_stage =
          even_share(arguments_, layers_ + embedding_ + loss_, plan_.pp, kPerStage);
      plan_.chunks =
          std::max<std::int64_t>(1, even_share(arguments_, on_stage, *per_stage, kPerStage));
    }
  }

  bool needs_layers(std::string_view blame) {
    arguments_.require(layers_ > 0, blame, "--num-layers beside it");
    return layers_ > 0;
  }

  void laid_out(const std::string& text) {
    const auto counts = parse_pipeline_layout(text);
    if (!counts) {
      arguments_.reject(kLayout, counts.error().mistakes.front().expected);
      return;
    }
    const std::int64_t parts = std::ssize(*counts);
    arguments_.require(parts % plan_.pp == 0, kLayout,
                       "a multiple of pp = " + std::to_string(plan_.pp) + " parts; this has " +
                           std::to_string(parts));
    plan_.chunks = std::max<std::int64_t>(1, parts / plan_.pp);
    plan_.stage_layers = joined(*counts, ",");
  }

  /// First and last stage as given, the others evenly; every stage's chunks evenly.
  void uneven(std::optional<std::int64_t> first, std::optional<std::int64_t> last) {
    const std::string_view blame = first ? kFirst : kLast;
    if (!needs_layers(blame) || plan_.pp * plan_.chunks > kMostDegree) {
      return;
    }
    const std::int64_t between = plan_.pp - (first ? 1 : 0) - (last ? 1 : 0);
    const std::int64_t rest = layers_ - first.value_or(0) - last.value_or(0);
    if (between == 0) {
      arguments_.require(rest == 0, blame, "stages that add up to --num-layers");
    }
    const std::int64_t middle = between == 0 ? 0 : even_share(arguments_, rest, between, blame);
    std::vector<std::int64_t> stages(static_cast<std::size_t>(plan_.pp), middle);
    stages.front() = first.value_or(middle);
    stages.back() = last.value_or(middle);
    write(stages, blame);
  }

  /// Embedding and loss stand for one layer each.
  void edges() {
    const std::string_view blame = embedding_ > 0 ? "--account-for-embedding-in-pipeline-split"
                                                  : "--account-for-loss-in-pipeline-split";
    const std::int64_t parts = plan_.pp * plan_.chunks;
    if (!needs_layers(blame) || parts > kMostDegree) {
      return;
    }
    const std::int64_t share = even_share(arguments_, layers_ + embedding_ + loss_, parts, blame);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(parts), share);
    counts.front() -= embedding_;
    counts.back() -= loss_;
    plan_.stage_layers = joined(counts, ",");
  }

  /// Takes layers that do nothing from the parts that they would stand in.
  void leave_out(const std::vector<std::int64_t>& idle) {
    const std::int64_t parts = std::min(plan_.pp * plan_.chunks, kMostDegree);
    arguments_.require(plan_.stage_layers.empty(), kNoop, "no other division of layers beside it");
    const std::int64_t share = even_share(arguments_, layers_, parts, kNoop);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(parts), share);
    for (const std::int64_t layer : idle) {
      counts[share > 0 ? static_cast<std::size_t>(layer / share) : 0] -= share > 0 ? 1 : 0;
    }
    plan_.stage_layers = joined(counts, ",");
  }

  /// DeepSpeed's type:transformer and type:transformer|embedding: every stage takes as many of the
  /// named parts as the longest must, the last what is left (its partition_balanced).
  void partitioned() {
    if (!needs_layers(kPartition)) {
      return;
    }
    std::int64_t left = layers_ + embedding_ + loss_;
    const std::int64_t most = (left + plan_.pp - 1) / plan_.pp;
    std::vector<std::int64_t> counts;
    for (std::int64_t stage = 0; stage < plan_.pp; ++stage) {
      counts.push_back(std::min(most, left));
      left -= counts.back();
    }
    arguments_.require(counts.back() > loss_, kPartition, "at least a layer for every stage");
    const bool even = embedding_ == 0 && counts.back() == most;
    counts.front() -= embedding_;
    counts.back() -= loss_;
    plan_.stage_layers = even ? "" : joined(counts, ",");
  }

  /// Chunk c of stage s is part c pp + s of the model.
  void write(const std::vector<std::int64_t>& stages, std::string_view blame) {
    std::vector<std::int64_t> counts;
    for (std::int64_t chunk = 0; chunk < plan_.chunks; ++chunk) {
      for (const std::int64_t stage : stages) {
        counts.push_back(even_share(arguments_, stage, plan_.chunks, blame));
      }
    }
    plan_.stage_layers = joined(counts, ",");
  }

  Arguments& arguments_;
  plan::Plan& plan_;
  std::int64_t layers_;
  std::int64_t embedding_ = 0;
  std::int64_t loss_ = 0;
};

}  // namespace

Result<std::vector<std::int64_t>> parse_pipeline_layout(const std::string& layout) {
  const auto refuse = [](std::string expected) {
    return fail(Error(Mistake{{}, {}, {}, std::move(expected)}));
  };
  std::string text = layout;
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  for (const bool parentheses : {true, false}) {
    auto unrolled = unroll(text, parentheses);
    if (!unrolled) {
      return refuse("repetitions such as t*3 or (tt|)*4 of at most 65536 letters");
    }
    text = std::move(*unrolled);
  }
  // Layers that predict further tokens (m) run where the loss does.
  const std::size_t prediction = text.find('m');
  if (prediction != std::string::npos &&
      text.find_first_not_of('m', prediction) != text.size() - 1) {
    return refuse("m beside the loss: layers that predict further tokens stay with it");
  }
  std::erase(text, 'm');
  if (text.find_first_not_of("EtL|") != std::string::npos || !text.starts_with('E') ||
      !text.ends_with('L') || std::count(text.begin(), text.end(), 'E') != 1 ||
      std::count(text.begin(), text.end(), 'L') != 1) {
    return refuse("E first, L last and only t between, with stages split by |: 'Et*3|t*4|t*3L'");
  }
  std::vector<std::int64_t> counts(1, 0);
  for (const char letter : text) {
    if (letter == '|') {
      counts.push_back(0);
    } else if (letter == 't') {
      ++counts.back();
    }
  }
  return counts;
}

void read_megatron_pipeline(Arguments& arguments, plan::Plan& plan) {
  Pipeline(arguments, plan).run();
}

std::vector<std::int64_t> read_noop_layers(Arguments& arguments, std::int64_t layers) {
  const auto text = arguments.word(kNoop);
  std::vector<std::int64_t> idle =
      mapped(split_at(text ? std::string_view(*text) : "", ','),
             [&](const std::string_view number) { return parse_integer(number).value_or(-1); });
  std::ranges::sort(idle);
  idle.erase(std::ranges::unique(idle).begin(), idle.end());
  const bool inside =
      !idle.empty() && idle.front() >= 0 && idle.back() < layers && std::ssize(idle) < layers;
  arguments.require(!text || inside, kNoop,
                    "numbers of layers below --num-layers, not of all: 47,62,63");
  return inside ? idle : std::vector<std::int64_t>();
}

}  // namespace orrery::interop
