// SPDX-License-Identifier: Apache-2.0
#include "workload/lower/choose.h"

#include <algorithm>

#include "workload/lower/made.h"
#include "workload/plan/layout.h"
#include "workload/plan/lora.h"
#include "workload/plan/quantize.h"
#include "workload/plan/shard.h"

namespace orrery::lower {
namespace {

using graph::ModelTensor;
using graph::Placement;
using Role = graph::OperatorRole;

constexpr int kLossSums = 3;

constexpr Placed kTokenShards{Placement::shard(kTokens), Placement::shard(kTokens)};
constexpr Placed kExpertShards{Placement::shard(kExperts), Placement::shard(kExperts)};
constexpr Placed kHeadShards{Placement::shard(kColumns), Placement::shard(kColumns)};
constexpr Placed kWhole{Placement::replicate(), Placement::replicate()};
/// A tensor that is read whole by work that is cut.
constexpr Placed kShared{Placement::replicate(), Placement::partial()};
/// A tensor that such work makes.
constexpr Placed kSummed{Placement::partial(), Placement::replicate()};

/// Edges tell who writes and who reads the tensors of a block.
class Edges {
 public:
  Edges(const std::vector<zoo::ModelOperator>& operators, const std::vector<ModelTensor>& tensors)
      : operators_(operators), tensors_(tensors), writers_(tensors.size(), kNone) {
    for (std::size_t i = 0; i < operators.size(); ++i) {
      for (const int written : operators[i].writes) {
        writers_[static_cast<std::size_t>(written)] = static_cast<int>(i);
      }
    }
  }

  const ModelTensor& tensor(int number) const { return tensors_[static_cast<std::size_t>(number)]; }
  bool is_parameter(int number) const { return tensor(number).use == ModelTensor::Use::parameter; }
  /// Returns who makes the tensor; null where nothing of the block has made it.
  const zoo::ModelOperator* writer(int number) const {
    const int writer = writers_[static_cast<std::size_t>(number)];
    return writer == kNone ? nullptr : &operators_[static_cast<std::size_t>(writer)];
  }

  bool is_of_expert(int number) const {
    const zoo::ModelOperator* const maker = writer(number);
    return maker != nullptr && maker->expert;
  }

  /// Every rank has made it of the tokens of all.
  bool is_whole(int number) const {
    const zoo::ModelOperator* const maker = writer(number);
    return maker != nullptr && maker->all_tokens;
  }

  Bytes bytes(const graph::TensorList& list) const {
    Bytes sum{0};
    for (const int number : list) {
      sum += is_parameter(number) ? Bytes(0) : tensor(number).bytes();
    }
    return sum;
  }

  template <class Holds>
  bool any_reader(int number, Holds holds) const {
    return std::ranges::any_of(operators_, [&](const zoo::ModelOperator& op) {
      return std::ranges::find(op.reads, number) != op.reads.end() && holds(op);
    });
  }

  /// Returns the one who reads the tensor; null where none or several do.
  const zoo::ModelOperator* only_reader(int number) const {
    const auto reads = [&](const zoo::ModelOperator& op) {
      return std::ranges::find(op.reads, number) != op.reads.end();
    };
    const auto found = std::ranges::find_if(operators_, reads);
    return std::ranges::count_if(operators_, reads) == 1 ? &*found : nullptr;
  }

  /// A later partial sum than this one, of the products cut by rows, is among what `op` adds up.
  bool adds_later_sum(const zoo::ModelOperator& op, int number) const {
    return op.role == Role::residual && std::ranges::any_of(op.reads, [&](int other) {
             const int writer = writers_[static_cast<std::size_t>(other)];
             return writer > writers_[static_cast<std::size_t>(number)] &&
                    makes_sum(operators_[static_cast<std::size_t>(writer)]);
           });
  }

  static bool makes_sum(const zoo::ModelOperator& op) {
    return op.gemm_split == zoo::GemmSplit::row && !op.expert;
  }

 private:
  static constexpr int kNone = -1;

  const std::vector<zoo::ModelOperator>& operators_;
  const std::vector<ModelTensor>& tensors_;
  std::vector<int> writers_;
};

class Chooser {
 public:
  Chooser(const std::vector<zoo::ModelOperator>& own, const std::vector<ModelTensor>& tensors,
          const zoo::Model& model, const plan::Plan& plan)
      : own_(own),
        tensors_(tensors),
        edges_(own, tensors),
        model_(model),
        plan_(plan),
        entered_(tensors.size()) {
    choice_.operators.resize(own.size());
  }

  Choice run(const Cuts& cuts, std::int64_t chunks) {
    mark(split_by(cuts));
    if (cuts.tensor) {
      cut_by_tensor(chunks);
    }
    if (cuts.experts) {
      cut_by_experts();
    }
    if (cuts.context) {
      cut_by_context();
    }
    return std::move(choice_);
  }

 private:
  TensorSplit split_by(const Cuts& cuts) const {
    TensorSplit split;
    if (cuts.tensor) {
      split.tp = plan_.tp;
      split.sequence = plan_.sequence_parallel && plan_.tp > 1;
    }
    if (cuts.experts && model_.experts > 0) {
      split.etp = plan::expert_tensor_parallel(plan_);
      split.expert_rows = plan::expert_load(plan_, model_.experts) *
                          static_cast<double>(split.etp) / static_cast<double>(plan_.tp);
    }
    return split;
  }

  void mark(const TensorSplit& split) {
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const zoo::ModelOperator& op = own_[i];
      OperatorLayouts& layouts = choice_.operators[i];
      const bool takes_columns = op.gemm_split == zoo::GemmSplit::column || op.all_tokens;
      layouts.first_reader = takes_columns && !op.expert && !edges_.is_whole(op.reads.front()) &&
                             enters(op.reads.front());
      layouts.after_norm =
          layouts.first_reader && i > 0 && own_[i - 1].kind == graph::OperatorKind::norm;
      const zoo::ModelOperator* const maker = edges_.writer(op.reads.front());
      layouts.input_converted = maker != nullptr && converts(*maker, op);
      layouts.gradient_converted =
          !op.writes.empty() && edges_.any_reader(op.writes.front(), [&](const auto& reader) {
            return converts(reader, op);
          });
      if (op.role == Role::activation) {
        narrow(op, layouts);
      }
      layouts.result = made_by(op, tensors_, split, Direction::forward);
      layouts.gradient = made_by(op, tensors_, split, Direction::gradient);
    }
  }

  /// Returns whether the kernel of `neighbour` writes what the product of `op` reads in the
  /// product's type: GEMMs of fused experts do for each other, and activations with
  /// fused_conversions where no maximum of the tensor has to be known first.
  bool converts(const zoo::ModelOperator& neighbour, const zoo::ModelOperator& op) const {
    const bool experts =
        plan_.expert_gemms == plan::ExpertGemms::fused && op.expert && neighbour.expert;
    const bool activates = plan_.fused_conversions && neighbour.role == Role::activation;
    return experts || (activates && !plan::recipe_of(plan_.quantization).reads_maximum);
  }

  /// Share of what an activation would write of an operand in 16 bits that it does not write, since
  /// it writes the copies that the product's passes read.
  double unwritten(const zoo::ModelOperator& op, const zoo::ModelOperator* product) const {
    if (product == nullptr || !converts(op, *product) || !plan::is_quantized(plan_, *product)) {
      return 0;
    }
    const double copies = plan::is_trained(*product) ? 2 : 1;
    const double plain = static_cast<double>(graph::bits_of(plan_.compute_type)) / 8;
    return std::max(0.0, 1 - copies * plan::recipe_of(plan_.quantization).element_bytes() / plain);
  }

  /// Forward the kernel reads x and writes y, backward it reads both's sizes and writes x's.
  void narrow(const zoo::ModelOperator& op, OperatorLayouts& layouts) const {
    const auto x = static_cast<double>(edges_.tensor(op.reads.front()).bytes().value());
    const auto y = static_cast<double>(edges_.tensor(op.writes.front()).bytes().value());
    layouts.narrower_result = unwritten(op, edges_.only_reader(op.writes.front())) * y / (x + y);
    layouts.narrower_gradient = unwritten(op, edges_.writer(op.reads.front())) * x / (2 * x + y);
  }

  /// Returns whether nobody before has taken the tensor in.
  bool enters(int tensor) {
    const bool first = !entered_[static_cast<std::size_t>(tensor)];
    entered_[static_cast<std::size_t>(tensor)] = true;
    return first;
  }

  std::size_t add(const CutAxis& axis) {
    choice_.axes.push_back(axis);
    return choice_.axes.size() - 1;
  }

  void cut_by_tensor(std::int64_t chunks) {
    const std::size_t tp = add({.axis = plan::Axis::tp,
                                .size = plan_.tp,
                                .counts_all = true,
                                .keeps_shards = true,
                                .issue = plan_.overlap_tp ? Issue::concurrent : Issue::waited,
                                .chunks = chunks,
                                .copies_chunks = chunks == plan_.tp && plan_.sequence_parallel &&
                                                 plan::is_pytorch(plan_)});
    const Placed stream = plan_.sequence_parallel ? kTokenShards : kWhole;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const zoo::ModelOperator& op = own_[i];
      OperatorLayouts& layouts = choice_.operators[i];
      if (layouts.first_reader) {
        layouts.reads = {edges_.bytes(op.reads), {{tp, stream, kShared}}};
      }
      if (Edges::makes_sum(op) && is_summed(op)) {
        layouts.writes = {edges_.bytes(op.writes), {{tp, stream, kSummed}}};
      }
      if (op.kind == graph::OperatorKind::loss && edges_.tensor(op.reads.front()).is_divided()) {
        const std::int64_t rows = edges_.tensor(op.reads.front()).rows();
        layouts.sums = {tp, kLossSums, graph::bytes_of(graph::DataType::fp32, rows)};
      }
    }
  }

  /// Returns whether the result is summed over the ranks before anybody reads it.
  bool is_summed(const zoo::ModelOperator& op) const {
    const int result = op.writes.front();
    return !edges_.any_reader(result, [&](const zoo::ModelOperator& reader) {
      return reader.role == Role::adapter_up || edges_.adds_later_sum(reader, result);
    });
  }

  void cut_by_experts() {
    if (std::ranges::none_of(own_, [](const auto& op) { return op.expert; })) {
      return;
    }
    const bool gathers = plan_.moe_dispatch == plan::MoeDispatch::all_gather;
    const bool off = plan_.overlap_ep == plan::OverlapExperts::off;
    CutAxis axis{.axis = plan::Axis::ep,
                 .size = plan_.ep,
                 .exchanges_rows = true,
                 .issue = off ? Issue::last : Issue::concurrent};
    if (plan_.moe_dispatch == plan::MoeDispatch::hierarchical) {
      axis.route = zoo::token_route(model_);
    }
    const std::size_t ep = add(axis);
    axis.axis = plan::Axis::etp;
    axis.size = plan::expert_tensor_parallel(plan_);
    axis.route.reset();
    const std::size_t etp = add(axis);
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const zoo::ModelOperator& op = own_[i];
      if (const graph::TensorList rows = received_rows(op); !rows.empty()) {
        choice_.operators[i].reads = {
            sent_bytes(op, rows),
            {{ep, kTokenShards, gathers ? kShared : kExpertShards}, {etp, kTokenShards, kShared}}};
      }
      if (const graph::TensorList rows = returned_rows(op); !rows.empty()) {
        choice_.operators[i].writes = {
            sent_bytes(op, rows),
            {{ep, kTokenShards, gathers ? kSummed : kExpertShards}, {etp, kTokenShards, kSummed}}};
      }
    }
    choice_.shared_concurrent = plan_.overlap_ep == plan::OverlapExperts::shared;
    choice_.shared_in_flight = plan_.tp > 1;
  }

  /// Rows that come to an operator of the experts, the first that reads them, from none of them.
  graph::TensorList received_rows(const zoo::ModelOperator& op) {
    graph::TensorList rows;
    for (const int read : op.expert ? op.reads : graph::TensorList()) {
      if (!edges_.is_parameter(read) && !edges_.is_of_expert(read) && enters(read)) {
        rows.add(read);
      }
    }
    return rows;
  }
  graph::TensorList returned_rows(const zoo::ModelOperator& op) const {
    graph::TensorList rows;
    for (const int written : op.expert ? op.writes : graph::TensorList()) {
      if (edges_.any_reader(written, [](const auto& reader) { return !reader.expert; })) {
        rows.add(written);
      }
    }
    return rows;
  }

  /// Returns the bytes of a rank's rows; where all are gathered, of its tokens, each once, whatever
  /// the load of the experts.
  Bytes sent_bytes(const zoo::ModelOperator& op, const graph::TensorList& rows) const {
    const Bytes own = edges_.bytes(rows) * rows_of_rank(op.experts);
    const auto copies = static_cast<double>(zoo::token_route(model_).copies);
    return plan_.moe_dispatch == plan::MoeDispatch::all_gather
               ? own / (plan::expert_load(plan_, op.experts) * copies)
               : own;
  }

  /// Returns the share of all rows that a rank of tp sends, as the busiest one.
  double rows_of_rank(std::int64_t experts) const {
    return plan::expert_load(plan_, experts) / static_cast<double>(plan_.tp);
  }

  void cut_by_context() {
    const bool gathers = plan_.cp_exchange == plan::ContextExchange::all_gather;
    const bool rings = plan_.cp_exchange == plan::ContextExchange::p2p;
    const bool both = plan_.cp_exchange == plan::ContextExchange::a2a_p2p;
    const std::int64_t heads = both ? plan_.cp_a2a : gathers || rings ? 1 : plan_.cp;
    const std::int64_t ring = gathers ? 1 : plan_.cp / heads;
    const auto part = [&](plan::Axis axis, std::int64_t size) {
      return add({.axis = both && size < plan_.cp ? axis : plan::Axis::cp,
                  .size = size,
                  .keeps_shards = gathers});
    };
    const std::size_t exchange = part(plan::Axis::cp_a2a, gathers ? plan_.cp : heads);
    const std::size_t keys = part(plan::Axis::cp_ring, ring);
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const zoo::ModelOperator& op = own_[i];
      if (op.key_value == Bytes(0)) {
        continue;
      }
      OperatorLayouts& layouts = choice_.operators[i];
      if (gathers) {
        layouts.reads = {op.key_value, {{exchange, kTokenShards, kShared}}};
        continue;
      }
      layouts.reads = {op.query + op.key_value, {{exchange, kTokenShards, kHeadShards}}};
      layouts.writes = {op.query, {{exchange, kTokenShards, kHeadShards}}};
      layouts.ring = {.axis = keys, .size = ring, .heads = heads, .bytes = op.key_value};
    }
  }

  const std::vector<zoo::ModelOperator>& own_;
  const std::vector<ModelTensor>& tensors_;
  Edges edges_;
  const zoo::Model& model_;
  const plan::Plan& plan_;
  std::vector<bool> entered_;
  Choice choice_;
};

}  // namespace

Choice choose(const std::vector<zoo::ModelOperator>& own, const std::vector<ModelTensor>& tensors,
              const zoo::Model& model, const plan::Plan& plan, const Cuts& cuts,
              std::int64_t chunks) {
  return Chooser(own, tensors, model, plan).run(cuts, chunks);
}

}  // namespace orrery::lower
