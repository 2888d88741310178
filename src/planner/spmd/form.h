// SPDX-License-Identifier: Apache-2.0
/// How one tensor is spread over the N devices of a one-dimensional mesh, and what turns one form
/// into another.
///
///   full       a whole copy on every device; its gradient is a sum over devices
///   reduce     summands of full shape, one on each device; its gradient is whole everywhere
///   replicate  a parameter: equal copies, whose gradient must be summed
///   gather_D   equal slices along dimension D (from 0); so is its gradient
///
///   from -> to             forward           backward as published   backward as we charge it
///   full -> gather_D       slice, free       free                    all-gather
///   gather_D -> full       all-gather        reduce-scatter          reduce-scatter
///   gather_A -> gather_B   all-to-all        all-to-all              all-to-all
///   reduce -> full         all-reduce        all-reduce              all-reduce
///   reduce -> gather_D     reduce-scatter    all-gather              all-gather
///   replicate -> full      free              all-reduce              all-reduce
///   replicate -> gather_D  slice, free       all-reduce              all-gather
///
/// Nothing else is legal.
/// Source: HiDup (Zhang et al., SoCC'22), its published search.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"

namespace orrery::spmd {

class Form {
 public:
  /// Dimensions that a form can name: what fits beside the other forms into four bits.
  static constexpr int kDimensions = 12;

  constexpr Form() = default;
  static constexpr Form full() { return Form(0); }
  static constexpr Form reduce() { return Form(1); }
  static constexpr Form replicate() { return Form(2); }
  /// Requires 0 <= dimension < kDimensions.
  static constexpr Form gather(int dimension) { return Form(kGather + dimension); }
  /// The form of code(). Requires a code.
  static constexpr Form of_code(int code) { return Form(code); }

  /// 0 to 14, unlike for unlike forms.
  constexpr int code() const { return code_; }
  constexpr bool is_gather() const { return code_ >= kGather; }
  /// Requires is_gather().
  constexpr int dimension() const { return code_ - kGather; }

  friend constexpr auto operator<=>(Form, Form) = default;

 private:
  static constexpr int kGather = 3;
  constexpr explicit Form(int code) : code_(static_cast<std::uint8_t>(code)) {}
  std::uint8_t code_ = 0;
};

/// "full", "reduce", "replicate", "gather_2".
std::string to_string(Form form);
std::optional<Form> parse_form(std::string_view text);

enum class Collective : std::uint8_t {
  none,
  all_gather,
  all_reduce,
  reduce_scatter,
  all_to_all,
};
constexpr auto named_values(Collective) {
  return std::to_array<Named<Collective>>({
      {Collective::none, "slice", "each device keeps its part of what it has"},
      {Collective::all_gather, "all_gather", "slices to whole copies"},
      {Collective::all_reduce, "all_reduce", "summands to whole sums"},
      {Collective::reduce_scatter, "reduce_scatter", "summands to slices of the sum"},
      {Collective::all_to_all, "all_to_all", "slices along one dimension to slices along another"},
  });
}

struct Conversion {
  Collective forward = Collective::none;
  Collective backward = Collective::none;  ///< as published
  Collective gradient = Collective::none;  ///< backward as we charge it
};

/// Returns the conversion that turns `from` into `to`; nullopt: nothing does. Between equal forms
/// nothing is needed, which is not a conversion.
std::optional<Conversion> conversion(Form from, Form to);

/// Forms of an operator's inputs and outputs, in their order, with which every device can do its
/// part alone.
struct Signature {
  std::vector<Form> inputs;
  std::vector<Form> outputs;

  /// Whether the devices share the work: some input or output is sliced.
  bool divides_work() const;

  friend bool operator==(const Signature&, const Signature&) = default;
};

/// "gather_0 full -> gather_0".
std::string to_string(const Signature& signature);

}  // namespace orrery::spmd
