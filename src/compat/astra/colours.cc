// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/colours.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compat/astra/node_time.h"

namespace orrery::astra {
namespace {

constexpr std::int64_t kMostWork = 20'000'000;  ///< looks at a partner, about 10 ns each
constexpr Bytes kProbe{1 << 20};

/// 128 bits: two ranks with different histories share a hash with probability 2^-128.
class Hash {
 public:
  void add(std::uint64_t value) {
    low_ = mix(low_ ^ value, 0x9e3779b97f4a7c15);
    high_ = mix(high_ + value, 0xc2b2ae3d27d4eb4f);
  }
  std::pair<std::uint64_t, std::uint64_t> value() const { return {low_, high_}; }

 private:
  static std::uint64_t mix(std::uint64_t value, std::uint64_t factor) {
    value = (value ^ (value >> 32)) * factor;
    value = (value ^ (value >> 29)) * 0xbf58476d1ce4e5b9;
    return value ^ (value >> 32);
  }
  std::uint64_t low_ = 1;
  std::uint64_t high_ = 2;
};

class Colouring {
 public:
  Colouring(const RunInput& input, const RunOptions& options, Communicators& communicators,
            const Planner& planner)
      : input_(input),
        options_(options),
        communicators_(communicators),
        planner_(planner),
        wires_(input.network, options.quirks[Quirk::first_dimension]),
        ranks_(input.traces.ranks()),
        colours_(input.traces.program_of) {
    for (const chakra::Program& program : input.traces.programs) {
      add_program(program);
    }
  }

  std::optional<std::vector<std::uint32_t>> run() {
    if (work() > kMostWork) {
      return std::nullopt;
    }
    rename();
    for (std::size_t before = 0; before != count_ && count_ < colours_.size();) {
      before = count_;
      refine();
    }
    if (count_ == colours_.size()) {
      return std::nullopt;
    }
    return std::move(colours_);
  }

 private:
  /// Contacts are what a program does with others.
  struct Contacts {
    std::set<std::pair<std::uint32_t, PhaseType>> collectives;  ///< kind, type
    std::set<std::int64_t> sources;                             ///< of receives, as peers
    std::set<std::int64_t> destinations;
  };

  void add_program(const chakra::Program& program) {
    const auto index = static_cast<std::uint32_t>(contacts_.size());
    Contacts& contacts = contacts_.emplace_back();
    for (std::uint32_t i = 0; i < program.nodes.size(); ++i) {
      const chakra::Node& node = program.nodes[i];
      switch (issue_of(node, input_.system.replay_only, options_.quirks)) {
        case Issue::collective:
          contacts.collectives.insert(
              {communicators_.kind(index, i), phase_type_of(node.collective)});
          break;
        case Issue::send:
          contacts.destinations.insert(node.peer);
          break;
        case Issue::receive:
          contacts.sources.insert(node.peer);
          break;
        default:
          break;
      }
    }
  }
  const Contacts& contacts(std::int64_t rank) const {
    return contacts_[input_.traces.program_of[static_cast<std::size_t>(rank)]];
  }

  /// Partners to look at in one round.
  std::int64_t work() {
    std::int64_t sum = 0;
    for (std::int64_t rank = 0; rank < ranks_ && sum <= kMostWork; ++rank) {
      for (const auto& [kind, type] : contacts(rank).collectives) {
        const Shape& shape = communicators_.shape_of(communicators_.find(rank, kind).communicator);
        for (const Axis& axis : shape.axes) {
          sum += axis.size;
        }
      }
    }
    return sum;
  }

  /// Colours in order of first occurrence.
  template <class Key>
  void recolour(const std::vector<Key>& keys) {
    std::map<Key, std::uint32_t> names;
    for (std::size_t rank = 0; rank < keys.size(); ++rank) {
      colours_[rank] =
          names.try_emplace(keys[rank], static_cast<std::uint32_t>(names.size())).first->second;
    }
    count_ = names.size();
  }
  /// Gives ranks colours by program and speed.
  void rename() {
    std::vector<std::pair<std::uint32_t, double>> keys;
    keys.reserve(colours_.size());
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      keys.emplace_back(colours_[static_cast<std::size_t>(rank)], input_.speed(rank));
    }
    recolour(keys);
  }

  void refine() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> keys;
    keys.reserve(colours_.size());
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      Hash hash;
      hash.add(colours_[static_cast<std::size_t>(rank)]);
      for (const auto& [kind, type] : contacts(rank).collectives) {
        add_collective(hash, rank, kind, type);
      }
      for (std::int64_t peer : contacts(rank).sources) {
        add_partner(hash, rank, rank + peer, true);
      }
      for (std::int64_t peer : contacts(rank).destinations) {
        add_partner(hash, rank, rank + peer, false);
      }
      keys.push_back(hash.value());
    }
    recolour(keys);
  }

  void add_partner(Hash& hash, std::int64_t rank, std::int64_t partner, bool by_colour) const {
    if (partner < 0 || partner >= ranks_) {
      hash.add(~std::uint64_t{0});
      return;
    }
    if (by_colour) {
      hash.add(colours_[static_cast<std::size_t>(partner)]);
    }
    for (Bytes probe : {Bytes(0), kProbe}) {
      hash.add(static_cast<std::uint64_t>(wires_.between(partner, rank, probe).value()));
    }
  }

  void add_collective(Hash& hash, std::int64_t rank, std::uint32_t kind, PhaseType type) {
    const Communicators::Membership own = communicators_.find(rank, kind);
    const Shape& shape = communicators_.shape_of(own.communicator);
    hash.add(shape.id);
    const bool parts = planner_.alternates(shape, type) || planner_.rooted(type);
    if (parts) {
      hash.add(own.local);
    }
    const bool whole = planner_.one_ring(shape, type);
    const Axis all{0, shape.members, 1, false};
    for (const Axis& axis : shape.axes) {
      if (axis.size > 1 && !whole) {
        add_axis(hash, rank, kind, own, axis);
      }
    }
    if (whole && shape.members > 1) {
      add_axis(hash, rank, kind, own, all);
    }
  }

  /// Colours at all distances, in both senses in which algorithms count them.
  void add_axis(Hash& hash, std::int64_t rank, std::uint32_t kind,
                const Communicators::Membership& own, const Axis& axis) {
    const auto stride = static_cast<std::int64_t>(axis.local_stride);
    const std::int64_t position = own.local / stride % axis.size;
    const std::int64_t origin = own.local - position * stride;
    for (std::int64_t distance = 1; distance < axis.size; ++distance) {
      for (const std::int64_t at : {(position + distance) % axis.size, position ^ distance}) {
        if (at >= axis.size) {
          continue;
        }
        const std::int64_t partner = communicators_.rank_of(
            own.communicator, static_cast<std::uint32_t>(origin + at * stride));
        hash.add(colours_[static_cast<std::size_t>(partner)]);
        hash.add(kind_of_partner(input_.traces, communicators_, rank, kind, partner));
        if (!axis.uniform) {
          add_partner(hash, rank, partner, false);
        }
      }
    }
  }

  const RunInput& input_;
  const RunOptions& options_;
  Communicators& communicators_;
  const Planner& planner_;
  Wires wires_;
  std::int64_t ranks_;
  std::vector<std::uint32_t> colours_;
  std::size_t count_ = 0;
  std::vector<Contacts> contacts_;  ///< by program
};

}  // namespace

std::uint32_t kind_of_partner(const chakra::TraceSet& traces, const Communicators& communicators,
                              std::int64_t peer, std::uint32_t kind, std::int64_t rank) {
  const auto& kinds = communicators.kinds();
  if (kinds[kind].slot == chakra::kWorldSlot) {
    return kind;
  }
  const std::uint32_t group = traces.group(peer, kinds[kind].slot);
  const auto slots = [&](std::int64_t of) {
    const auto index = static_cast<std::size_t>(of);
    const std::size_t end = index + 1 < traces.first_slot.size() ? traces.first_slot[index + 1]
                                                                 : traces.group_slots.size();
    return end - traces.first_slot[index];
  };
  for (std::uint32_t candidate = 0; candidate < kinds.size(); ++candidate) {
    const std::uint32_t slot = kinds[candidate].slot;
    if (slot != chakra::kWorldSlot && slot <= slots(rank) && traces.group(rank, slot) == group) {
      return candidate;
    }
  }
  return Communicators::kUnknown;
}

std::optional<std::vector<std::uint32_t>> colour_ranks(const RunInput& input,
                                                       const RunOptions& options,
                                                       Communicators& communicators,
                                                       const Planner& planner) {
  return Colouring(input, options, communicators, planner).run();
}

}  // namespace orrery::astra
