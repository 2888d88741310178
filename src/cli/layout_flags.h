// SPDX-License-Identifier: Apache-2.0
/// Flags of changes of layout: a published pair and its sizes, or a mesh with what a tensor is on
/// it before and after.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "collective/layout/convert.h"

namespace orrery::cli {

/// A change of layout with what is published for it, if anything.
struct LayoutCase {
  std::string name;
  layout::Problem problem;
  std::vector<layout::Step> base;
  std::vector<layout::Step> published;  ///< in place of `base`
  std::vector<layout::Step> fused;      ///< the cheapest
};

class LayoutFlags {
 public:
  void declare(Options& options);
  /// Returns the flag that asks for changes of layout, "--pair" or "--mesh"; null without one.
  const char* given() const { return pair_ ? "--pair" : mesh_ ? "--mesh" : nullptr; }
  /// Requires given(). Names of axes are different, sizes at most 64 ranks, extents positive,
  /// elements at most 1e15.
  std::vector<LayoutCase> read(Error& mistakes) const;
  /// Refuses these flags for a command that goes without given(): they contradict it.
  void refuse(Error& mistakes) const;
  /// Returns the text of --to.
  std::string wanted() const { return to_.value_or(""); }

 private:
  void refuse_sizes(const char* why, Error& mistakes) const;
  std::vector<LayoutCase> pairs(Error& mistakes) const;
  LayoutCase any_case(Error& mistakes) const;
  layout::Mesh read_mesh(Error& mistakes) const;
  layout::Shape read_shape(Error& mistakes) const;

  std::optional<std::string> pair_;
  std::optional<std::string> ranks_;
  std::optional<std::string> groups_;
  std::optional<std::string> tokens_;
  std::optional<std::string> width_;
  std::optional<std::string> copies_;
  std::optional<std::string> mesh_;
  std::optional<std::string> shape_;
  std::optional<std::string> element_;
  std::optional<std::string> from_;
  std::optional<std::string> to_;
};

}  // namespace orrery::cli
