// SPDX-License-Identifier: Apache-2.0
/// Says how one tensor is spread over the N devices of a one-dimensional mesh, and what turns one
/// form into another.
///
/// A form is a pair of placements (graph/layout.h), of the value and of its gradient:
///
///   full       (R, P)        a whole copy on every device; its gradient is a sum over devices
///   reduce     (P, R)        summands of full shape; its gradient is whole everywhere
///   replicate  (R, R)        a parameter: equal copies, with equal copies of its gradient
///   gather_D   (S(D), S(D))  equal slices along dimension D (from 0); so is its gradient
///
/// A conversion follows from both pairs, but for what is marked:
///
///   from -> to             forward           backward as published   backward as we charge it
///   full -> gather_D       slice, free       free                    all-gather (*)
///   gather_D -> full       all-gather        reduce-scatter          reduce-scatter
///   gather_A -> gather_B   all-to-all        all-to-all              all-to-all
///   reduce -> full         all-reduce        all-reduce              all-reduce
///   reduce -> gather_D     reduce-scatter    all-gather              all-gather
///   replicate -> full      free              all-reduce              all-reduce
///   replicate -> gather_D  slice, free       all-reduce (*)          all-gather
///
/// Nothing else is legal: strategies convert to what operators take.
/// Source: HiDup (Zhang et al., SoCC'22), its published search.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collective/layout/steps.h"
#include "graph/layout.h"

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
  /// Returns the form of code(). Requires a code.
  static constexpr Form of_code(int code) { return Form(code); }

  /// Returns 0 to 14, unlike for unlike forms.
  constexpr int code() const { return code_; }
  constexpr bool is_gather() const { return code_ >= kGather; }
  /// Requires is_gather().
  constexpr int dimension() const { return code_ - kGather; }

  graph::Placement value() const;
  graph::Placement gradient() const;

  friend constexpr auto operator<=>(Form, Form) = default;

 private:
  static constexpr int kGather = 3;
  constexpr explicit Form(int code) : code_(static_cast<std::uint8_t>(code)) {}
  std::uint8_t code_ = 0;
};

/// Returns "full", "reduce", "replicate", "gather_2".
std::string to_string(Form form);
std::optional<Form> parse_form(std::string_view text);

/// A conversion costs one of kConversions; `slice` stands for all that moves nothing.
using layout::Operation;
/// The conversions in the order of reports.
inline constexpr std::array kConversions{Operation::slice, Operation::all_gather,
                                         Operation::all_reduce, Operation::reduce_scatter,
                                         Operation::all_to_all};

struct Conversion {
  Operation forward = Operation::slice;
  Operation published = Operation::slice;  ///< backward, as published
  Operation gradient = Operation::slice;   ///< backward, as we charge it
};

/// Returns the conversion that turns `from` into `to`; nullopt: nothing does. Between equal forms
/// nothing is needed, which is not a conversion.
std::optional<Conversion> conversion(Form from, Form to);

/// Forms of an operator's inputs and outputs, in their order, with which every device can do its
/// part alone.
struct Signature {
  std::vector<Form> inputs;
  std::vector<Form> outputs;

  /// Returns whether the devices share the work: some input or output is sliced.
  bool divides_work() const;

  friend bool operator==(const Signature&, const Signature&) = default;
};

/// Returns "gather_0 full -> gather_0".
std::string to_string(const Signature& signature);

}  // namespace orrery::spmd
