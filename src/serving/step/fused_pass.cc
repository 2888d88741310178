// SPDX-License-Identifier: Apache-2.0
/// This part says what `fuse` makes of a pass: the residual stream's uses and their prices.
#include <algorithm>
#include <iterator>
#include <utility>

#include "serving/step/pass_operators.h"
#include "serving/step/pass_table.h"
#include "workload/lower/choose.h"
#include "workload/plan/shard.h"

namespace orrery::step {

bool PassTable::exchanges_shards() const {
  return options_.degrees.dp > 1 && options_.dispatch != plan::MoeDispatch::all_gather &&
         model_.expert.shared_ffn == 0;
}

StreamPrices PassTable::stream_prices(std::int64_t tokens) const {
  const std::int64_t tp = options_.degrees.tp;
  const std::int64_t shard = (tokens + tp - 1) / tp;
  const Bytes shards = Bytes(2) * shard * tp * model_.hidden;
  Part sum;
  prices_.add_all_reduce(sum, tokens);
  return {.all_reduce = sum.time,
          .reduce_scatter = prices_.over_tensor(graph::CollectiveKind::reduce_scatter, shards),
          .all_gather = prices_.over_tensor(graph::CollectiveKind::all_gather, shards),
          .send_rows = prices_.hop(tokens),
          .send_shard = prices_.hop(shard)};
}

PassTable::PassLayer PassTable::layer_of(std::size_t kind, const plan::Plan& plan) const {
  zoo::ModelGraph layer =
      zoo::layer_graph(model_, plan::shape_options(model_, plan), static_cast<int>(kind));
  lower::Choice choice =
      lower::choose(layer.operators, layer.tensors, model_, plan, {.tensor = true}, 1);
  bool routes = false;
  for (std::size_t i = 0; i < layer.operators.size(); ++i) {
    routes = routes || layer.operators[i].expert;
    if (routes) {  // the shared expert's part is summed with the routed ones'
      choice.operators[i].writes = {};
    }
  }
  return {std::move(layer.operators), std::move(choice), routes};
}

StreamUses PassTable::stream_uses(std::int64_t tokens) const {
  const std::int64_t tp = options_.degrees.tp;
  StreamUses uses{.tokens = tokens, .tp = tp, .hops = options_.degrees.pp - 1};
  const auto norms_of = [&](const PassLayer& layer, const plan::Plan& plan) {
    std::vector<zoo::ModelOperator> norms;
    std::ranges::copy_if(layer.operators, std::back_inserter(norms), is_of_stream);
    Part part;
    prices_.add_operators(part, norms, plan);
    return part.time;
  };
  const plan::Plan whole = prices_.plan_for(tokens);
  const plan::Plan shard = prices_.plan_for((tokens + tp - 1) / tp);
  for (std::size_t kind = 0; kind < prices_.kinds().size(); ++kind) {
    const auto layers = prices_.kinds()[kind];
    const PassLayer layer = layer_of(kind, whole);
    const std::int64_t branches = std::ranges::count_if(
        layer.choice.operators, [](const auto& layouts) { return !layouts.writes.empty(); });
    const Time saved = norms_of(layer, whole) - norms_of(layer_of(kind, shard), shard);
    uses.norms += layers * std::max(saved, Time(0));
    const bool sharded = layer.routes && exchanges_shards();
    uses.readers += layers * (branches + (layer.routes && !sharded ? 1 : 0));
    uses.sharded += sharded ? layers : 0;
  }
  return uses;
}

StreamChoice PassTable::stream(std::int64_t tokens) const {
  if (!options_.fuse || options_.degrees.tp == 1 || model_.streams > 1) {
    return {};
  }
  return choose_stream(stream_uses(tokens), stream_prices(tokens));
}

std::vector<FusedPlace> PassTable::fused_places(std::int64_t tokens) const {
  const Degrees& degrees = options_.degrees;
  std::vector<FusedPlace> places = stream(tokens).places;
  const auto refuse = [&](std::string pair, std::string reason) {
    FusedPlace& place = places.emplace_back();
    place.pair = std::move(pair);
    place.reason = std::move(reason);
  };
  if (degrees.tp > 1 && model_.streams > 1) {
    refuse("tp+sp", "between sum and reader its residual streams are mixed");
  }
  if (degrees.ep > 1 && degrees.dp == 1) {
    refuse("tp+ep", "with dp 1 every rank has all tokens: nothing is exchanged");
  } else if (degrees.ep > 1 && options_.dispatch == plan::MoeDispatch::all_gather) {
    refuse("tp+ep", "dispatch allgather: every rank of the experts reads all tokens");
  } else if (degrees.ep > 1 && !exchanges_shards()) {
    refuse("tp+ep", "the shared expert reads all tokens of the group");
  }
  if (degrees.ep > 1 && degrees.pp > 1) {
    refuse("pp+ep", "between stages and experts attention reads the tensor");
  }
  if (degrees.cp > 1) {
    refuse("cp", "the output projection, a product, reads what attention sums");
  }
  return places;
}

}  // namespace orrery::step
