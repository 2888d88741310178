// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/stage_paths.h"

#include <algorithm>

namespace orrery::spmd {
namespace {

constexpr std::uint64_t kNothingChosen = ~std::uint64_t{0};

void note(Path& path, int position, int form) {
  const int shift = 4 * position;
  path.forms =
      (path.forms & ~(std::uint64_t{15} << shift)) | (static_cast<std::uint64_t>(form) << shift);
}

/// Adds nodes to one stage's paths.
class Growth {
 public:
  Growth(const CompiledGraph& graph, const StageRule& rule, int node, int length,
         std::vector<Path>& longer)
      : graph_(graph), rule_(rule), node_(graph.node(node)), length_(length), longer_(longer) {}

  void grow(const Path& path, int index) {
    for (std::size_t s = 0; s < node_.signatures.size(); ++s) {
      const CompiledSignature& signature = node_.signatures[s];
      Path next = path;
      next.parent = index;
      next.signature = static_cast<std::int16_t>(s);
      next.forms = kNothingChosen;
      if (convert_decided(signature, next)) {
        next.work += signature.work;
        for (std::size_t w = 0; w < next.key.words.size(); ++w) {
          next.key.words[w] =
              (next.key.words[w] & node_.keep.words[w]) | signature.outputs.words[w];
        }
        const std::size_t first = longer_.size();
        longer_.push_back(next);
        for (std::size_t k = 0; k < signature.choices.size(); ++k) {
          choose_loads(node_.inputs[static_cast<std::size_t>(node_.decided_inputs) + k],
                       signature.choices[k], first);
        }
      }
    }
  }

 private:
  /// Returns whether the tensor was there when the stage began, so that it may be converted in it.
  bool was_there(const CompiledInput& input) const { return input.distance > length_; }

  bool convert_decided(const CompiledSignature& signature, Path& next) const {
    for (std::size_t k = 0; k < static_cast<std::size_t>(node_.decided_inputs); ++k) {
      const CompiledInput& input = node_.inputs[k];
      const int byte = next.key.get(input.slot);
      const int original = byte & 15;
      const int need = signature.needs[k];
      if (original == need || byte >> 4 == need) {
        continue;
      }
      const Price& price = graph_.price(input, original, need);
      if (byte >> 4 != kNoForm || !was_there(input) || !price.legal) {
        return false;
      }
      next.key.set(input.slot, byte_of(original, need));
      next.work += price.work;
      next.communicated = true;
      note(next, input.position, original);
    }
    return true;
  }

  /// Each path from `first` on once for each choice that may be made, but for those that another
  /// stands for.
  void choose_loads(const CompiledInput& input, const std::vector<LoadChoice>& choices,
                    std::size_t first) {
    chosen_.clear();
    for (std::size_t i = first; i < longer_.size(); ++i) {
      for (const LoadChoice& choice : choices) {
        if (choice.converts && !was_there(input)) {
          continue;
        }
        Path next = longer_[i];
        next.work += choice.work;
        next.communicated = next.communicated || choice.converts;
        note(next, input.position, choice.form);
        keep_best(next);
      }
    }
    longer_.resize(first);
    longer_.insert(longer_.end(), chosen_.begin(), chosen_.end());
  }

  bool stands_for(const Path& a, const Path& b) const {
    return (a.communicated || !b.communicated) && no_slower(rule_, a.work, b.work);
  }
  void keep_best(const Path& next) {
    if (std::none_of(chosen_.begin(), chosen_.end(),
                     [&](const Path& other) { return stands_for(other, next); })) {
      std::erase_if(chosen_, [&](const Path& other) { return stands_for(next, other); });
      chosen_.push_back(next);
    }
  }

  const CompiledGraph& graph_;
  StageRule rule_;
  const CompiledNode& node_;
  int length_;
  std::vector<Path>& longer_;
  std::vector<Path> chosen_;
};

}  // namespace

void add_node(const CompiledGraph& graph, const StageRule& rule, int node, int length,
              const std::vector<Path>& shorter, std::vector<Path>& longer) {
  longer.clear();
  Growth growth(graph, rule, node, length, longer);
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    growth.grow(shorter[i], static_cast<int>(i));
  }
}

}  // namespace orrery::spmd
