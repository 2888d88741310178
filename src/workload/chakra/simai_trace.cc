// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/simai_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/words.h"
#include "workload/chakra/json_value.h"

namespace orrery::chakra {
namespace {

struct Known {
  std::string_view name;
  CollectiveType type;
};
constexpr std::array<Known, 4> kKnown{{{"ALLREDUCE", CollectiveType::all_reduce},
                                       {"ALLGATHER", CollectiveType::all_gather},
                                       {"REDUCESCATTER", CollectiveType::reduce_scatter},
                                       {"ALLTOALL", CollectiveType::all_to_all}}};

/// Names of the header's numbers; lists follow the last two. AICB writes pp_comm in both ways.
constexpr std::array<std::string_view, 10> kSettings{"model_parallel_NPU_group:",
                                                     "ep:",
                                                     "pp:",
                                                     "vpp:",
                                                     "ga:",
                                                     "all_gpus:",
                                                     "pp_comm:",
                                                     "pp_comm",
                                                     "checkpoints:",
                                                     "checkpoint_initiates:"};

/// Groups of a rank, by the names that the nodes have.
enum Axis : std::uint8_t { tp = 1, dp, ep, dp_ep };

/// Part is a computation and the collective after it.
struct Part {
  std::uint64_t nanoseconds = 0;
  std::optional<CollectiveType> collective{};
  Axis axis = tp;
  std::uint64_t bytes = 0;
};

struct Layer {
  std::string_view name;
  std::array<Part, 3> parts;  ///< forward, input gradient, weight gradient
  std::uint64_t update = 0;   ///< ns
};

class SimaiReader {
 public:
  SimaiReader(std::int64_t rank, std::int64_t ranks, ProgramBuilder& builder, Mistakes& mistakes)
      : rank_(rank), ranks_(ranks), builder_(builder), mistakes_(mistakes) {}

  void run(std::string_view text) {
    std::optional<std::uint64_t> count;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      ++line_;
      const auto words = words_of(line);
      if (words.empty()) {
        continue;
      }
      if (policy_.empty()) {
        read_header(words);
      } else if (!count) {
        count = natural(words.front());
        require(count && words.size() == 1, "layers", words.front(), "the number of layers");
        if (!count) {
          return;
        }
      } else {
        read_layer(words);
      }
    }
    require(count.has_value(), "layers", "no line", "the number of layers, after the header");
    require(!count || count == lines_, "layers", std::to_string(lines_),
            fmt::format("as many lines as the second says, {}", count.value_or(0)));
    if (mistakes_.empty()) {
      define_groups();
      add_nodes();
    }
  }

 private:
  void require(bool fits, std::string_view field, std::string_view found, std::string expected) {
    if (!fits) {
      mistakes_.add(fmt::format("line {}: {}", line_, field), std::string(found),
                    std::move(expected));
    }
  }

  void read_header(const std::vector<std::string_view>& words) {
    policy_ = words.front();
    require(policy_ == "HYBRID_TRANSFORMER_FWD_IN_BCKWD" || policy_ == "HYBRID_TRANSFORMER",
            "policy", policy_, "HYBRID_TRANSFORMER_FWD_IN_BCKWD or HYBRID_TRANSFORMER");
    check_settings(words);
    const auto value = [&](std::string_view name, std::int64_t fallback) {
      const auto at = std::ranges::find(words, name);
      if (at == words.end()) {
        return fallback;
      }
      const std::string_view word = at + 1 == words.end() ? std::string_view() : *(at + 1);
      const auto number = natural(word);
      name.remove_suffix(1);  // the colon
      require(number && *number <= (std::uint64_t{1} << 31), name, word, "a whole number");
      return static_cast<std::int64_t>(number.value_or(0));
    };
    tp_ = value("model_parallel_NPU_group:", 1);
    ep_ = value("ep:", 1);
    const std::int64_t all = value("all_gpus:", ranks_);
    require(value("pp:", 1) == 1, "pp", std::to_string(value("pp:", 1)),
            "1: a file has the layers of one stage");
    require(value("checkpoints:", 0) == 0, "checkpoints", std::to_string(value("checkpoints:", 0)),
            "0: layers that are computed again are not read");
    require(all == ranks_, "all_gpus", std::to_string(all),
            fmt::format("the number of ranks, {}", ranks_));
    const bool fits =
        tp_ >= 1 && ep_ >= 1 && tp_ <= ranks_ && ep_ <= ranks_ / tp_ && ranks_ % (tp_ * ep_) == 0;
    require(fits, "model_parallel_NPU_group x ep", fmt::format("{} x {}", tp_, ep_),
            fmt::format("a divisor of {} ranks", ranks_));
  }

  /// Every word after the policy is a known name, once, or a number.
  void check_settings(const std::vector<std::string_view>& words) {
    const std::vector<std::string> names(kSettings.begin(), kSettings.end());
    for (std::size_t i = 1; i < words.size(); ++i) {
      const bool known = std::ranges::find(kSettings, words[i]) != kSettings.end();
      require(known || natural(words[i]), "header", words[i],
              "a name such as ep: or a number" + did_you_mean(words[i], names));
      require(!known || std::ranges::count(words, words[i]) == 1, "header", words[i],
              "every name once");
    }
  }

  void read_layer(const std::vector<std::string_view>& words) {
    ++lines_;
    constexpr std::size_t kColumns = 12;
    if (words.size() != kColumns) {
      require(false, "layer", fmt::format("{} columns", words.size()),
              "12: name, dependency, three of time, collective and bytes, and the update's time");
      return;
    }
    Layer layer{.name = words.front(), .parts = {}};
    for (std::size_t p = 0; p < layer.parts.size(); ++p) {
      layer.parts[p].nanoseconds = number(words[2 + 3 * p]);
      read_collective(words[3 + 3 * p], p == 2 ? dp : tp, layer.parts[p]);
      layer.parts[p].bytes = number(words[4 + 3 * p]);
    }
    layer.update = number(words.back());
    layers_.push_back(layer);
  }

  std::uint64_t number(std::string_view word) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
    const auto value = natural(word);
    require(value && *value <= kMost, "layer", word, "a whole number of ns or bytes");
    return value.value_or(0);
  }

  void read_collective(std::string_view word, Axis usual, Part& part) {
    if (word == "NONE") {
      return;
    }
    const std::string_view name = word.substr(0, word.find('_'));
    const std::string_view suffix = word.substr(name.size());
    const auto known = std::ranges::find(kKnown, name, &Known::name);
    const bool spread = suffix.empty() || suffix == "_EP" || suffix == "_DP_EP" || suffix == "_DP";
    require(known != kKnown.end() && spread, "collective", word,
            "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, alone or with _EP, _DP, "
            "_DP_EP");
    if (known != kKnown.end()) {
      part.collective = known->type;
      part.axis = suffix == "_EP" ? ep : suffix == "_DP_EP" ? dp_ep : suffix == "_DP" ? dp : usual;
    }
  }

  std::int64_t size_of(Axis axis) const {
    const std::int64_t replicas = ranks_ / tp_;
    return axis == tp ? tp_ : axis == dp ? replicas : axis == ep ? ep_ : replicas / ep_;
  }

  void define_groups() {
    const std::int64_t replica = rank_ / tp_;
    for (const Axis axis : {tp, dp, ep, dp_ep}) {
      GroupDefinition group{.name = std::to_string(axis), .ranks = {}};
      for (std::int64_t i = 0; i < size_of(axis); ++i) {
        group.ranks.push_back(axis == tp   ? replica * tp_ + i
                              : axis == dp ? i * tp_ + rank_ % tp_
                              : axis == ep ? (replica / ep_ * ep_ + i) * tp_ + rank_ % tp_
                                           : (i * ep_ + replica % ep_) * tp_ + rank_ % tp_);
      }
      builder_.define(std::move(group));
    }
  }

  void add_nodes() {
    for (const Layer& layer : layers_) {
      compute(layer, layer.parts[0].nanoseconds, last_);
      communicate(layer, layer.parts[0], last_);
    }
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      compute(*layer, layer->parts[1].nanoseconds, last_);
      communicate(*layer, layer->parts[1], last_);
      compute(*layer, layer->parts[2].nanoseconds, last_);
      std::optional<std::uint64_t> beside = last_;
      if (communicate(*layer, layer->parts[2], beside)) {
        compute(*layer, layer->update, beside);
      }
    }
  }

  /// Adds a node after `last`, which it becomes.
  void add(const Layer& layer, NodeType type, std::optional<std::uint64_t>& last) {
    record_.id = next_++;
    record_.name = layer.name;
    record_.type = static_cast<std::int64_t>(type);
    if (last) {
      record_.dependencies.push_back(*last);
    }
    builder_.add(record_);
    last = record_.id;
    record_.clear();
  }

  void compute(const Layer& layer, std::uint64_t nanoseconds, std::optional<std::uint64_t>& last) {
    constexpr std::uint64_t kMicro = 1000;
    left_ += nanoseconds;
    record_.duration_micros = left_ / kMicro;
    left_ %= kMicro;
    if (record_.duration_micros > 0) {
      add(layer, NodeType::comp, last);
    }
  }

  /// Returns false where nothing is sent.
  bool communicate(const Layer& layer, const Part& part, std::optional<std::uint64_t>& last) {
    const auto members = static_cast<std::uint64_t>(size_of(part.axis));
    if (!part.collective || part.bytes == 0 || members == 1) {
      return false;
    }
    const bool gathers = *part.collective == CollectiveType::all_gather;
    const std::string group = std::to_string(part.axis);
    record_.set(Attribute::comm_type, Value::natural(static_cast<std::uint64_t>(*part.collective)));
    record_.set(Attribute::comm_size, Value::natural(part.bytes / (gathers ? members : 1)));
    record_.set(Attribute::pg_name, Value::string(group));
    add(layer, NodeType::comm_coll, last);
    return true;
  }

  const std::int64_t rank_;
  const std::int64_t ranks_;
  ProgramBuilder& builder_;
  Mistakes& mistakes_;
  std::string_view policy_;
  std::int64_t line_ = 0;
  std::int64_t tp_ = 1;
  std::int64_t ep_ = 1;
  std::size_t lines_ = 0;  ///< of layers
  std::vector<Layer> layers_;
  NodeRecord record_;
  std::uint64_t next_ = 0;
  std::uint64_t left_ = 0;  ///< ns that no node has yet
  std::optional<std::uint64_t> last_;
};

}  // namespace

void read_simai_trace(std::string_view text, std::int64_t rank, std::int64_t ranks,
                      ProgramBuilder& builder, Mistakes& mistakes) {
  SimaiReader(rank, ranks, builder, mistakes).run(text);
  if (mistakes.empty()) {
    builder.finish();
  }
}

}  // namespace orrery::chakra
