// SPDX-License-Identifier: Apache-2.0
#include "dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <type_traits>

namespace orrery::golden {
namespace {

using graph::Node;

/// Fields in a row, those of default value left out.
class Line {
 public:
  explicit Line(std::string& text) : text_(text) {}
  ~Line() { text_ += '\n'; }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Line& word(std::string_view value) {
    text_ += text_.empty() || text_.back() == '\n' || text_.back() == ' ' ? "" : " ";
    text_ += value;
    return *this;
  }
  template <class T>
    requires std::integral<T> || std::floating_point<T>
  Line& word(T value) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return word(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
  }
  template <class T>
    requires(!std::is_enum_v<T>)
  Line& field(std::string_view name, const T& value, const T& fallback = T{}) {
    if (value == fallback) {
      return *this;
    }
    word(name);
    text_ += ' ';
    if constexpr (requires { value.value(); }) {
      return word(value.value());
    } else if constexpr (std::same_as<T, bool>) {
      return *this;
    } else {
      return word(value);
    }
  }
  template <class E>
    requires std::is_enum_v<E>
  Line& field(std::string_view name, E value, E fallback) {
    return value == fallback ? *this : word(name).word(name_of(value));
  }
  template <class T>
  Line& list(std::string_view name, const std::vector<T>& values) {
    if (!values.empty()) {
      word(name);
      for (const T& value : values) {
        word(value);
      }
    }
    return *this;
  }

 private:
  std::string& text_;
};

constexpr std::array<std::string_view, 7> kNodeKinds{"compute", "collective", "send", "receive",
                                                     "wait",    "copy",       "host"};
constexpr std::array<std::string_view, 4> kLifetimes{"instance", "leaves", "enters", "run"};
constexpr std::array<std::string_view, 3> kOrders{"issue", "readiness", "none"};
constexpr std::array<std::string_view, 3> kWays{"none", "out", "in"};

template <std::size_t N, class E>
std::string_view word_of(const std::array<std::string_view, N>& words, E value) {
  return words.at(static_cast<std::size_t>(value));
}

/// Name of a row of a table.
template <class Row, class Index>
std::string_view row(const std::vector<Row>& table, Index index) {
  return index.none() ? std::string_view("-") : std::string_view(table.at(*index).name);
}

void write(std::string& text, const graph::Operator& op) {
  const graph::Operator plain;
  Line line(text);
  line.word("  op").word(op.name).word(name_of(op.kind)).word(name_of(op.type));
  line.word(op.gemm.batch).word(op.gemm.m).word(op.gemm.n).word(op.gemm.k);
  line.field("flops", op.flops).field("bytes", op.bytes).field("kernels", op.kernels, 1);
  line.field("captured", op.captured).field("layer", op.layer, plain.layer);
  line.field("backward", op.backward).field("library", op.library, plain.library);
  line.field("block_scaled", op.block_scaled).field("key_heads", op.key_heads);
  line.field("stored_bits", op.stored_bits).field("splits_sums", op.splits_sums);
  line.field("duration", op.duration).field("beside_collective", op.beside_collective, 1.0);
  line.field("beside_message", op.beside_message, 1.0);
  line.field("piece", op.piece).field("pieces", op.pieces, 1);
}

void write(std::string& text, const graph::Workload& workload, const Node& node, std::size_t at) {
  const Node plain;
  {
    Line line(text);
    line.word(at).word(node.name).word(word_of(kNodeKinds, node.kind));
    line.word(row(workload.streams, node.stream)).word(row(workload.phases, node.phase));
    line.field("layer", node.layer, plain.layer);
    if (!node.group.none()) {
      line.word("group").word(row(workload.groups, node.group));
    }
    if (!node.sharers.none()) {
      line.word("sharers").word(row(workload.groups, node.sharers));
    }
    if (node.kind == Node::Kind::collective) {
      line.word(name_of(node.collective));
    }
    line.field("bytes", node.bytes);
    if (node.route != plain.route) {
      line.word("route").word(node.route.copies).word(node.route.groups).word(node.route.chosen);
    }
    line.field("peer", node.peer).field("channel", node.channel).field("tier", node.tier, 1);
    if (node.direction != plain.direction) {
      line.word(word_of(kWays, node.direction));
    }
    line.field("continues", node.continues).field("by_engine", node.by_engine);
    line.field("background", node.background);
    line.field("host_sync", node.host_sync).list("after", node.after);
  }
  for (const graph::Operator& op : node.operators) {
    write(text, op);
  }
}

void write(std::string& text, const graph::Workload& workload, const graph::Tensor& tensor) {
  Line line(text);
  line.word(tensor.name).word(tensor.bytes.value());
  for (const graph::Sharding& sharding : tensor.layout) {
    const bool shard = sharding.kind == graph::Sharding::Kind::shard;
    line.word(shard ? "shard" : "partial").word(row(workload.groups, sharding.group));
    line.field("dimension", sharding.dimension);
  }
  if (!tensor.memory.none()) {
    line.word("memory").word(row(workload.memory, tensor.memory));
  }
  if (tensor.lifetime != graph::Tensor::Lifetime::instance) {
    line.word(word_of(kLifetimes, tensor.lifetime));
  }
  line.field("tier", tensor.tier).field("shared", tensor.shared);
}

std::string tensors_of(const graph::Workload& workload, const graph::Template& piece) {
  std::string text;
  for (const graph::Tensor& tensor : piece.tensors) {
    write(text, workload, tensor);
  }
  for (std::size_t at = 0; at < piece.nodes.size(); ++at) {
    const Node& node = piece.nodes[at];
    if (node.reads.empty() && node.writes.empty()) {
      continue;
    }
    Line line(text);
    line.word("node").word(at);
    for (const auto* uses : {&node.reads, &node.writes}) {
      line.word(uses == &node.reads ? "reads" : "writes");
      for (const graph::Use& use : *uses) {
        line.word(use.tensor).field("at", use.at);
      }
    }
  }
  return text;
}

void write(std::string& text, const graph::Members& members) {
  for (const graph::Digit& digit : members.digits) {
    Line(text).word("  digit").word(digit.size).word(digit.stride);
  }
  Line(text).word(" ").list("only", members.only);
  for (const std::vector<std::int64_t>& list : members.lists) {
    Line(text).word(" ").list("list", list);
  }
}

/// The list of a role: its length and the first instances.
void write_list(std::string& text, const graph::IssueList& list, int role) {
  constexpr std::int64_t kShown = 48;
  Line(text).word("issues").word(list.length(role));
  for (std::int64_t i = 0; i < std::min(kShown, list.length(role)); ++i) {
    const graph::Instance instance = list.at(role, i);
    Line(text)
        .word(" ")
        .word(instance.template_index)
        .word(instance.chunk)
        .word(instance.microbatch)
        .field("step", instance.step);
  }
}

std::string tables_of(const graph::Workload& workload) {
  std::string text;
  Line(text).word("ranks").word(workload.ranks).field("host_dispatch", workload.host_dispatch);
  for (const graph::Digit& digit : workload.role_map.digits) {
    Line(text).word("role digit").word(digit.size).word(digit.stride);
  }
  Line(text).list("role list", workload.role_map.list);
  for (std::size_t i = 0; i < workload.roles.size(); ++i) {
    const graph::Role& role = workload.roles[i];
    Line(text).word("role").word(role.name).word(role.program).list("layers", role.layers);
    for (const graph::Tensor& tensor : role.state) {
      write(text, workload, tensor);
    }
    if (const graph::IssueList* const list = workload.source->list()) {
      write_list(text, *list, static_cast<int>(i));
    }
  }
  for (const graph::Program& program : workload.programs) {
    Line(text).word("program").word(program.templates.size()).field("part", program.part);
  }
  for (const graph::Group& group : workload.groups) {
    Line(text).word("group").word(group.name).word(row(workload.categories, group.category));
    write(text, group.members);
  }
  for (const graph::Stream& stream : workload.streams) {
    Line(text).word("stream").word(stream.name).word(word_of(kOrders, stream.order));
  }
  const auto names = [&](std::string_view table, const auto& rows) {
    for (const auto& one : rows) {
      Line(text).word(table).word(one.name);
    }
  };
  names("phase", workload.phases);
  names("category", workload.categories);
  names("memory", workload.memory);
  return text;
}

}  // namespace

std::vector<Section> sections_of(const graph::Workload& workload) {
  std::vector<Section> sections{{"tables", {tables_of(workload)}}};
  for (std::size_t p = 0; p < workload.programs.size(); ++p) {
    for (const graph::Template& piece : workload.programs[p].templates) {
      std::string nodes;
      for (std::size_t at = 0; at < piece.nodes.size(); ++at) {
        write(nodes, workload, piece.nodes[at], at);
      }
      sections.push_back({fmt::format("program {}: {}", p, piece.name),
                          {std::move(nodes), tensors_of(workload, piece)}});
    }
  }
  return sections;
}

}  // namespace orrery::golden
