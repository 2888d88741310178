// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/decoder_signatures.h"

#include <algorithm>

#include "planner/spmd/kernel_shape.h"

namespace orrery::spmd {
namespace {

using graph::Dim;
using graph::OperatorKind;
using Role = graph::OperatorRole;

class SignatureList {
 public:
  SignatureList(const zoo::ModelOperator& op, const std::vector<Operand>& inputs,
                const std::vector<Operand>& outputs)
      : op_(op), inputs_(inputs), outputs_(outputs) {}

  std::vector<Signature> list() {
    cut(Dim::batch);
    if (!mixes_tokens()) {
      cut(Dim::tokens);
    }
    cut(Dim::experts);
    cut(Dim::rows);
    if (is_product(op_.kind)) {
      product();
    } else {
      other();
    }
    all(Form::full(), Form::full(), Form::full());
    return std::move(found_);
  }

 private:
  static bool has(const Operand& operand, Dim dim) {
    return std::ranges::find(operand.dims, dim) != operand.dims.end();
  }

  static std::vector<Form> forms(const std::vector<Operand>& operands, Dim dim, Form otherwise) {
    std::vector<Form> forms;
    for (const Operand& one : operands) {
      const auto place = std::ranges::find(one.dims, dim) - one.dims.begin();
      forms.push_back(has(one, dim) ? Form::gather(static_cast<int>(place)) : otherwise);
    }
    return forms;
  }

  /// Returns whether a token of the result depends on others, or lies where an expert is.
  bool mixes_tokens() const {
    return op_.kind == OperatorKind::attention || op_.kind == OperatorKind::convolution ||
           op_.kind == OperatorKind::scan || op_.kind == OperatorKind::permute;
  }

  /// Adds the signature that cuts by a dimension; does nothing if no tensor has it.
  void cut(Dim dim) {
    const auto named = [dim](const Operand& one) { return has(one, dim); };
    if (std::ranges::any_of(inputs_, named) || std::ranges::any_of(outputs_, named)) {
      found_.push_back({forms(inputs_, dim, Form::full()), forms(outputs_, dim, Form::reduce())});
    }
  }

  /// The same form of all activations, of weights and vectors, and of all results.
  void all(Form activation, Form weight, Form result) {
    Signature signature;
    for (const Operand& one : inputs_) {
      signature.inputs.push_back(one.parameter ? weight : activation);
    }
    signature.outputs.assign(outputs_.size(), result);
    found_.push_back(std::move(signature));
  }

  void product() {
    const auto parameters = std::ranges::count_if(inputs_, &Operand::parameter);
    const Form columns = Form::gather(static_cast<int>(outputs_.front().shape.size()) - 1);
    if (parameters == 1 || !op_.expert) {  // a vector of experts' biases is in slices of experts
      all(Form::full(), Form::gather(op_.expert ? 2 : 0), columns);
    }
    if (parameters == 1) {
      all(columns, Form::gather(1), Form::reduce());
      if (inputs_.size() == 2 && !op_.expert) {
        all(Form::reduce(), Form::full(), Form::reduce());
      }
    }
  }

  void other() {
    const Operand& result = outputs_.front();
    const bool gates = op_.role == Role::shared_sum && inputs_.size() > 2;  // by sums over columns
    const bool by_row = op_.kind == OperatorKind::norm && op_.gemm.k == result.shape.back();
    if (!result.dims.empty() && result.dims.back() != Dim::none && !gates && !by_row) {
      cut(result.dims.back());
    }
    if (op_.role == Role::token_embedding) {
      cut(Dim::vocab);
    }
    if ((op_.role == Role::shared_sum && !gates) || op_.role == Role::unpermute) {
      all(Form::reduce(), Form::full(), Form::reduce());
    }
  }

  const zoo::ModelOperator& op_;
  const std::vector<Operand>& inputs_;
  const std::vector<Operand>& outputs_;
  std::vector<Signature> found_;
};

}  // namespace

std::vector<Signature> signatures_of(const zoo::ModelOperator& op,
                                     const std::vector<Operand>& inputs,
                                     const std::vector<Operand>& outputs) {
  return SignatureList(op, inputs, outputs).list();
}

}  // namespace orrery::spmd
