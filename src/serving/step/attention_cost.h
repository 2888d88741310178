// SPDX-License-Identifier: Apache-2.0
/// Parts of a pass that see requests apart: attention and recurrences (step_cost.h has the
/// formulas).
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "serving/step/cache_bytes.h"
#include "serving/step/pass_prices.h"

namespace orrery::compute {
struct DecodeTiles;
}

namespace orrery::step {

/// Layers of one kind that attend alike.
struct AttentionKind {
  zoo::LayerKind kind;
  std::int64_t layers = 0;
  std::int64_t head_dim = 0;  ///< of queries and keys
  std::int64_t value = 0;     ///< width of a head's values
  std::int64_t kv_heads = 0;  ///< of a rank
  std::int64_t window = 0;
  std::int64_t kept = 0;    ///< tokens whose keys and values it needs; 0: all
  std::size_t visible = 0;  ///< index into windows()
  bool measured = false;    ///< with its cache write

  bool is(zoo::MixerKind mixer) const { return kind.mixer == mixer; }
};

/// AttentionCost has the layers that attend and what their requests keep.
class AttentionCost {
 public:
  /// `prices` must outlive the cost.
  explicit AttentionCost(const PassPrices& prices);

  /// Returns the distinct windows of attention layers, 0 (none) first.
  const std::vector<std::int64_t>& windows() const { return windows_; }
  /// Adds all layers' attention.
  void add(const StepShape& shape, Part& total);
  CacheBytes cache() const;
  /// Returns the number of tokens that a rank computes.
  std::int64_t rows_of(const StepShape& shape) const;

 private:
  /// Launches are an attention kernel's parts as if each were alone.
  struct Launches {
    Time decodes{0};
    Time prompts{0};
  };

  Timed attend(const AttentionKind& kind, const StepShape& shape);
  /// Returns the time of prompts and decodes, as one kernel each that are launched together.
  Timed attend_in_one_launch(const AttentionKind& kind, const StepShape& shape, double decode_keys);
  /// Adds what layers of compressed attention keep.
  void add_compressed(const AttentionKind& kind, CacheBytes& cache) const;
  /// Returns what decodes of unequal contexts, or beside prompts, take more than `alone` on a
  /// device that computes them in tiles (compute/decode_tiles.h).
  Time uneven(const AttentionKind& kind, const StepShape& shape, double kv_bytes,
              const Launches& alone);
  void cut_keys(compute::DecodeTiles& tiles);
  Time measured_attention(const StepShape& shape, double decode_keys) const;
  /// Returns a ring's passes behind the first: each takes as long, or sends so many bytes, then
  /// adds what it has found for so many rows of prompts to what those before have. Sums and their
  /// weights have 4 bytes, a pass's results 2.
  Timed further_passes(const AttentionKind& kind, Timed pass, Bytes sent, std::int64_t rows) const;
  /// Returns the time, with cp > 1, of merging what every rank has found for the decodes in its
  /// part of the keys.
  Time merge(const AttentionKind& kind, std::int64_t rows);
  Timed attend_latent(const AttentionKind& kind, const StepShape& shape, double visible);
  /// Returns attention to a window and to compressed keys, of which an indexer may choose, in one
  /// core over one head of keys that are the values too (DeepSeek-V4).
  Timed attend_compressed(const AttentionKind& kind, const StepShape& shape) const;
  /// Returns that core, of so many rows of queries, pairs of a query and a key, and keys read.
  Timed attend_shared_head(double rows, double pairs, double keys) const;
  /// Returns attention in the latent space: queries go into it and results back by a GEMM per head,
  /// the core reads one head of `keys`.
  Timed attend_absorbed(const AttentionKind& kind, std::int64_t rows, double pairs, double keys);
  /// Returns what the indexer of sparse attention takes for so many pairs over so many keys.
  Timed choose_keys(double pairs, double keys) const;
  /// Returns prompts of latent attention whose keys and values are expanded for every head.
  Timed attend_expanded(const AttentionKind& kind, const std::vector<Prompt>& prompts);

  const PassPrices& prices_;
  const zoo::Model& model_;
  const machine::Machine& machine_;
  const StepOptions& options_;
  std::int64_t heads_;      ///< of queries, of a rank
  zoo::SparseIndex index_;  ///< of latent or compressed attention; heads 0: none
  std::vector<AttentionKind> attention_;
  std::vector<std::int64_t> windows_{0};
  std::unordered_map<std::int64_t, Timed> absorbed_;
  std::unordered_map<std::int64_t, Time> merged_;
  struct {
    std::int64_t sequences = 0;
    std::int64_t steps = 0;
    double part = 0;
  } cut_;  ///< what cut_keys found last
  graph::Operator decode_;
};

/// Recurrent layers (Mamba-2, the delta rule), which see nothing but a state of fixed size.
class RecurrentCost {
 public:
  /// `prices` must outlive the cost.
  explicit RecurrentCost(const PassPrices& prices);

  /// Adds all recurrent layers.
  void add(const StepShape& shape, Part& total);

 private:
  Part scan(std::size_t kind, std::int64_t tokens) const;
  /// Returns the time of a token and its guesses, `queries` in all, each of so many requests: a
  /// state is read and one written after every token, as any may be the last right one; x, B, C and
  /// dt are read, y is written.
  Timed update_states(std::int64_t decodes, std::int64_t queries) const;

  const PassPrices& prices_;
  std::vector<std::size_t> recurrent_;                          ///< kinds of layers
  std::map<std::pair<std::size_t, std::int64_t>, Part> scans_;  ///< by kind and tokens of prompts
  std::map<std::pair<std::int64_t, std::int64_t>, Timed> updates_;  ///< by decodes and queries
};

/// Returns the bytes of a key of compressed attention: in 8 bits its rotated elements keep 16, and
/// 64 of the others share a scale of a byte (584 bytes for 512 elements, as vLLM's fp8_ds_mla).
double shared_key_bytes(const zoo::Model& model, graph::DataType type);
/// Returns the bytes of a key of an indexer: fp8 and a scale.
double index_key_bytes(std::int64_t dim);

/// Returns the state of a recurrent layer, on a device, of a request.
Bytes state_of_layer(const PassPrices& prices);

}  // namespace orrery::step
