// SPDX-License-Identifier: Apache-2.0
#include "workload/lower/lower_block.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "workload/lower/attention_ring.h"
#include "workload/plan/quantize.h"

namespace orrery::lower {
namespace {

using Conversions = std::vector<Conversion>;

/// One pass over a block.
class Passage {
 public:
  Passage(const std::vector<zoo::ModelOperator>& own, const Choice& choice, const Kernels& kernels,
          plan::StepPhase phase)
      : own_(own), choice_(choice), kernels_(kernels), phase_(phase) {}

  std::vector<Step> run() {
    if (choice_.shared_concurrent) {
      for_each(true);
      shared_ = std::exchange(steps_, {});
    }
    for_each(false);
    return std::move(steps_);
  }

 private:
  bool is_backward() const { return phase_ == plan::StepPhase::backward; }

  bool is_set_aside(const zoo::ModelOperator& op) const {
    return choice_.shared_concurrent && op.branch == graph::Branch::shared_expert &&
           op.depth == 0 && op.role != graph::OperatorRole::shared_sum;
  }

  /// The operators that run beside an exchange, or the others.
  void for_each(bool set_aside) {
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const std::size_t number = is_backward() ? own_.size() - 1 - i : i;
      if (is_set_aside(own_[number]) == set_aside) {
        lower(number);
      }
    }
  }

  void lower(std::size_t number) {
    const OperatorLayouts& layouts = choice_.operators[number];
    if (number == ahead_) {
      return;
    }
    const std::optional<std::size_t> product = product_ahead(number);
    if (product) {
      ahead_ = *product;
      lower_after(layouts.reads, *product);
    }
    lower_after(product ? Border() : is_backward() ? layouts.writes : layouts.reads, number);
  }

  /// Returns the frozen product that takes in what this operator, the first of its adapter, reads
  /// in pieces: none where they read it in other types. The adapter follows, with all of it.
  std::optional<std::size_t> product_ahead(std::size_t number) const {
    const auto is_adapter = [&](std::size_t i) {
      using enum graph::OperatorRole;
      const graph::OperatorRole role = own_[i].role;
      return role == adapter_down || role == adapter_join || role == adapter_up ||
             role == adapter_sum;
    };
    const Border& reads = choice_.operators[number].reads;
    if (is_backward() || reads.empty() || axis_of(reads).chunks == 1 || !is_adapter(number)) {
      return std::nullopt;
    }
    std::size_t product = number;
    while (product < own_.size() && is_adapter(product)) {
      ++product;
    }
    const bool alike = product < own_.size() && kernels_.on_wire(own_[product], reads.bytes) ==
                                                    kernels_.on_wire(own_[number], reads.bytes);
    return alike ? std::optional(product) : std::nullopt;
  }

  /// Lowers an operator that is entered over the border `first`.
  void lower_after(const Border& first, std::size_t number) {
    source_ = static_cast<int>(number);
    const zoo::ModelOperator& op = own_[number];
    const OperatorLayouts& layouts = choice_.operators[number];
    const Border& last = is_backward() ? layouts.reads : layouts.writes;
    const Conversions in =
        conversions(choice_, first, is_backward() ? Crossing::gradient_in : Crossing::value_in);
    const Conversions out =
        conversions(choice_, last, is_backward() ? Crossing::gradient_out : Crossing::value_out);
    const bool exchanges = exchanges_rows(first);
    const std::vector<Step> kernels =
        kernels_of(op, layouts, exchanges ? 1 : gathered(choice_, in));
    if (kernels.empty()) {
      return;
    }
    if (exchanges) {
      to_experts(in);
    }
    const bool ends_later = !last.empty() && axis_of(last).issue == Issue::last;
    for (const Step& step : kernels) {
      if (step.part != (is_backward() ? Part::input_gradient : Part::forward)) {
        steps_.push_back(step);
        if (step.part == Part::weight_gradient && keeps_shards(layouts)) {
          steps_.back().reads = Value::input;
        }
        continue;
      }
      sum_inside(layouts.sums);
      if (is_backward() && kernels_.reads_input(op)) {
        convert_kept(op, layouts);
      }
      work(step, exchanges ? Conversions() : in, ends_later ? Conversions() : out);
      if (!ends_later) {
        end(last);
      }
    }
    if (ends_later) {
      append(out);
      end(last);
    }
  }

  void sum_inside(const InnerSum& sums) {
    const bool several = sums.count > 0 && choice_.axes[sums.axis].size > 1;
    for (int i = 0; several && !is_backward() && i < sums.count; ++i) {
      push({sums.axis, graph::CollectiveKind::all_reduce, sums.bytes});
    }
  }

  std::vector<Step> kernels_of(const zoo::ModelOperator& op, const OperatorLayouts& layouts,
                               std::int64_t shards) const {
    std::vector<Step> steps;
    kernels_.append(op, layouts, phase_, shards, steps);
    for (Step& step : steps) {
      step.source = source_;
      if (step.part == Part::forward) {
        step.made = layouts.result;
      } else if (step.part == Part::input_gradient) {
        step.made = layouts.gradient;
      }
    }
    return steps;
  }

  const CutAxis& axis_of(const Border& border) const {
    return choice_.axes[border.axes.front().axis];
  }
  bool exchanges_rows(const Border& border) const {
    return !border.empty() && axis_of(border).exchanges_rows;
  }
  Conversions kept(const OperatorLayouts& layouts) const {
    const bool shards = !layouts.reads.empty() && axis_of(layouts.reads).keeps_shards;
    return shards ? conversions(choice_, layouts.reads, Crossing::value_in) : Conversions();
  }
  bool keeps_shards(const OperatorLayouts& layouts) const {
    return is_backward() && !kept(layouts).empty();
  }

  /// Gathers the shards that are kept of the input.
  void convert_kept(const zoo::ModelOperator& op, const OperatorLayouts& layouts) {
    for (Conversion step : kept(layouts)) {
      step.bytes = kernels_.on_wire(op, step.bytes);
      push(step);
      if (op.has_weight) {
        steps_.back().reads = Value::none;
        steps_.back().writes = Value::input;
        hold(axis_of(layouts.reads), Value::input);
      }
    }
  }

  /// The step between conversions of its operands and of its result.
  void work(const Step& step, const Conversions& in, const Conversions& out) {
    const zoo::ModelOperator& op = own_[static_cast<std::size_t>(source_)];
    Conversions before = in;
    for (Conversion& one : before) {
      one.bytes = kernels_.on_wire(op, one.bytes);
    }
    const OperatorLayouts& layouts = choice_.operators[static_cast<std::size_t>(source_)];
    if (before.size() == 1 && pieces_of(step, before.front()) > 1) {
      gather_in_pieces(step, before.front());
      append(out);
    } else if (!is_backward() && out.size() == 1 && pieces_of(step, out.front()) > 1) {
      append(before);
      sum_in_pieces(step, out.front());
    } else {
      append(before);
      if (layouts.ring.size * layouts.ring.heads > 1) {
        append_ring(step, layouts.ring, choice_.axes[layouts.ring.axis].axis, phase_, steps_);
      } else {
        steps_.push_back(step);
      }
      append(out);
    }
    if (is_backward() && !out.empty()) {
      hold(choice_.axes[out.back().axis], Value::flow);
    }
  }

  void gather_in_pieces(const Step& product, Conversion gather) {
    const std::int64_t pieces = pieces_of(product, gather);
    if (choice_.axes[gather.axis].copies_chunks && pieces == choice_.axes[gather.axis].size) {
      copy_in(product, gather, pieces);
      return;
    }
    gather.bytes = gather.bytes / pieces;
    for (std::int64_t i = 0; i <= pieces; ++i) {
      if (i < pieces) {
        push(gather);
        steps_.back().writes = arrival(i);
      }
      if (i > 0) {
        steps_.push_back(piece(product, i - 1, pieces));
        steps_.back().reads = arrival(i - 1);
        steps_.back().writes = i == pieces ? product.writes : Value::none;
      }
    }
  }

  void sum_in_pieces(const Step& product, Conversion sum) {
    const std::int64_t pieces = pieces_of(product, sum);
    if (choice_.axes[sum.axis].copies_chunks && pieces == choice_.axes[sum.axis].size) {
      copy_out(product, sum, pieces);
      return;
    }
    sum.bytes = sum.bytes / pieces;
    for (std::int64_t i = 0; i < pieces; ++i) {
      steps_.push_back(piece(product, i, pieces));
      steps_.back().writes = Value::none;
      push(sum);
      steps_.back().reads = Value::none;
      steps_.back().writes = i + 1 == pieces ? Value::flow : Value::none;
    }
  }

  /// Puts the rank's shard into a buffer that others read, and copies theirs one by one beside the
  /// pieces of the product, whose own comes first.
  void copy_in(const Step& product, const Conversion& gather, std::int64_t ranks) {
    stream("tp_shard_copy", 2 * gather.bytes / ranks);
    steps_.back().writes = Value::none;
    for (std::int64_t i = 0; i < ranks; ++i) {
      if (i + 1 < ranks) {
        push_copy(gather, ranks);
        steps_.back().reads = Value::none;
        steps_.back().writes = arrival(i + 1);
      }
      steps_.push_back(piece(product, i, ranks));
      steps_.back().reads = i == 0 ? product.reads : arrival(i);
      steps_.back().writes = i + 1 == ranks ? product.writes : Value::none;
    }
  }

  /// Copies the pieces of the result that are other ranks' beside the next ones, the rank's own
  /// being the last, and adds up what it has of all of them.
  void copy_out(const Step& product, const Conversion& sum, std::int64_t ranks) {
    for (std::int64_t i = 0; i < ranks; ++i) {
      const bool last = i + 2 == ranks;
      steps_.push_back(piece(product, i, ranks));
      steps_.back().reads = i + 1 == ranks ? Value::none : product.reads;
      steps_.back().writes = last ? product.writes : Value::none;
      if (i + 1 < ranks) {
        push_copy(sum, ranks);
        steps_.back().reads = last ? Value::flow : Value::none;
        steps_.back().writes = last ? Value::flow : Value::none;
      }
    }
    stream("tp_partial_sum", sum.bytes + sum.bytes / ranks);
  }

  void push_copy(const Conversion& whole, std::int64_t ranks) {
    push({whole.axis, graph::CollectiveKind::send_recv, whole.bytes / ranks});
    steps_.back().node.name = "tp_copy";
    steps_.back().node.by_engine = true;
  }

  void stream(const char* name, Bytes bytes) {
    if (bytes == Bytes(0)) {
      return;
    }
    steps_.push_back(
        compute_step({.name = name, .type = kernels_.result_type(), .bytes = bytes}, phase_));
    steps_.back().source = source_;
  }

  /// Rows i m / n to (i+1) m / n of a product of m rows.
  Step piece(Step product, std::int64_t i, std::int64_t n) const {
    graph::Operator& op = product.node.operators.front();
    const std::int64_t rows = op.gemm.m;
    op.gemm.m = rows * (i + 1) / n - rows * i / n;
    op.flops = graph::flops_of(op.gemm);
    op.bytes = plan::gemm_bytes(op.gemm, op.type, kernels_.result_type());
    return product;
  }

  std::int64_t pieces_of(const Step& step, const Conversion& beside) const {
    const graph::Operator& op = step.node.operators.front();
    const bool whole = own_[static_cast<std::size_t>(source_)].weights == zoo::Weights::adapter;
    return op.kind == graph::OperatorKind::gemm && !whole
               ? std::min(choice_.axes[beside.axis].chunks, op.gemm.m)
               : 1;
  }

  void to_experts(const Conversions& exchange) {
    append(exchange);
    run_shared(first_half());
  }

  void end(const Border& border) {
    if (!exchanges_rows(border)) {
      return;
    }
    run_shared(shared_.size());
    if (choice_.shared_concurrent && choice_.shared_in_flight) {
      steps_.push_back(wait_step("shared_expert_done", Value::beside, phase_));
      steps_.back().source = source_;
    }
  }

  /// Steps of the shared expert that run beside the first exchange: up to the second product.
  std::size_t first_half() const {
    const auto other = std::ranges::find_if(shared_, [&](const Step& step) {
      return step.source != shared_.front().source &&
             own_[static_cast<std::size_t>(step.source)].has_weight;
    });
    return static_cast<std::size_t>(other - shared_.begin());
  }

  /// Issues the next steps of the shared expert, which the exchanges do not wait for.
  void run_shared(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Step& step = shared_[i];
      step.writes = step.writes == Value::flow ? Value::beside : step.writes;
      step.reads = step.reads == Value::flow ? Value::beside : step.reads;
      steps_.push_back(std::move(step));
    }
    shared_.erase(shared_.begin(), shared_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  /// Kernels wait for the collective just issued, where its axis says so.
  void hold(const CutAxis& axis, Value value) {
    if (axis.issue == Issue::waited) {
      steps_.push_back(
          wait_step(std::string(name_of(axis.axis)) + "_done", value, plan::StepPhase::backward));
      steps_.back().source = source_;
    }
  }

  void append(const Conversions& steps) {
    for (const Conversion& step : steps) {
      stream("pack_columns", step.bytes * step.packing.before);
      push(step);
      stream("unpack_columns", step.bytes * step.packing.after);
    }
  }

  void push(const Conversion& conversion) {
    const CutAxis& axis = choice_.axes[conversion.axis];
    steps_.push_back(collective_step(axis.axis, conversion.kind, conversion.bytes, phase_));
    steps_.back().source = source_;
    if (axis.route && conversion.kind == graph::CollectiveKind::all_to_all) {
      steps_.back().node.route = *axis.route;
    }
  }

  const std::vector<zoo::ModelOperator>& own_;
  const Choice& choice_;
  const Kernels& kernels_;
  plan::StepPhase phase_;
  int source_ = -1;
  std::optional<std::size_t> ahead_;  ///< a product that has come before its adapter
  std::vector<Step> steps_;
  std::vector<Step> shared_;  ///< steps of the shared expert that are still to run
};

}  // namespace

std::vector<Step> lower_forward(const std::vector<zoo::ModelOperator>& own, const Choice& choice,
                                const Kernels& kernels) {
  return Passage(own, choice, kernels, plan::StepPhase::forward).run();
}

BlockSteps lower_block(const std::vector<zoo::ModelOperator>& own, const Choice& choice,
                       const Kernels& kernels) {
  return {.forward = lower_forward(own, choice, kernels),
          .recompute = {},
          .backward = Passage(own, choice, kernels, plan::StepPhase::backward).run()};
}

}  // namespace orrery::lower
