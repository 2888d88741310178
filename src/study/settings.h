// SPDX-License-Identifier: Apache-2.0
/// A run described by field names and texts, as profiles, table columns and flags give them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "serving/requests/generate.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::study {

/// One field of the model's shape or of the plan.
struct Setting {
  std::string field;
  std::string value;  ///< with its unit, as in a plan file
  std::string where;  ///< "file:line" or a flag, for messages

  friend bool operator==(const Setting&, const Setting&) = default;
};

/// Returns a mistake that names what was found also where that is an empty text: "found '',
/// expected a whole number".
Mistake wrong_value(std::string where, std::string field, std::string found, std::string expected);

/// Shape of a GPT model; the sequence is a field of the plan.
struct GptShape {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t vocab = 0;

  template <class V>
  static void fields(V&& visit) {
    visit("layers", &GptShape::layers, "transformer layers");
    visit("hidden", &GptShape::hidden, "hidden size");
    visit("heads", &GptShape::heads, "attention heads");
    visit("vocab", &GptShape::vocab, "vocabulary before padding");
  }
};

/// Returns the name of a configuration that a table names as a file ("v5p-512.yaml") which is not
/// there: the file's without extension. Other names are returned as they are.
std::string without_extension(const std::string& name);

/// TableNames are what a table names instead of describing it.
struct TableNames {
  std::string model{};       ///< of `orrery list models`; "" = the GPT of the shape. With `layers`
                             ///< of the shape it has so many instead of its own;
                             ///< a learned table has a position for every token of the sequence
  std::string machine{};     ///< of `orrery list machines`; "" = the profile's
  std::int64_t devices = 0;  ///< from which dp follows: devices / (tp cp pp); 0 = dp is given
  std::int64_t microbatches = 0;      ///< from which global_batch follows; 0 = it is given
  bool microbatch_of_stages = false;  ///< microbatch = global_batch / (dp pp), as torchtitan's
  bool no_dropout = false;            ///< the model is trained without
  /// Recompute is not known beyond the plan's: the least more that fits in memory (predict.h).
  bool recompute_to_fit = false;
  bool tp_overlap =
      false;  ///< tp_chunks = tp: Transformer Engine's exchange in a ring of all ranks

  template <class V>
  static void fields(V&& visit) {
    visit("model", &TableNames::model, "shipped model, instead of a GPT shape");
    visit("machine", &TableNames::machine, "shipped machine, instead of the profile's");
    visit("devices", &TableNames::devices, "accelerators, from which dp follows");
    visit("microbatches", &TableNames::microbatches,
          "microbatches of a replica, from which global_batch follows");
    visit("microbatch_of_stages", &TableNames::microbatch_of_stages,
          "a replica's batch in as many microbatches as stages");
    visit("no_dropout", &TableNames::no_dropout, "the model is trained without dropout");
    visit("recompute_to_fit", &TableNames::recompute_to_fit,
          "the least recompute that fits in memory: the table does not state it");
    visit("tp_overlap", &TableNames::tp_overlap, "tp collectives in as many pieces as ranks");
  }
};

/// A model and how it is run.
struct TableCase {
  GptShape shape;
  TableNames names;
  plan::Plan plan;

  /// Returns the named model; else GPT-2 architecture (gpt_model) with positions for one sequence.
  Result<zoo::Model> model() const;
};

/// Returns the names of all fields that a Setting may have: the shape's, the names', the plan's.
std::vector<std::string> setting_fields();
/// Returns the fields of serving: "model", "machine", "engine", of requests "requests.rate" and so
/// on (ServedRequests), of the engine "scheduler.max_num_seqs" and so on (serving::Engine).
std::vector<std::string> serving_fields();

/// Requests that a row of a table describes.
struct ServedRequests {
  std::int64_t count = 0;  ///< 0, without rounds: as many as the histogram has
  double rate = 0;         ///< per second, of all of them; 0: all at once
  requests::Arrival arrival = requests::Arrival::fixed;
  double input = 0;  ///< tokens; rounded
  std::int64_t output = 0;
  std::int64_t prompts = 0;      ///< different ones, which take turns; 0: all differ
  std::int64_t users = 1;        ///< of each of these
  std::int64_t concurrency = 0;  ///< requests of the client at once; 0: no limit
  double rounds = 0;             ///< count = rounds x concurrency; 0: count as it is
  double least = 1;  ///< lengths are drawn uniformly from this share of input and output
  /// A histogram of answers instead of `output`: how many in each of equal bins from low to high.
  std::string output_counts{};
  double output_low = 0;
  double output_high = 0;
  std::int64_t output_bins = 0;  ///< the last ones may be left out; 0: as many as there are counts

  template <class V>
  static void fields(V&& visit) {
    visit("count", &ServedRequests::count, "requests; 0: as many as output_counts has");
    visit("rate", &ServedRequests::rate, "per second; 0: all at once");
    visit("arrival", &ServedRequests::arrival,
          "of those at a rate: fixed (equal gaps), poisson (drawn, scaled to the rate)");
    visit("input", &ServedRequests::input, "tokens of a prompt");
    visit("output", &ServedRequests::output, "tokens of an answer");
    visit("prompts", &ServedRequests::prompts, "different prompts; 0: all");
    visit("users", &ServedRequests::users, "different prompts of each of these");
    visit("concurrency", &ServedRequests::concurrency, "of the client at once; 0: no limit");
    visit("rounds", &ServedRequests::rounds, "count over concurrency; 0: count is stated");
    visit("least", &ServedRequests::least,
          "lengths are drawn uniformly from this share of input and output");
    visit("output_counts", &ServedRequests::output_counts,
          "numbers of answers in equal bins of lengths, instead of output");
    visit("output_low", &ServedRequests::output_low, "tokens where the first bin begins");
    visit("output_high", &ServedRequests::output_high, "tokens where the last bin ends");
    visit("output_bins", &ServedRequests::output_bins,
          "how many, the last of which may be left out; 0: as many as output_counts has");
  }
};

/// Applies the settings in order, later ones winning; what the `framework` among them has comes
/// before all. `schedule` follows from `chunks` unless it is
/// set itself: interleaved above one chunk, else 1F1B; `dp` from `devices`. Mistakes: unknown
/// fields, values that do not
/// parse, a shape that is no model (extents below one, heads that do not divide hidden, more than
/// the zoo's limits).
Result<TableCase> make_case(const std::vector<Setting>& settings);

}  // namespace orrery::study
