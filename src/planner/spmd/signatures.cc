// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/signatures.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/lists.h"

namespace orrery::spmd {
namespace {

using Signatures = std::vector<Signature>;

constexpr Form kFull = Form::full();
constexpr Form kReduce = Form::reduce();

int rank_of(const Shape& shape) {
  return static_cast<int>(shape.size());
}

int from_front(int axis, int rank) {
  return axis < 0 ? axis + rank : axis;
}

/// Slices along every dimension but those from `first` up to `last`; inputs after the first whole.
Signatures all_but(const OperatorShape& shape, int first, int last) {
  Signatures found;
  for (int d = 0; d < rank_of(shape.inputs[0]); ++d) {
    if (d < first || d >= last) {
      Signature signature{{Form::gather(d)}, {}};
      signature.inputs.resize(shape.inputs.size(), kFull);
      signature.outputs.assign(shape.outputs.size(), Form::gather(d));
      found.push_back(std::move(signature));
    }
  }
  return found;
}

Signatures unary(const OperatorShape& shape) {
  return all_but(shape, 0, 0);
}

/// One operand of size 1 is whole where the other is sliced.
Signatures slices_of_both(const OperatorShape& shape) {
  Signatures found = unary({shape.op, {shape.outputs[0]}, shape.outputs});
  for (Signature& signature : found) {
    const Form slice = signature.inputs[0];
    signature.inputs.clear();
    for (const Shape& input : shape.inputs) {
      const int d = slice.dimension() - (rank_of(shape.outputs[0]) - rank_of(input));
      const bool broadcast = d < 0 || input[static_cast<std::size_t>(d)] == 1;
      signature.inputs.push_back(broadcast ? kFull : Form::gather(d));
    }
  }
  return found;
}

Signatures sum_of_tensors(const OperatorShape& shape) {
  return slices_of_both(shape);
}

/// Products and quotients of summands with something whole, a scalar too, are summands.
Signatures scaled(const OperatorShape& shape, bool right_too) {
  Signatures found = slices_of_both(shape);
  if (shape.inputs.size() == 1) {
    found.push_back({{kReduce}, {kReduce}});
  } else {
    found.push_back({{kReduce, kFull}, {kReduce}});
    if (right_too) {
      found.push_back({{kFull, kReduce}, {kReduce}});
    }
  }
  return found;
}

Signatures product(const OperatorShape& shape) {
  return scaled(shape, true);
}

Signatures quotient(const OperatorShape& shape) {
  return scaled(shape, false);
}

Signatures unary_and_sums(const OperatorShape& shape) {
  Signatures found = unary(shape);
  found.push_back({{kReduce}, {kReduce}});
  return found;
}

Signatures transpose(const OperatorShape& shape) {
  const int rank = rank_of(shape.inputs[0]);
  const int a = from_front(shape.axis, rank);
  const int b = from_front(shape.other_axis, rank);
  Signatures found = unary_and_sums(shape);
  for (int d : {a, b}) {
    found[static_cast<std::size_t>(d)].outputs = {Form::gather(d == a ? b : a)};
  }
  return found;
}

Signatures but_axis(const OperatorShape& shape) {
  const int axis = from_front(shape.axis, rank_of(shape.inputs[0]));
  return all_but(shape, axis, axis + 1);
}

Signatures chunk(const OperatorShape& shape) {
  Signatures found = but_axis(shape);
  found.push_back({{kReduce}, std::vector<Form>(shape.outputs.size(), kReduce)});
  return found;
}

Signatures flatten(const OperatorShape& shape) {
  const int rank = rank_of(shape.inputs[0]);
  return all_but(shape, from_front(shape.axis, rank), rank);
}

Signatures layer_norm(const OperatorShape& shape) {
  const int rank = rank_of(shape.inputs[0]);
  return all_but(shape, rank - shape.normalised, rank);
}

/// x (..., i), W (o, i), bias (o).
Signatures linear(const OperatorShape& shape) {
  const int last = rank_of(shape.inputs[0]) - 1;
  Signatures found = all_but(shape, last, last + 1);
  Signature columns{{kFull, Form::gather(0)}, {Form::gather(last)}};
  if (shape.inputs.size() == 3) {
    columns.inputs.push_back(Form::gather(0));
    found.push_back(std::move(columns));
    return found;
  }
  found.push_back(std::move(columns));
  found.push_back({{Form::gather(last), Form::gather(1)}, {kReduce}});
  found.push_back({{kReduce, kFull}, {kReduce}});
  return found;
}

Signatures sum_of_elements(const OperatorShape& shape) {
  Signatures found = unary_and_sums(shape);
  for (Signature& signature : found) {
    signature.outputs = {kReduce};
  }
  return found;
}

/// Log-probabilities (n, classes, extra...), labels (n, extra...).
Signatures nll_loss(const OperatorShape& shape) {
  Signatures found{{{Form::gather(0), Form::gather(0)}, {kReduce}}};
  for (int i = 0; i + 2 < rank_of(shape.inputs[0]); ++i) {
    found.push_back({{Form::gather(i + 2), Form::gather(i + 1)}, {kReduce}});
  }
  return found;
}

/// q, k, v (length, n, d), in-projection, its bias, out-projection, its bias, or also a mask.
Signatures attention(const OperatorShape& shape) {
  Signatures found{{{Form::gather(1), Form::gather(1), Form::gather(1), kFull, kFull, kFull, kFull},
                    {Form::gather(1), Form::gather(0)}},
                   {{Form::gather(2), Form::gather(2), Form::gather(2), Form::gather(0),
                     Form::gather(0), Form::gather(1), kFull},
                    {kReduce, kReduce}}};
  for (Signature& signature : found) {
    signature.inputs.resize(shape.inputs.size(), kFull);
  }
  return found;
}

/// "0 F > 0": a digit is a sliced dimension, F full, R reduce.
Form form_of(char letter) {
  return letter == 'F' ? kFull : letter == 'R' ? kReduce : Form::gather(letter - '0');
}

Signatures parse(std::string_view text) {
  Signatures found(1);
  bool outputs = false;
  for (const char letter : text) {
    if (letter == ';') {
      found.emplace_back();
      outputs = false;
    } else if (letter == '>') {
      outputs = true;
    } else if (letter != ' ') {
      (outputs ? found.back().outputs : found.back().inputs).push_back(form_of(letter));
    }
  }
  return found;
}

struct Row {
  std::string_view op;
  Signatures (*rule)(const OperatorShape&);  ///< or null: the list
  std::string_view list;
};

constexpr std::array kRows{
    Row{"relu", unary, {}},
    Row{"tanh", unary, {}},
    Row{"sigmoid", unary, {}},
    Row{"sqrt", unary, {}},
    Row{"dropout", unary, {}},
    Row{"contiguous", unary_and_sums, {}},
    Row{"clone", unary_and_sums, {}},
    Row{"add", sum_of_tensors, {}},
    Row{"mul", product, {}},
    Row{"div", quotient, {}},
    Row{"linear", linear, {}},
    Row{"bmm", nullptr, "00>0; 1F>1; F2>2; 21>R; RF>R; FR>R"},
    Row{"matmul", nullptr, "11>1; 2F>2; F3>3; 32>R; RF>R; FR>R"},
    Row{"softmax", but_axis, {}},
    Row{"log_softmax", but_axis, {}},
    Row{"layer_norm", layer_norm, {}},
    Row{"transpose", transpose, {}},
    Row{"chunk", chunk, {}},
    Row{"view", nullptr, "R>R"},
    Row{"flatten", flatten, {}},
    Row{"embedding", nullptr, "0F>0; 1F>1; F1>2"},
    Row{"conv2d", nullptr, "0FF>0; F00>1"},
    Row{"attention", attention, {}},
    Row{"top_1_gating", nullptr, "0F>00"},
    Row{"top_2_gating", nullptr, "0F>00"},
    Row{"regroup", nullptr, "0>0; 2>2"},
    Row{"einsum bsd,bsec->becd", nullptr, "00>0; 11>R; 2F>3; F2>1; F3>2"},
    Row{"einsum edh,becd->bech", nullptr, "01>1; 13>R; 2F>3; F0>0; F2>2"},
    Row{"einsum ehd,bech->becd", nullptr, "01>1; 13>R; 2F>3; F0>0; F2>2"},
    Row{"einsum becd,bsec->bsd", nullptr, "00>0; 12>R; 23>R; 3F>2; F2>1"},
    Row{"append_cls_token", nullptr, "0F>0; 22>2"},
    Row{"get_cls_token", nullptr, "0>0; 2>1"},
    Row{"sum", sum_of_elements, {}},
    Row{"nll_loss", nll_loss, {}},
};

/// A device cannot do its part of these alone, or what it does is not its part.
constexpr std::array kUnsound{
    Row{"attention", nullptr, "222001F>RR; 222001FF>RR"},
    Row{"matmul", nullptr, "11>1; F3>3; 32>R"},
    Row{"einsum becd,bsec->bsd", nullptr, "F2>1"},
};

bool fits(const std::vector<Form>& forms, const std::vector<Shape>& shapes) {
  bool fit = forms.size() == shapes.size();
  for (std::size_t i = 0; fit && i < forms.size(); ++i) {
    fit = !forms[i].is_gather() || forms[i].dimension() < rank_of(shapes[i]);
  }
  return fit;
}

}  // namespace

std::vector<Signature> signatures_of(const OperatorShape& shape) {
  const auto* const row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.op == shape.op; });
  if (row == kRows.end() || shape.inputs.empty() || shape.outputs.empty()) {
    return {};
  }
  Signatures found = row->rule != nullptr ? row->rule(shape) : parse(row->list);
  found.push_back({std::vector<Form>(shape.inputs.size(), kFull),
                   std::vector<Form>(shape.outputs.size(), kFull)});
  const bool fit = std::all_of(found.begin(), found.end(), [&](const Signature& signature) {
    return signature.inputs.size() == shape.inputs.size() && fits(signature.outputs, shape.outputs);
  });
  return fit ? found : Signatures{};
}

std::vector<Signature> load_signatures(int rank) {
  Signatures found{{{}, {Form::replicate()}}};
  for (int d = 0; d < rank; ++d) {
    found.push_back({{}, {Form::gather(d)}});
  }
  return found;
}

std::vector<Signature> input_signatures() {
  return {{{}, {Form::gather(0)}}, {{}, {kFull}}};
}

bool is_sound(std::string_view op, const Signature& signature) {
  return std::none_of(kUnsound.begin(), kUnsound.end(), [&](const Row& row) {
    const Signatures wrong = parse(row.list);
    return row.op == op && std::find(wrong.begin(), wrong.end(), signature) != wrong.end();
  });
}

std::vector<std::string> known_operators() {
  return mapped<std::string>(kRows, &Row::op);
}

}  // namespace orrery::spmd
