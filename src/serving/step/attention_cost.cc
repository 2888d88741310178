// SPDX-License-Identifier: Apache-2.0
#include "serving/step/attention_cost.h"

#include <algorithm>
#include <cmath>

#include "base/remembered.h"
#include "machine/compute/compute_model.h"
#include "machine/compute/decode_tiles.h"
#include "machine/compute/packed_heads.h"

namespace orrery::step {
namespace {

/// Keys that a prompt's queries see, summed: all before, themselves and half of one another; of a
/// window at most that many; of an encoder (not causal) all.
double visible_keys(const Prompt& prompt, std::int64_t window, bool causal = true) {
  const auto queries = static_cast<double>(prompt.queries);
  const auto context = static_cast<double>(prompt.context);
  if (!causal) {
    return queries * (context + queries);
  }
  if (window == 0) {
    return queries * context + queries * (queries + 1) / 2;
  }
  const auto most = static_cast<double>(window);
  const double growing = std::clamp(most - context, 0.0, queries);  // that see fewer
  return growing * context + growing * (growing + 1) / 2 + (queries - growing) * most;
}

}  // namespace

AttentionCost::AttentionCost(const PassPrices& prices)
    : prices_(prices),
      model_(prices.model()),
      machine_(prices.machine()),
      options_(prices.options()),
      heads_(model_.heads / options_.degrees.tp),
      index_(model_.compressed.index_heads > 0
                 ? zoo::SparseIndex{model_.compressed.index_heads, model_.compressed.index_dim, 0}
                 : model_.index) {
  for (std::size_t i = 0; i < prices.kinds().size(); ++i) {
    const zoo::LayerKind kind = prices.kind_of(i);
    if (kind.mixer == zoo::MixerKind::none || prices.is_recurrent(i)) {
      continue;
    }
    // A chunk is seen half on the mean: as a window of half its length.
    const std::int64_t window = kind.window > 0 ? kind.window : kind.chunk / 2;
    auto found = std::find(windows_.begin(), windows_.end(), window);
    if (found == windows_.end()) {
      found = windows_.insert(windows_.end(), window);
    }
    attention_.push_back({.kind = kind,
                          .layers = prices.kinds()[i],
                          .head_dim = zoo::head_dim_of(model_, kind),
                          .value = zoo::value_dim_of(model_, kind),
                          .kv_heads = prices.kv_heads(kind),
                          .window = window,
                          .kept = kind.window > 0 ? kind.window : kind.chunk,
                          .visible = static_cast<std::size_t>(found - windows_.begin()),
                          .measured = prices.measures_attention(i)});
  }
  decode_.type = prices.wide_type();
}

void AttentionCost::add(const StepShape& shape, Part& total) {
  for (const AttentionKind& kind : attention_) {
    total.add(attend(kind, shape) * kind.layers, kind.layers);
  }
}

std::int64_t AttentionCost::rows_of(const StepShape& shape) const {
  const std::int64_t cp = options_.degrees.cp;
  if (cp == 1) {
    return shape.tokens;
  }
  std::int64_t rows = shape.tokens;
  for (const Prompt& prompt : shape.prompts) {
    rows += (prompt.queries + cp - 1) / cp - prompt.queries;
  }
  return rows;
}

Time AttentionCost::measured_attention(const StepShape& shape, double decode_keys) const {
  AttentionShape launch;
  if (shape.decodes > 0) {
    launch.decodes = static_cast<double>(shape.decodes);
    launch.keys = decode_keys / launch.decodes;
  }
  const auto largest =
      std::max_element(shape.prompts.begin(), shape.prompts.end(),
                       [](const Prompt& a, const Prompt& b) { return a.queries < b.queries; });
  Time total{0};
  for (auto prompt = shape.prompts.begin(); prompt != shape.prompts.end(); ++prompt) {
    const auto queries = static_cast<double>(prompt->queries);
    const auto context = static_cast<double>(prompt->context);
    if (prompt == largest) {
      launch.queries = queries;
      launch.context = context;
    } else {
      total += prices_.measured()->further_prompt(queries, context);
    }
  }
  return total + prices_.measured()->attention(launch);
}

namespace {

/// PromptWork is what the prompts of a launch attend with.
struct PromptWork {
  double pairs = 0;  ///< of a query and a key that it sees
  double keys = 0;   ///< that are read
  std::int64_t queries = 0;
};

PromptWork work_of(const std::vector<Prompt>& prompts, std::int64_t window, bool causal = true) {
  PromptWork work;
  for (const Prompt& prompt : prompts) {
    const std::int64_t all = prompt.context + prompt.queries;
    work.pairs += visible_keys(prompt, window, causal);
    work.keys += static_cast<double>(window > 0 ? std::min(all, window + prompt.queries) : all);
    work.queries += prompt.queries;
  }
  return work;
}

/// Returns an encoder's sequences, each cut into the fewest windows that do not overlap, of one
/// length.
std::vector<Prompt> windows_of(const std::vector<Prompt>& sequences, std::int64_t window) {
  std::vector<Prompt> windows;
  for (const Prompt& sequence : sequences) {
    const std::int64_t count = (sequence.queries + window - 1) / window;
    windows.insert(windows.end(), static_cast<std::size_t>(count),
                   {.queries = (sequence.queries + count - 1) / count, .context = 0});
  }
  return windows;
}

/// Returns one launch of several prompts: each takes its part of a launch of as many of its length,
/// `alike(prompt, count)`.
template <class AlikeLaunch>
Timed of_prompts(const std::vector<Prompt>& prompts, AlikeLaunch alike) {
  const bool equal = std::all_of(prompts.begin(), prompts.end(), [&](const Prompt& prompt) {
    return prompt.queries == prompts.front().queries && prompt.context == prompts.front().context;
  });
  const auto count = static_cast<std::int64_t>(prompts.size());
  if (equal) {
    return alike(prompts.front(), count);
  }
  Timed total;
  for (const Prompt& prompt : prompts) {
    const Timed launch = alike(prompt, count);
    total += {launch.time / count, launch.load * (1 / static_cast<double>(count))};
  }
  return total;
}

}  // namespace

Timed AttentionCost::attend(const AttentionKind& kind, const StepShape& shape) {
  const double decode_keys = shape.decodes > 0 ? shape.visible[kind.visible] : 0;
  if (kind.is(zoo::MixerKind::latent_attention)) {
    return attend_latent(kind, shape, decode_keys);
  }
  if (kind.is(zoo::MixerKind::compressed_attention)) {
    return attend_compressed(kind, shape);
  }
  if (kind.measured && shape.queries == 1) {
    return Timed(measured_attention(shape, decode_keys));
  }
  if (!kind.kind.causal && kind.window > 0) {
    const StepShape cut{.prompts = windows_of(shape.prompts, kind.window), .visible = {}};
    return attend_in_one_launch(kind, cut, decode_keys);
  }
  return attend_in_one_launch(kind, shape, decode_keys);
}

Timed AttentionCost::attend_in_one_launch(const AttentionKind& kind, const StepShape& shape,
                                          double decode_keys) {
  const auto width = static_cast<double>(kind.head_dim + kind.value);  // of a key and its value
  const double kv_bytes = width * static_cast<double>(kind.kv_heads) *
                          static_cast<double>(graph::bits_of(options_.precision.kv)) / 8;
  const double row_bytes =
      2 * width * static_cast<double>(heads_) + 4 * static_cast<double>(heads_);
  graph::Operator& op = decode_;
  op.kind = graph::OperatorKind::attention;
  const auto run = [&](double pairs, double keys, std::int64_t sequences, std::int64_t queries) {
    const auto rows = static_cast<double>(sequences * queries);
    op.flops = Flops(2 * width * static_cast<double>(heads_) * pairs);
    op.bytes = Bytes(std::llround(kv_bytes * keys + row_bytes * rows));
    const bool packs = keys > rows;  // prompts without keys before them have tiles of each head
    const std::int64_t packed = packs ? compute::packed_heads(heads_ / kind.kv_heads, queries) : 1;
    op.key_heads = sequences * kind.kv_heads;
    op.gemm = {.batch = sequences * heads_ / packed,
               .m = queries * packed,
               .n = std::max<std::int64_t>(1, std::llround(keys / static_cast<double>(sequences))),
               .k = kind.head_dim};
    return prices_.timed(op);
  };
  const auto cp = static_cast<double>(options_.degrees.cp);
  Timed prompts;
  Timed further;  // passes of prompts
  if (!shape.prompts.empty()) {
    const bool causal = kind.kind.causal;
    const auto [pairs, keys, queries] = work_of(shape.prompts, kind.window, causal);
    const auto sequences = static_cast<std::int64_t>(shape.prompts.size());
    const std::int64_t parts = sequences * options_.degrees.cp;
    prompts = of_prompts(shape.prompts, [&](const Prompt& prompt, std::int64_t count) {
      const PromptWork work = work_of({prompt}, kind.window, causal);
      const auto times = static_cast<double>(count);
      const std::int64_t rows = (prompt.queries + options_.degrees.cp - 1) / options_.degrees.cp;
      return run(times * work.pairs / (cp * cp), times * work.keys / cp, count, rows);
    });
    further = further_passes(kind, prompts, Bytes(std::llround(kv_bytes * keys / cp)),
                             sequences * ((queries + parts - 1) / parts));
  }
  Timed decodes;
  if (shape.decodes > 0) {
    decodes = run(decode_keys / cp * static_cast<double>(shape.queries), decode_keys / cp,
                  shape.decodes, shape.queries);
    decodes +=
        Timed(uneven(kind, shape, kv_bytes, {.decodes = decodes.time, .prompts = prompts.time}) +
              merge(kind, shape.decodes * shape.queries));
  }
  // One launch serves both.
  const Time launch = shape.decodes > 0 ? machine_.device.kernels.attention_launch : Time(0);
  Timed all = (kind.measured ? prices_.kernel(prices_.cache_write_kernel(kind.kind, rows_of(shape)))
                             : Timed()) +
              decodes + prompts + further;
  all.time -= std::min(prompts.time, launch);
  return all;
}

Time AttentionCost::uneven(const AttentionKind& kind, const StepShape& shape, double kv_bytes,
                           const Launches& alone) {
  if (!options_.one_launch || options_.degrees.cp > 1) {
    return Time(0);
  }
  const double keys = shape.visible[kind.visible];
  const auto most = static_cast<double>(kind.window);
  const double mean = keys / static_cast<double>(shape.decodes);
  const double seen = std::max(mean, shape.longest);
  compute::DecodeTiles tiles{
      .sequences = shape.decodes,
      .heads = model_.heads / options_.degrees.tp,
      .kv_heads = kind.kv_heads,
      .head_dim = kind.head_dim,
      .type = decode_.type,
      .keys = keys,
      .longest = kind.window > 0 ? std::min(seen, most) : seen,
      .windowed = kind.window > 0,
      .kv_head = Bytes(std::llround(kv_bytes / static_cast<double>(kind.kv_heads) * keys))};
  const bool mixed = !shape.prompts.empty() || shape.queries > 1;
  if (!mixed) {
    cut_keys(tiles);
  }
  const auto times = compute::decode_tiles(tiles, machine_.device);
  if (!times) {
    return Time(0);
  }
  const Time launch = machine_.device.kernels.attention_launch;
  const Time least = launch + times->longest - alone.decodes;  // more than decodes alone
  if (mixed) {
    return std::max({launch + times->all + times->uneven - alone.decodes,
                     least - (alone.prompts - std::min(alone.prompts, launch)), Time(0)});
  }
  return std::max({times->uneven, least, Time(0)});
}

void AttentionCost::cut_keys(compute::DecodeTiles& tiles) {
  constexpr std::int64_t kStep = 64;  // of contexts, no more than a block: most steps see the last
  const bool captured = !options_.captures.empty() && tiles.sequences <= options_.captures.back();
  const bool whole = options_.graph_context > 0 && captured;
  compute::DecodeTiles made = tiles;
  made.sequences = whole ? padded(options_, tiles.sequences) : tiles.sequences;
  const auto longest = static_cast<std::int64_t>(std::ceil(tiles.longest));
  const std::int64_t most = std::max(longest, whole ? options_.graph_context : 0);
  const std::int64_t steps = (most + kStep - 1) / kStep;
  if (tiles.windowed) {
    return;
  }
  if (cut_.sequences != made.sequences || cut_.steps != steps) {
    cut_ = {made.sequences, steps, compute::keys_of_part(made, steps * kStep, machine_.device)};
  }
  tiles.longest = std::min(tiles.longest, cut_.part);
  tiles.keys = std::min(tiles.keys, static_cast<double>(tiles.sequences) * cut_.part);
}

Timed AttentionCost::further_passes(const AttentionKind& kind, Timed pass, Bytes sent,
                                    std::int64_t rows) const {
  const std::int64_t cp = options_.degrees.cp;
  if (cp == 1) {
    return {};
  }
  constexpr std::int64_t kWideSum = 4;
  pass.time = std::max(
      pass.time, prices_.moved(graph::CollectiveKind::send_recv, sent, prices_.context_group()));
  pass += prices_.elementwise(Bytes(rows * heads_ * (kind.value + 1) * (2 * kWideSum + 2)));
  return pass * (cp - 1);
}

Time AttentionCost::merge(const AttentionKind& kind, std::int64_t rows) {
  if (options_.degrees.cp == 1) {
    return Time(0);
  }
  const auto moved = [&](graph::CollectiveKind kind, std::int64_t bytes) {
    return prices_.moved(kind, Bytes(bytes), prices_.context_group());
  };
  return remembered(merged_, rows, [&] {
    return moved(graph::CollectiveKind::all_gather, 4 * rows * heads_ * options_.degrees.cp) +
           moved(graph::CollectiveKind::all_reduce, 2 * rows * heads_ * kind.value);
  });
}

Timed AttentionCost::attend_expanded(const AttentionKind& kind,
                                     const std::vector<Prompt>& prompts) {
  const std::int64_t rank = model_.latent.key_value_rank;
  const auto width = static_cast<double>(kind.head_dim + kind.value);
  std::int64_t all = 0;
  for (const Prompt& prompt : prompts) {
    all += prompt.context + prompt.queries;
  }
  graph::Operator expansion{
      .name = {},
      .kind = graph::OperatorKind::gemm,
      .gemm = {.batch = 1,
               .m = all,
               .n = heads_ * (kind.head_dim - model_.latent.rotary + kind.value),
               .k = rank}};
  return prices_.kernel(expansion) +
         of_prompts(prompts, [&](const Prompt& prompt, std::int64_t count) {
           const std::int64_t keys = prompt.context + prompt.queries;
           graph::Operator core{.name = {}, .kind = graph::OperatorKind::attention, .gemm = {}};
           core.flops =
               Flops(2 * width * static_cast<double>(heads_ * count) * visible_keys(prompt, 0));
           core.bytes = Bytes(std::llround(
               2 * width * static_cast<double>(heads_ * count * (keys + prompt.queries))));
           core.gemm = {
               .batch = heads_ * count, .m = prompt.queries, .n = keys, .k = kind.head_dim};
           return prices_.kernel(core);
         });
}

/// Decodes are absorbed (attend_absorbed), prompts expanded; with an indexer both are absorbed and
/// see the keys that it chooses.
Timed AttentionCost::attend_latent(const AttentionKind& kind, const StepShape& shape,
                                   double visible) {
  Timed total;
  const std::int64_t chosen = model_.index.chosen;
  const auto queries = static_cast<double>(shape.queries);
  if (shape.decodes > 0) {
    const auto most = static_cast<double>(shape.decodes * chosen);
    const double seen = chosen > 0 ? std::min(visible, most) : visible;
    total += attend_absorbed(kind, shape.decodes * shape.queries, seen * queries, seen);
    total += chosen > 0 ? choose_keys(visible * queries, visible) : Timed();
  }
  if (shape.prompts.empty()) {
    return total;
  }
  if (chosen == 0) {
    return total + attend_expanded(kind, shape.prompts);
  }
  const PromptWork all = work_of(shape.prompts, 0);
  const PromptWork seen = work_of(shape.prompts, chosen);
  return total + attend_absorbed(kind, all.queries, seen.pairs, all.keys) +
         choose_keys(all.pairs, all.keys);
}

Timed AttentionCost::attend_compressed(const AttentionKind& kind, const StepShape& shape) const {
  Timed total;
  const std::int64_t chosen = kind.kind.chosen;
  const double part = kind.kind.compression > 0 ? 1.0 / static_cast<double>(kind.kind.compression)
                                                : 0;  // compressed keys of a token
  if (shape.decodes > 0) {
    const auto queries = static_cast<double>(shape.queries);
    const double all = shape.visible[0] * part;
    const double most = chosen > 0 ? static_cast<double>(shape.decodes * chosen) : all;
    const double keys = shape.visible[kind.visible] + std::min(all, most);
    total += attend_shared_head(static_cast<double>(shape.decodes) * queries, keys * queries, keys);
    total += chosen > 0 ? choose_keys(all * queries, all) : Timed();
  }
  if (!shape.prompts.empty()) {
    const PromptWork window = work_of(shape.prompts, kind.window);
    const PromptWork all = work_of(shape.prompts, 0);
    const PromptWork seen = work_of(shape.prompts, chosen * kind.kind.compression);
    total += attend_shared_head(static_cast<double>(all.queries), window.pairs + seen.pairs * part,
                                window.keys + all.keys * part);
    total += chosen > 0 ? choose_keys(all.pairs * part, all.keys * part) : Timed();
  }
  return total;
}

}  // namespace orrery::step
