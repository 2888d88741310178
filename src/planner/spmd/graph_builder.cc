// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/graph_builder.h"

#include <fmt/format.h>

namespace orrery::spmd {

double elements(const Shape& shape) {
  double count = 1;
  for (const std::int64_t extent : shape) {
    count *= static_cast<double>(extent);
  }
  return count;
}

int GraphBuilder::tensor(Shape shape) {
  const Bytes bytes(static_cast<std::int64_t>(elements(shape)) * graph_.element);
  graph_.tensors.push_back({static_cast<int>(graph_.nodes.size()), std::move(shape), bytes});
  return static_cast<int>(graph_.tensors.size()) - 1;
}

int GraphBuilder::load(NodeKind kind, std::string name, const Shape& extents,
                       std::vector<Signature> signatures) {
  const int made = tensor(extents);
  graph_.nodes.push_back({.kind = kind,
                          .name = std::move(name),
                          .outputs = {made},
                          .signatures = std::move(signatures)});
  return made;
}

int GraphBuilder::input(const std::string& name, const Shape& extents) {
  return load(NodeKind::input, name, extents, input_signatures());
}

int GraphBuilder::parameter(const std::string& name, const Shape& extents) {
  return load(NodeKind::parameter, prefix_ + name, extents,
              load_signatures(static_cast<int>(extents.size())));
}

int GraphBuilder::buffer(const std::string& name, const Shape& extents) {
  return load(NodeKind::buffer, name, extents, load_signatures(static_cast<int>(extents.size())));
}

std::string GraphBuilder::numbered(const std::string& name) {
  const int before = used_[name]++;
  return before == 0 ? name : fmt::format("{}_{}", name, before);
}

std::vector<int> GraphBuilder::apply(const Work& work, const std::vector<int>& inputs,
                                     const std::vector<Shape>& outputs, const std::string& name) {
  OperatorShape form{work.op, {}, outputs, work.axis, work.other_axis};
  for (const int input : inputs) {
    form.inputs.push_back(shape(input));
  }
  return add({.op = work.op,
              .name = numbered(name),
              .flops = Flops(work.flops),
              .inputs = inputs,
              .signatures = signatures_of(form)},
             outputs);
}

int GraphBuilder::apply(const Work& work, const std::vector<int>& inputs, const Shape& output) {
  const std::string name = work.op.starts_with("einsum") ? "einsum" : work.op;
  return apply(work, inputs, std::vector<Shape>{output}, name).front();
}

int GraphBuilder::elementwise(const std::string& op, const std::vector<int>& inputs,
                              double flops_each) {
  const Shape extents = shape(inputs.front());
  return apply({op, flops_each * elements(extents)}, inputs, extents);
}

int GraphBuilder::transpose(int x, int axis, int other) {
  Shape extents = shape(x);
  std::swap(extents[static_cast<std::size_t>(axis)], extents[static_cast<std::size_t>(other)]);
  return apply({"transpose", elements(extents), axis, other}, {x}, extents);
}

std::vector<int> GraphBuilder::add(Node node, const std::vector<Shape>& outputs) {
  for (const Shape& extents : outputs) {
    node.outputs.push_back(tensor(extents));
  }
  return graph_.nodes.emplace_back(std::move(node)).outputs;
}

void GraphBuilder::output(int loss) {
  graph_.nodes.push_back({.kind = NodeKind::output,
                          .name = "output",
                          .inputs = {loss},
                          .signatures = {{{Form::reduce()}, {}}}});
}

}  // namespace orrery::spmd
