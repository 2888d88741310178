// SPDX-License-Identifier: Apache-2.0
#include "collective/chimera/steps.h"

#include <algorithm>
#include <cmath>

namespace orrery::chimera {

std::uint32_t Steps::message(std::uint32_t source, std::uint32_t target, Bytes bytes,
                             const std::vector<std::uint32_t>& after) {
  schedule_.push_back({.source = source, .target = target, .bytes = bytes, .after = after});
  return static_cast<std::uint32_t>(schedule_.size()) - 1;
}

std::uint32_t Steps::addition(std::uint32_t node, Bytes bytes, std::uint32_t after) {
  const double cycles = std::ceil(static_cast<double>(bytes.value()) * rules_.per_byte);
  schedule_.push_back({.source = node,
                       .target = node,
                       .work = std::max<flit::Cycle>(1, static_cast<flit::Cycle>(cycles)),
                       .after = {after}});
  return static_cast<std::uint32_t>(schedule_.size()) - 1;
}

std::uint32_t Steps::arrival(Ring kind, std::uint32_t source, std::uint32_t target, Bytes bytes,
                             const std::vector<std::uint32_t>& after) {
  const std::uint32_t done = message(source, target, bytes, after);
  return kind == Ring::reduce ? addition(target, bytes, done) : done;
}

/// Appends one step after the other along lines of a dimension.
Tags Steps::along(Ring kind, const Block& block, std::size_t dimension, Bytes m, Tags tags) {
  const std::int32_t n = block.extents[dimension];
  std::int32_t stride = 1;
  for (std::size_t d = 0; d < dimension; ++d) {
    stride *= block.extents[d];
  }
  std::int64_t inner = 1;  // ranks of this dimension and those before
  std::int64_t outer = 1;  // and those after
  for (std::size_t d = 0; d < block.extents.size(); ++d) {
    (d <= dimension ? inner : outer) *= block.extents[d];
  }
  outer *= n;
  const Bytes bytes = kind == Ring::gather   ? m / outer
                      : kind == Ring::reduce ? m / inner
                                             : m / (std::int64_t{n} * block.ranks());
  for (std::int32_t step = 1; step < n; ++step) {
    const std::int32_t distance = kind == Ring::exchange ? step : 1;
    Tags next(tags.size());
    for (std::int32_t rank = 0; rank < block.ranks(); ++rank) {
      const std::int32_t place = rank / stride % n;
      const std::int32_t peer = rank + ((place + distance) % n - place) * stride;
      next[static_cast<std::size_t>(peer)] = {arrival(kind, network_.node(block, rank),
                                                      network_.node(block, peer), bytes,
                                                      tags[static_cast<std::size_t>(rank)])};
    }
    tags = std::move(next);
  }
  return tags;
}

Tags Steps::rings(Ring kind, const Block& block, Bytes m, const Tags& after) {
  Tags tags = after;
  const bool at_once =
      rules_.artifact && kind == Ring::reduce && network_.topology() == Topology::torus3d;
  for (std::size_t d = 0; d < block.extents.size(); ++d) {
    Tags done = along(kind, block, d, m, at_once ? after : tags);
    for (std::size_t rank = 0; at_once && rank < tags.size(); ++rank) {
      done[rank].insert(done[rank].end(), tags[rank].begin(), tags[rank].end());
    }
    tags = std::move(done);
  }
  return tags;
}

/// Exchanges with the rank at a distance of powers of two.
Tags Steps::doubling(Ring kind, const Block& block, Bytes m, Tags tags) {
  const std::int32_t n = block.ranks();
  for (std::int32_t step = 1; step < n; step *= 2) {
    const std::int32_t distance = kind == Ring::reduce ? n / 2 / step : step;
    const Bytes bytes = kind == Ring::exchange ? m / (2 * n) : distance * (m / n);
    if (rules_.artifact && kind == Ring::reduce) {
      tags = half_duplex(block, distance, bytes, tags);
      continue;
    }
    Tags next(tags.size());
    for (std::int32_t rank = 0; rank < n; ++rank) {
      const std::int32_t peer = rank ^ distance;
      next[static_cast<std::size_t>(peer)] = {arrival(kind, network_.node(block, rank),
                                                      network_.node(block, peer), bytes,
                                                      tags[static_cast<std::size_t>(rank)])};
    }
    tags = std::move(next);
  }
  return tags;
}

/// D2: the higher rank answers when it has added what the lower one sent.
Tags Steps::half_duplex(const Block& block, std::int32_t distance, Bytes bytes, const Tags& tags) {
  Tags next(tags.size());
  for (std::int32_t low = 0; low < block.ranks(); ++low) {
    const std::int32_t high = low ^ distance;
    if (high < low) {
      continue;
    }
    const std::uint32_t here = network_.node(block, low);
    const std::uint32_t there = network_.node(block, high);
    const std::uint32_t sent = message(here, there, bytes, tags[static_cast<std::size_t>(low)]);
    const std::uint32_t added = addition(there, bytes, sent);
    std::vector<std::uint32_t> waits = tags[static_cast<std::size_t>(high)];
    waits.push_back(added);
    const std::uint32_t answer = message(there, here, bytes, waits);
    next[static_cast<std::size_t>(high)] = {added};
    next[static_cast<std::size_t>(low)] = {addition(here, bytes, answer)};
  }
  return next;
}

/// On mesh and torus every rank waits for all.
Tags Steps::released(Tags tags) const {
  if (network_.is_switch()) {
    return tags;
  }
  std::vector<std::uint32_t> all;
  for (const std::vector<std::uint32_t>& of : tags) {
    all.insert(all.end(), of.begin(), of.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return Tags(tags.size(), all);
}

Tags Steps::add(Operation operation, const Block& block, Bytes m, const Tags& after) {
  if (operation == Operation::all_reduce) {
    return add(Operation::all_gather, block, m, add(Operation::reduce_scatter, block, m, after));
  }
  const Ring kind = operation == Operation::all_gather       ? Ring::gather
                    : operation == Operation::reduce_scatter ? Ring::reduce
                                                             : Ring::exchange;
  Tags tags = after;
  tags.resize(static_cast<std::size_t>(block.ranks()));
  return released(network_.is_switch() ? doubling(kind, block, m, std::move(tags))
                                       : rings(kind, block, m, tags));
}

Tags Steps::add(Operation operation, const Block& from, const Block& to, Bytes m,
                const Tags& after) {
  const std::int32_t sources = from.ranks();
  const std::int32_t targets = to.ranks();
  Tags tags = after;
  tags.resize(static_cast<std::size_t>(sources));
  Tags next(static_cast<std::size_t>(targets));
  const bool spread = operation == Operation::many_to_many;
  const Bytes bytes = spread ? m / (std::int64_t{sources} * targets) : m;
  for (std::int32_t turn = 0; turn < (spread ? targets : 1); ++turn) {
    for (std::int32_t rank = 0; rank < sources; ++rank) {
      const std::int32_t target = (rank + turn) % targets;
      next[static_cast<std::size_t>(target)].push_back(
          message(network_.node(from, rank), network_.node(to, target), bytes,
                  tags[static_cast<std::size_t>(rank)]));
    }
  }
  return released(std::move(next));
}

}  // namespace orrery::chimera
