// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/msccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>

#include "base/lists.h"
#include "base/one_of.h"
#include "base/reader.h"

namespace orrery::astra {
namespace {

using Kind = CustomStep::Kind;

constexpr std::int64_t kMostParts = 1 << 20;
constexpr std::int64_t kMostGpus = 1 << 20;

/// A StepType says what a step does, one after the other.
struct StepType {
  std::string_view name;
  bool receives;
  bool reduces;
  bool sends;
};
constexpr std::array kStepTypes{
    StepType{"s", false, false, true},    StepType{"r", true, false, false},
    StepType{"rcs", true, false, true},   StepType{"rrc", true, true, false},
    StepType{"rrcs", true, true, true},   StepType{"rrs", true, true, true},
    StepType{"cpy", false, false, false}, StepType{"re", false, true, false},
    StepType{"nop", false, false, false},
};

std::vector<std::string> type_names() {
  return mapped<std::string>(kStepTypes, &StepType::name);
}

/// Attributes of elements, with the line of each mistake.
class Document {
 public:
  Document(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  std::string where(std::ptrdiff_t offset) {
    if (line_ends_.empty()) {
      for (std::size_t at = 0; at < text_.size(); ++at) {
        if (text_[at] == '\n') {
          line_ends_.push_back(static_cast<std::ptrdiff_t>(at));
        }
      }
      line_ends_.push_back(std::ssize(text_));
    }
    const auto end = std::lower_bound(line_ends_.begin(), line_ends_.end() - 1, offset);
    return fmt::format("{}:{}", file_, 1 + (end - line_ends_.begin()));
  }
  void mistake(const pugi::xml_node& node, const std::string& attribute,
               const std::string& expected) {
    mistakes_.add({where(node.offset_debug()), fmt::format("{}.{}", node.name(), attribute),
                   node.attribute(attribute.c_str()).value(), expected});
  }
  std::int64_t number(const pugi::xml_node& node, const char* attribute, std::int64_t least,
                      std::int64_t most) {
    const auto value = parse_integer(node.attribute(attribute).value());
    if (!value || *value < least || *value > most) {
      mistake(node, attribute, fmt::format("a whole number from {} to {}", least, most));
      return least;
    }
    return *value;
  }
  std::int64_t optional_number(const pugi::xml_node& node, const char* attribute,
                               std::int64_t fallback) {
    return node.attribute(attribute) ? number(node, attribute, -1, kMostParts) : fallback;
  }
  Error& mistakes() { return mistakes_; }
  const std::string& file() const { return file_; }

 private:
  std::string_view text_;
  std::string file_;
  std::vector<std::ptrdiff_t> line_ends_;  ///< counted once: a file may have a million mistakes
  Error mistakes_;
};

/// The thread blocks of one GPU become one program.
class GpuReader {
 public:
  GpuReader(Document& document, std::int64_t parts) : document_(document), parts_(parts) {}

  CustomProgram read(const pugi::xml_node& gpu) {
    for (const pugi::xml_node& block : gpu.children("tb")) {
      read_block(block);
    }
    for (const Waiting& wait : waiting_) {
      const auto target = steps_.find({wait.block, wait.step});
      if (target == steps_.end()) {
        document_.mistake(wait.node, "deps", fmt::format("a step that block {} has", wait.block));
      } else {
        add_dependency(wait.item, target->second);
      }
    }
    return document_.mistakes().empty() ? program(gpu) : CustomProgram{};
  }

 private:
  /// A step of the result, or a point that only waits (`step` is none).
  struct Item {
    std::optional<CustomStep> step;
    std::vector<std::uint32_t> dependencies;
  };
  struct Waiting {
    pugi::xml_node node;
    std::uint32_t item;
    std::int64_t block;
    std::int64_t step;
  };
  struct Block {
    std::int64_t id;
    std::int64_t send;
    std::int64_t receive;
    std::uint32_t channel;
  };

  void add_dependency(std::uint32_t item, std::uint32_t before) {
    auto& list = items_[item].dependencies;
    if (std::find(list.begin(), list.end(), before) == list.end()) {
      list.push_back(before);
    }
  }

  std::uint32_t add(std::optional<CustomStep> step, std::optional<std::uint32_t> before) {
    items_.push_back({step, {}});
    const auto item = static_cast<std::uint32_t>(items_.size() - 1);
    if (before) {
      add_dependency(item, *before);
    }
    return item;
  }

  void read_block(const pugi::xml_node& node) {
    const Block block{
        .id = document_.number(node, "id", 0, kMostParts),
        .send = document_.optional_number(node, "send", -1),
        .receive = document_.optional_number(node, "recv", -1),
        .channel = static_cast<std::uint32_t>(document_.number(node, "chan", 0, kMostParts))};
    std::optional<std::uint32_t> last;
    for (const pugi::xml_node& step : node.children("step")) {
      last = read_step(step, block, last);
    }
  }

  /// Returns the item that the next step of the block waits for.
  std::uint32_t read_step(const pugi::xml_node& node, const Block& block,
                          std::optional<std::uint32_t> last) {
    const std::string name = node.attribute("type").value();
    const auto type = std::find_if(kStepTypes.begin(), kStepTypes.end(),
                                   [&](const StepType& known) { return known.name == name; });
    // A point to wait at comes first: what the step needs from other blocks is found later.
    std::uint32_t item = add(std::nullopt, last);
    const std::int64_t other = document_.optional_number(node, "depid", -1);
    if (other >= 0) {
      waiting_.push_back({node, item, other, document_.number(node, "deps", 0, kMostParts)});
    }
    if (type == kStepTypes.end()) {
      document_.mistake(node, "type", one_of(name, type_names()));
      return item;
    }
    // The compiler writes cnt="0" at steps that move nothing.
    const bool moves = type->receives || type->reduces || type->sends;
    const std::int64_t count =
        moves && node.attribute("cnt") ? document_.number(node, "cnt", 1, parts_) : 1;
    check_peers(node, *type, block);
    CustomStep step{.tag = block.channel, .parts = count};
    if (type->receives) {
      step.kind = Kind::receive;
      step.peer = block.receive;
      item = add(step, item);
    }
    if (type->reduces) {
      item = add(CustomStep{.kind = Kind::reduce, .parts = count}, item);
    }
    if (type->sends) {
      step.kind = Kind::send;
      step.peer = block.send;
      item = add(step, item);
    }
    const std::int64_t index = document_.number(node, "s", 0, kMostParts);
    if (!steps_.emplace(std::pair{block.id, index}, item).second) {
      document_.mistake(node, "s", "each step of a block once");
    }
    return item;
  }

  void check_peers(const pugi::xml_node& node, const StepType& type, const Block& block) {
    if (type.receives && block.receive < 0) {
      document_.mistake(node, "type", "a block with recv=, as this step receives");
    }
    if (type.sends && block.send < 0) {
      document_.mistake(node, "type", "a block with send=, as this step sends");
    }
  }

  /// Leaves out the points that only wait: who waits for one waits for what it waits for.
  CustomProgram program(const pugi::xml_node& gpu) {
    const std::vector<std::vector<std::uint32_t>> needed = mapped(items_, &Item::dependencies);
    const auto order = dependency_order(needed);
    if (!order) {
      document_.mistake(gpu, "id", "steps whose dependencies form no cycle");
      return {};
    }
    CustomProgram program;
    std::vector<std::vector<std::uint32_t>> ends(items_.size());
    for (const std::uint32_t at : *order) {
      std::vector<std::uint32_t> before;
      for (const std::uint32_t dependency : needed[at]) {
        before.insert(before.end(), ends[dependency].begin(), ends[dependency].end());
      }
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      const std::optional<CustomStep>& made = items_[at].step;
      if (!made) {
        ends[at] = std::move(before);
        continue;
      }
      CustomStep step = *made;
      step.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
      step.dependencies = static_cast<std::uint32_t>(before.size());
      program.dependencies.insert(program.dependencies.end(), before.begin(), before.end());
      ends[at] = {static_cast<std::uint32_t>(program.steps.size())};
      program.steps.push_back(step);
    }
    return program;
  }

  Document& document_;
  std::int64_t parts_;
  std::vector<Item> items_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> steps_;  ///< by (block, s)
  std::vector<Waiting> waiting_;
};

std::optional<Operation> operation_named(std::string_view name) {
  if (name == "allreduce") {
    return Operation::all_reduce;
  }
  if (name == "allgather") {
    return Operation::all_gather;
  }
  if (name == "reduce_scatter" || name == "reducescatter") {
    return Operation::reduce_scatter;
  }
  return name == "alltoall" ? std::optional(Operation::all_to_all) : std::nullopt;
}

CustomCollective read_algorithm(const pugi::xml_node& algorithm, Document& document) {
  CustomCollective collective;
  collective.name = document.file();
  collective.operation = operation_named(algorithm.attribute("coll").value());
  collective.endpoint_delay = true;
  collective.parts = document.number(algorithm, "nchunksperloop", 1, kMostParts);
  const std::int64_t gpus = document.number(algorithm, "ngpus", 1, kMostGpus);
  std::map<std::int64_t, pugi::xml_node> by_id;
  for (const pugi::xml_node& gpu : algorithm.children("gpu")) {
    if (!by_id.emplace(document.number(gpu, "id", 0, gpus - 1), gpu).second) {
      document.mistake(gpu, "id", "each id once");
    }
  }
  if (static_cast<std::int64_t>(by_id.size()) != gpus) {
    document.mistake(algorithm, "ngpus",
                     fmt::format("the number of gpu elements, which is {}", by_id.size()));
  }
  for (const auto& [id, gpu] : by_id) {
    collective.programs.push_back(GpuReader(document, collective.parts).read(gpu));
  }
  return collective;
}

}  // namespace

Result<CustomCollective> parse_msccl(std::string_view text, const std::string& file) {
  Document document(text, file);
  pugi::xml_document xml;
  const pugi::xml_parse_result parsed = xml.load_buffer(text.data(), text.size());
  if (!parsed) {
    return fail(Error(Mistake{document.where(parsed.offset), {}, {}, parsed.description()}));
  }
  const pugi::xml_node algorithm = xml.child("algo");
  if (!algorithm) {
    return fail(Error(Mistake{file, {}, {}, "no <algo> element; expected a program of MSCCL"}));
  }
  CustomCollective collective = read_algorithm(algorithm, document);
  if (document.mistakes().empty()) {
    if (auto matched = check_messages(collective); !matched) {
      return fail(std::move(matched.error()));
    }
    return collective;
  }
  return fail(std::move(document.mistakes()));
}

}  // namespace orrery::astra
