// SPDX-License-Identifier: Apache-2.0
#include "cli/layout_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/reader.h"
#include "base/split.h"
#include "cli/step_flags.h"
#include "collective/layout/pairs.h"

namespace orrery::cli {
namespace {

constexpr std::int64_t kMostRanks = 64;  // of a mesh: every pair of ranks is looked at
constexpr double kMostElements = 1e15;
constexpr std::size_t kMostAxes = 4;

std::optional<layout::Placement> placement(std::string_view text, std::int64_t stages,
                                           std::int64_t dimensions) {
  const bool stage = !text.empty() && text.front() == '@';
  const auto number = parse_integer(stage ? text.substr(1) : text);
  if (text == "copies") {
    return layout::Placement::replicate();
  }
  if (text == "sums") {
    return layout::Placement::partial();
  }
  if (!number || *number < 0 || *number >= (stage ? stages : dimensions)) {
    return std::nullopt;
  }
  return stage ? layout::Placement::only(static_cast<int>(*number))
               : layout::Placement::shard(static_cast<int>(*number));
}

layout::Layout read_layout(const char* flag, const std::optional<std::string>& text,
                           const layout::Problem& problem, Error& mistakes) {
  const std::string names = text.value_or("");
  const auto parts = split_at(names, ',');
  const auto& axes = problem.mesh.axes;
  layout::Layout layout;
  for (std::size_t i = 0; i < std::min(parts.size(), axes.size()); ++i) {
    if (const auto place = placement(parts[i], axes[i].size,
                                     static_cast<std::int64_t>(problem.shape.extents.size()))) {
      layout.push_back(*place);
    }
  }
  if (!text || layout.size() != axes.size() || parts.size() != axes.size()) {
    mistakes.add(wrong_value(flag, text.value_or(""),
                             "for every axis of --mesh copies, sums, a dimension of --shape "
                             "(0, 1, ...) or @STAGE, separated by commas"));
  }
  return layout;
}

}  // namespace

void LayoutFlags::declare(Options& options) {
  options.group("Pairs and layouts");
  options.value("--pair", pair_, "NAME|all", "one of " + all_names<layout::Pair>());
  options.value("--ranks", ranks_, "INT", "of a stage; default 4");
  options.value("--dp-groups", groups_, "INT", "of these, for pairs with ep; default 1");
  options.value("--tokens", tokens_, "INT", "of a dp group; default 1024");
  options.value("--width", width_, "INT", "elements of a token; default 1024");
  options.value("--top-k", copies_, "INT", "experts of a token; default 2");
  options.value("--mesh", mesh_, "AXES", "any change of layout: tp=4,pp=2");
  options.value("--shape", shape_, "EXTENTS", "of its tensor, up to three: 4096x8192");
  options.value("--element", element_, "SIZE", "bytes of an element; default '2 B'");
  options.value("--from", from_, "LAYOUT", "by axis: copies, sums, a dimension or @STAGE");
  options.value("--to", to_, "LAYOUT", "the same");
}

std::vector<LayoutCase> LayoutFlags::read(Error& mistakes) const {
  if (pair_) {
    refuse_given({{"--mesh", mesh_},
                  {"--shape", shape_},
                  {"--element", element_},
                  {"--from", from_},
                  {"--to", to_}},
                 "contradicts --pair", mistakes);
  }
  if (mesh_) {
    refuse_sizes("--mesh, which has --shape", mistakes);
    return {any_case(mistakes)};
  }
  return pairs(mistakes);
}

void LayoutFlags::refuse(Error& mistakes) const {
  refuse_sizes("--model and a plan, which have sizes of their own", mistakes);
  refuse_given({{"--shape", shape_}, {"--element", element_}, {"--from", from_}, {"--to", to_}},
               "goes with --mesh", mistakes);
}

void LayoutFlags::refuse_sizes(const char* why, Error& mistakes) const {
  refuse_given({{"--ranks", ranks_},
                {"--dp-groups", groups_},
                {"--tokens", tokens_},
                {"--width", width_},
                {"--top-k", copies_}},
               fmt::format("contradicts {}", why), mistakes);
}

std::vector<LayoutCase> LayoutFlags::pairs(Error& mistakes) const {
  const auto whole = [&](const char* flag, const std::optional<std::string>& text,
                         std::int64_t fallback) {
    return whole_number(flag, text, fallback, layout::kMostPairExtent, mistakes);
  };
  layout::PairSizes sizes;
  sizes.ranks = whole_number("--ranks", ranks_, 4, layout::kMostPairRanks, mistakes);
  sizes.dp = whole("--dp-groups", groups_, 1);
  sizes.tokens = whole("--tokens", tokens_, 1024);
  sizes.width = whole("--width", width_, 1024);
  sizes.copies = whole("--top-k", copies_, 2);
  if (const auto wrong = layout::wrong_size(sizes)) {
    const bool groups = wrong->field == "dp";
    mistakes.add(wrong_value(groups ? "--dp-groups" : "--tokens",
                             groups ? groups_.value_or("1") : tokens_.value_or("1024"),
                             std::string(wrong->expected)));
  }
  const auto pair = value_of<layout::Pair>(*pair_);
  if (!pair && *pair_ != "all") {
    mistakes.add(wrong_value("--pair", *pair_,
                             "all or one of " + all_names<layout::Pair>() +
                                 did_you_mean(*pair_, names_of<layout::Pair>())));
  }
  std::vector<LayoutCase> cases;
  for (const Named<layout::Pair>& named : kNames<layout::Pair>) {
    if (mistakes.empty() && (!pair || *pair == named.value)) {
      layout::PairCase one = layout::pair_case(named.value, sizes);
      cases.push_back({std::string(named.name),
                       std::move(one.problem),
                       std::move(one.base),
                       std::move(one.fused),
                       {}});
    }
  }
  return cases;
}

layout::Mesh LayoutFlags::read_mesh(Error& mistakes) const {
  layout::Mesh mesh;
  std::int64_t ranks = 1;
  for (const std::string_view axis : split_at(*mesh_, ',')) {
    const auto equals = axis.find('=');
    const auto size =
        parse_integer(equals == axis.npos ? std::string_view() : axis.substr(equals + 1));
    if (!size || *size < 1 || equals == 0 || *size > kMostRanks / ranks) {
      mistakes.add(wrong_value(
          "--mesh", *mesh_, fmt::format("axes such as tp=4,pp=2, at most {} ranks", kMostRanks)));
      return {};
    }
    ranks *= *size;
    const std::string name(axis.substr(0, equals));
    if (std::any_of(mesh.axes.begin(), mesh.axes.end(),
                    [&](const auto& other) { return other.name == name; })) {
      mistakes.add(
          wrong_value("--mesh", *mesh_, fmt::format("every axis once: '{}' comes twice", name)));
    }
    mesh.axes.push_back({name, *size});
  }
  if (mesh.axes.size() > kMostAxes) {
    mistakes.add(wrong_value("--mesh", *mesh_, fmt::format("at most {} axes", kMostAxes)));
  }
  return mesh;
}

layout::Shape LayoutFlags::read_shape(Error& mistakes) const {
  layout::Shape shape;
  shape.element = Bytes(2);
  if (element_) {
    const auto size = parse_bytes(*element_);
    if (size && *size > Bytes(0) && *size <= Bytes(1024)) {
      shape.element = *size;
    } else {
      mistakes.add(wrong_value("--element", *element_, size ? "1 to 1024 B" : size.error()));
    }
  }
  double product = 1;
  const std::string extents = shape_.value_or("1024x1024");
  for (const std::string_view extent : split_at(extents, 'x')) {
    const auto value = parse_integer(extent);
    shape.extents.push_back(value && *value > 0 ? *value : 0);
    product *= static_cast<double>(shape.extents.back());
  }
  if (!(product > 0 && product <= kMostElements) || shape.extents.size() > layout::Shape::kMost) {
    mistakes.add(wrong_value("--shape", shape_.value_or(""),
                             "one to three extents such as 4096x8192, at most 1e15 elements"));
  }
  return shape;
}

LayoutCase LayoutFlags::any_case(Error& mistakes) const {
  LayoutCase one;
  one.name = "layout";
  layout::Problem& problem = one.problem;
  problem.mesh = read_mesh(mistakes);
  problem.shape = read_shape(mistakes);
  if (problem.mesh.axes.empty()) {
    return one;  // layouts are read against axes
  }
  problem.from = read_layout("--from", from_, problem, mistakes);
  problem.to = read_layout("--to", to_, problem, mistakes);
  for (std::size_t i = 0; mistakes.empty() && i < problem.from.size(); ++i) {
    using Kind = layout::Placement::Kind;
    if ((problem.from[i].kind == Kind::only) != (problem.to[i].kind == Kind::only)) {
      mistakes.add(
          {"--to", {}, *to_, "@STAGE for an axis that is at a stage in --from, and for no other"});
    }
  }
  return one;
}

}  // namespace orrery::cli
