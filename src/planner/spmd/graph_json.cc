// SPDX-License-Identifier: Apache-2.0
// Reads an operator graph from JSON, every mistake with its line.
#include <fmt/format.h>

#include <algorithm>

#include "base/collect.h"
#include "base/reader.h"
#include "planner/spmd/operator_graph.h"
#include "planner/spmd/read_list.h"

namespace orrery::spmd {
namespace {

constexpr std::string_view kGraphFormat = "annotated-graph/1";
/// The header has these facts about the model, which the nodes imply.
constexpr std::array kFacts{"batch",         "sequence",   "hidden",          "ffn",
                            "experts",       "capacity",   "capacity_factor", "parameters",
                            "forward_flops", "vocabulary", "classes",         "tokens",
                            "heads"};

Mistake wrong(const ConfigNode& node, std::string expected) {
  return {node.where(), node.path, node.shown(), std::move(expected)};
}

std::vector<Form> read_forms(const ConfigNode& list, Error& mistakes) {
  std::vector<Form> forms;
  if (list.kind != ConfigNode::Kind::sequence) {
    mistakes.add(wrong(list, "a list of forms"));
  }
  for (const ConfigNode& item : list.items) {
    const auto form = parse_form(item.text);
    if (!form) {
      mistakes.add(wrong(item, "full, reduce, replicate or gather_D with D from 0 to 11"));
    }
    forms.push_back(form.value_or(Form::full()));
  }
  return forms;
}

std::vector<Signature> read_signatures(const std::vector<const ConfigNode*>& items,
                                       Error& mistakes) {
  std::vector<Signature> signatures;
  for (const ConfigNode* item : items) {
    if (item->kind != ConfigNode::Kind::sequence || item->items.size() != 2) {
      mistakes.add(wrong(*item, "a pair of lists: forms of the inputs, forms of the outputs"));
      continue;
    }
    signatures.push_back(
        {read_forms(item->items[0], mistakes), read_forms(item->items[1], mistakes)});
  }
  return signatures;
}

void expect_id(Reader& read, std::size_t expected) {
  const auto id = read.required<std::int64_t>("id");
  read.require(id == static_cast<std::int64_t>(expected), "id",
               fmt::format("{}: ids count from 0 in order", expected));
}

Result<Tensor> read_tensor(const ConfigNode& item, std::size_t id) {
  Reader read(item);
  expect_id(read, id);
  Tensor tensor{.producer = read.required<int>("producer"),
                .shape = read.list<std::int64_t>("shape", true),
                .bytes = Bytes(read.required<std::int64_t>("bytes"))};
  for (const std::int64_t extent : tensor.shape) {
    read.require(extent > 0, "shape", "positive extents");
  }
  read.require(tensor.bytes > Bytes(0), "bytes", "at least 1");
  return read.finish(std::move(tensor));
}

Result<NodeKernel> read_kernel(const ConfigNode& item) {
  Reader read(item);
  const auto gemm = read.list<std::int64_t>("gemm", true);
  NodeKernel kernel{.kind = read.required<graph::OperatorKind>("kind"),
                    .flops = Flops(read.required<double>("flops")),
                    .bytes = Bytes(read.required<std::int64_t>("bytes")),
                    .kernels = read.required<int>("kernels"),
                    .parts = read.optional("parts", std::int64_t{0})};
  read.require(gemm.size() == 4 && std::ranges::all_of(gemm, [](auto e) { return e >= 0; }), "gemm",
               "batch, m, n and k");
  if (gemm.size() == 4) {
    kernel.gemm = {gemm[0], gemm[1], gemm[2], gemm[3]};
  }
  read.require(kernel.flops >= Flops(0), "flops", "a count");
  read.require(kernel.bytes >= Bytes(0), "bytes", "a count");
  read.require(kernel.kernels >= 1, "kernels", "at least 1");
  read.require(kernel.parts >= 0, "parts", "a count");
  return read.finish(kernel);
}

Result<Node> read_node(const ConfigNode& item, std::size_t id) {
  Reader read(item);
  expect_id(read, id);
  read.ignore("trace_index");
  Error mistakes;
  Node node{.kind = read.required<NodeKind>("kind"),
            .op = read.optional("op", std::string()),
            .name = read.required<std::string>("name"),
            .flops = Flops(read.required<double>("flops")),
            .inputs = read.list<int>("inputs"),
            .outputs = read.list<int>("outputs"),
            .signatures = read_signatures(read.take_items("signatures", true), mistakes),
            .experts = read.optional("experts", false)};
  if (const ConfigNode* kernel = read.child("kernel", false)) {
    node.kernel = read.absorb(read_kernel(*kernel));
  }
  read.require(node.flops >= Flops(0), "flops", "a count");
  if (!mistakes.empty()) {
    read.absorb(Result<int>(fail(std::move(mistakes))));
  }
  return read.finish(std::move(node));
}

/// Returns a reader of items that are counted from 0.
template <class T>
auto counted(Result<T> (*one)(const ConfigNode&, std::size_t)) {
  return [one, id = std::size_t{0}](const ConfigNode& item) mutable { return one(item, id++); };
}

}  // namespace

Result<OperatorGraph> load_graph(const std::string& file) {
  const auto root = load_config(file);
  if (!root) {
    return fail(root.error());
  }
  Reader read(*root);
  const auto format = read.required<std::string>("format");
  read.require(format == kGraphFormat, "format", std::string(kGraphFormat));
  for (const char* fact : kFacts) {
    read.ignore(fact);
  }
  OperatorGraph graph{.model = read.optional("model", std::string("graph")),
                      .devices = read.optional("gpus", std::int64_t{0}),
                      .layers = read.optional("layers", std::int64_t{0}),
                      .element = read.optional("bytes_per_element", std::int64_t{4}),
                      .tensors = read_list(read, "tensors", counted(read_tensor)),
                      .nodes = read_list(read, "nodes", counted(read_node))};
  read.require(graph.element >= 1 && graph.element <= 16, "bytes_per_element", "1 to 16");
  if (read.ok()) {
    if (auto sound = verify(graph); !sound) {
      FileMistakes mistakes(file);
      for (Mistake& mistake : sound.error().mistakes) {
        mistake.where = file;
        mistakes.add(std::move(mistake));
      }
      return fail(mistakes.take());
    }
  }
  return read.finish(std::move(graph));
}

}  // namespace orrery::spmd
