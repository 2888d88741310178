// SPDX-License-Identifier: Apache-2.0
#include "machine/slice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/reader.h"
#include "base/split.h"

namespace orrery::machine {
namespace {

/// Returns whether a slice is made of cubes of 4 x 4 x 4.
bool made_of_cubes(const std::vector<std::int64_t>& extents) {
  constexpr std::int64_t kCube = 4;
  return extents.size() == 3 &&
         std::ranges::all_of(extents, [](std::int64_t extent) { return extent % kCube == 0; });
}

/// Adds the ways to cut `devices` out of the axes from `axis` on.
void add_slices(const std::vector<std::int64_t>& shape, std::int64_t devices,
                std::vector<std::int64_t>& extents,
                std::vector<std::vector<std::int64_t>>& slices) {
  const std::size_t axis = extents.size();
  if (axis == shape.size()) {
    if (devices == 1) {
      slices.push_back(extents);
    }
    return;
  }
  for (std::int64_t extent = 1; extent <= std::min(shape[axis], devices); ++extent) {
    if (devices % extent == 0) {
      extents.push_back(extent);
      add_slices(shape, devices / extent, extents, slices);
      extents.pop_back();
    }
  }
}

/// Returns the block of a torus that a job of so many devices takes: of cubes where that is
/// possible, then the one with the least sum of extents, the longest ones last. Empty: none has so
/// many.
std::vector<std::int64_t> slice_of(const std::vector<std::int64_t>& shape, std::int64_t devices) {
  std::vector<std::vector<std::int64_t>> slices;
  std::vector<std::int64_t> extents;
  add_slices(shape, devices, extents, slices);
  const auto rank = [](const std::vector<std::int64_t>& slice) {
    return std::tuple(!made_of_cubes(slice),
                      std::accumulate(slice.begin(), slice.end(), std::int64_t{0}), slice);
  };
  const auto best = std::ranges::min_element(
      slices, [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return best == slices.end() ? std::vector<std::int64_t>{} : *best;
}

bool begins_with_torus(const Machine& machine) {
  constexpr std::int64_t kMostExtent = 4096;  // more are lines, whose blocks nobody chooses
  if (machine.network.empty()) {
    return false;
  }
  const topology::NetworkDimension& first = machine.network.front();
  return first.kind == topology::DimensionKind::torus && first.shape.size() > 1 &&
         first.shape.size() <= 3 && std::ranges::all_of(first.shape, [](std::int64_t extent) {
           return extent <= kMostExtent;
         });
}

/// Returns the extents of "4x8x8"; empty: the text is something else.
std::vector<std::int64_t> extents_of(const std::string& text) {
  std::vector<std::int64_t> extents;
  for (const std::string_view part : split_at(text, 'x')) {
    const auto extent = parse_integer(part);
    if (!extent || *extent < 1) {
      return {};
    }
    extents.push_back(*extent);
  }
  return extents;
}

struct Generation {
  std::string_view name;     ///< in Google's names
  std::string_view machine;  ///< shipped
  std::int64_t cores = 1;    ///< that the name counts, of a chip
};
constexpr std::array kGenerations{Generation{"v3", "tpu-v3", 2},      Generation{"v4", "tpu-v4", 2},
                                  Generation{"v5p", "tpu-v5p", 2},    Generation{"v5e", "tpu-v5e"},
                                  Generation{"v5litepod", "tpu-v5e"}, Generation{"v6e", "tpu-v6e"}};

/// Chips of "v5p-512" on its machine; 0: it is no such name.
std::int64_t chips_of(const std::string& text, const Machine& machine) {
  const std::size_t dash = text.find('-');
  for (const Generation& generation : kGenerations) {
    const bool meant = dash != std::string::npos && text.substr(0, dash) == generation.name &&
                       machine.name == generation.machine;
    const auto count = meant ? parse_integer(std::string_view(text).substr(dash + 1))
                             : tl::expected<std::int64_t, std::string>(0);
    if (count && *count > 0 && *count % generation.cores == 0) {
      return *count / generation.cores;
    }
  }
  return 0;
}

/// Google's name of so many chips; "" for machines that have none.
std::string name_of_slice(const Machine& machine, std::int64_t chips) {
  const auto* const generation =
      std::ranges::find(kGenerations, machine.name, &Generation::machine);
  return generation == kGenerations.end()
             ? std::string()
             : fmt::format(", {}-{}", generation->name, chips * generation->cores);
}

/// The slice with its extents in an order that fits the torus; empty: none does.
std::vector<std::int64_t> fitted(const std::vector<std::int64_t>& shape,
                                 std::vector<std::int64_t> slice) {
  if (slice.size() > shape.size()) {
    return {};
  }
  slice.resize(shape.size(), 1);
  std::ranges::sort(slice);
  do {
    if (std::ranges::equal(slice, shape, std::less_equal<>())) {
      return slice;
    }
  } while (std::ranges::next_permutation(slice).found);
  return {};
}

}  // namespace

std::vector<std::int64_t> usual_slice(const Machine& machine, std::int64_t devices) {
  const bool larger =
      devices > 1 && begins_with_torus(machine) && devices < machine.network.front().size;
  return larger ? slice_of(machine.network.front().shape, devices) : std::vector<std::int64_t>{};
}

Machine cut_to_slice(Machine machine, const std::vector<std::int64_t>& slice) {
  machine = expand_shapes(std::move(machine));
  for (std::size_t axis = 0; axis < slice.size(); ++axis) {
    topology::NetworkDimension& line = machine.network[axis];
    if (made_of_cubes(slice)) {
      line.size = slice[axis];  // switches close the axis
    } else {
      cut(line, slice[axis]);
    }
  }
  const auto end = machine.network.begin() + static_cast<std::ptrdiff_t>(slice.size());
  machine.network.erase(std::remove_if(machine.network.begin(), end,
                                       [&](const topology::NetworkDimension& line) {
                                         if (line.size == 1) {
                                           const std::string own = "network." + line.name;
                                           std::erase_if(machine.origins, [&](const auto& origin) {
                                             return origin.first == own ||
                                                    origin.first.starts_with(own + ".");
                                           });
                                         }
                                         return line.size == 1;
                                       }),
                        end);
  return machine;
}

Result<NamedSlice> with_slice(const Machine& machine, const std::string& text) {
  if (!begins_with_torus(machine)) {
    return fail(Error(Mistake{
        {}, {}, text, "a machine of a torus of two or three axes; " + machine.name + " has none"}));
  }
  const std::vector<std::int64_t>& shape = machine.network.front().shape;
  const std::int64_t chips = chips_of(text, machine);
  std::vector<std::int64_t> slice = chips > 0 ? slice_of(shape, chips) : extents_of(text);
  slice = slice.empty() ? slice : fitted(shape, std::move(slice));
  if (slice.empty()) {
    return fail(Error(
        Mistake{{},
                {},
                text,
                fmt::format("extents within {} such as 4x8x8, or a name such as v5p-512 of {}",
                            fmt::join(shape, "x"), machine.name)}));
  }
  NamedSlice named;
  named.devices = std::accumulate(slice.begin(), slice.end(), std::int64_t{1}, std::multiplies<>());
  named.text = fmt::format("{}, {} chips{}", fmt::join(slice, "x"), named.devices,
                           name_of_slice(machine, named.devices));
  named.machine = cut_to_slice(machine, slice);
  return named;
}

}  // namespace orrery::machine
