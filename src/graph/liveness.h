// SPDX-License-Identifier: Apache-2.0
/// Says how much memory is held when: allocations of one instance, and of many one after the other.
///
///   within an instance   moments are its operators in issue order; an allocation is held from the
///                        moment of its first use to that of its last:
///                          held(m) = sum of allocations with first <= m <= last
///   over instances       level = state + sum of changes (leaves - enters) of the instances before
///                        peak  = max over instances of level + max over moments of held
///
/// Ignores: alignment and fragmentation; that instances of one rank overlap in time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "graph/index.h"
#include "graph/tensor.h"

namespace orrery::graph {

struct Role;
struct Template;
struct Workload;

inline constexpr std::size_t kMostMemoryRows = 8;

/// Bytes by row of a workload's table `memory`; sums saturate as Bytes do.
struct MemoryBytes {
  std::array<Bytes, kMostMemoryRows> bytes{};

  Bytes operator[](MemoryIndex row) const { return bytes[*row]; }
  Bytes& operator[](MemoryIndex row) { return bytes[*row]; }
  Bytes total() const {
    Bytes sum{0};
    for (const Bytes part : bytes) {
      sum += part;
    }
    return sum;
  }
  MemoryBytes& operator+=(const MemoryBytes& other) {
    for (std::size_t row = 0; row < bytes.size(); ++row) {
      bytes[row] += other.bytes[row];
    }
    return *this;
  }
  MemoryBytes& operator-=(const MemoryBytes& other) {
    for (std::size_t row = 0; row < bytes.size(); ++row) {
      bytes[row] -= other.bytes[row];
    }
    return *this;
  }
  MemoryBytes& operator*=(std::int64_t times) {
    for (Bytes& part : bytes) {
      part = part * times;
    }
    return *this;
  }
  void raise_to(const MemoryBytes& other) {
    for (std::size_t row = 0; row < bytes.size(); ++row) {
      bytes[row] = std::max(bytes[row], other.bytes[row]);
    }
  }
  friend MemoryBytes operator+(MemoryBytes a, const MemoryBytes& b) { return a += b; }
  friend bool operator==(const MemoryBytes&, const MemoryBytes&) = default;
};

/// Memory below a device's own: host, storage, the machine's remote memory.
inline constexpr std::size_t kLowerTierCount = 3;
inline constexpr std::size_t kHostLower = 0;
inline constexpr std::size_t kRemoteLower = 2;
using LowerTiers = std::array<Bytes, kLowerTierCount>;
/// Returns the row of LowerTiers of a tier below the device's (Node::tier).
constexpr std::size_t lower_row(int tier) {
  return tier < 0 ? kRemoteLower : static_cast<std::size_t>(tier - 1);
}

/// An allocation and the moments of its instance in which it is held.
struct Allocation {
  std::string_view name;
  MemoryIndex memory;
  Bytes bytes{0};
  std::size_t first = 0;  ///< leaves: may be the number of moments, after all of them
  std::size_t last = 0;   ///< of leaves ignored, as is `first` of enters
  Tensor::Lifetime lifetime = Tensor::Lifetime::instance;
  int tier = 0;
  std::uint32_t shared = 0;

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// A Liveness is the memory of one instance, relative to the level when it begins.
struct Liveness {
  MemoryBytes most;        ///< at the moment with the most bytes, the first such
  Bytes most_total{0};     ///< its sum
  std::size_t moment = 0;  ///< which that is
  std::size_t moments = 0;
  MemoryBytes highest;    ///< of each row on its own
  MemoryBytes change;     ///< after it
  Bytes change_total{0};  ///< its sum
  LowerTiers taken{};     ///< by what leaves
  LowerTiers given{};     ///< by what enters
  std::vector<Allocation> shared;

  /// Joins this instance and the next one to one instance.
  Liveness& then(const Liveness& next);
};
Liveness liveness(std::span<const Allocation> allocations, std::size_t moments);
/// Returns the liveness of two that run at once, of which the first begins no moment before the
/// second has ended as many:
///
///   most = max over moments k of the first of
///          held_1(k) + max(what is left after the second, max over j >= k of held_2(j))
///
/// `moment`: of the second, then those of the first beside what is left of it.
Liveness concurrent_liveness(std::span<const Allocation> first, std::size_t first_moments,
                             std::span<const Allocation> second, std::size_t second_moments);
/// Returns the allocations of a template; its moments are all operators of its nodes (of a node
/// without: 1).
Liveness liveness(const Template& t);

/// Followed sums up many instances one after the other: what is held below the device, and which
/// shared allocations.
class Followed {
 public:
  explicit Followed(const LowerTiers& lower) : lower_(lower), most_lower_(lower) {}

  /// hold(allocation, +1 or -1): of a shared allocation, the first is made and the last is over.
  template <class Hold>
  void begin(const Liveness& instance, std::int64_t times, const Hold& hold) {
    if (!instance.shared.empty()) {
      share(instance, Tensor::Lifetime::leaves, times, hold);
    }
    for (std::size_t row = 0; row < lower_.size(); ++row) {
      lower_[row] += instance.taken[row] * times;
      most_lower_[row] = std::max(most_lower_[row], lower_[row]);
    }
  }
  template <class Hold>
  void end(const Liveness& instance, std::int64_t times, const Hold& hold) {
    for (std::size_t row = 0; row < lower_.size(); ++row) {
      lower_[row] -= instance.given[row] * times;
    }
    if (!instance.shared.empty()) {
      share(instance, Tensor::Lifetime::enters, times, hold);
    }
  }
  const LowerTiers& most_lower() const { return most_lower_; }

 private:
  template <class Hold>
  void share(const Liveness& instance, Tensor::Lifetime lifetime, std::int64_t times,
             const Hold& hold) {
    for (const Allocation& allocation : instance.shared) {
      if (allocation.lifetime == lifetime) {
        const std::int64_t more = lifetime == Tensor::Lifetime::leaves ? times : -times;
        if (const std::int64_t sign = changes(allocation, more); sign != 0) {
          hold(allocation, sign);
        }
      }
    }
  }
  /// Returns 1 if the allocation is held from now on, -1 if it is not any more, 0 if nothing
  /// changes.
  std::int64_t changes(const Allocation& allocation, std::int64_t more);

  LowerTiers lower_;
  LowerTiers most_lower_;
  std::vector<std::pair<std::uint32_t, std::int64_t>> in_flight_;  // of shared allocations
};

/// Follows the level over instances.
class MemoryLevel {
 public:
  explicit MemoryLevel(const MemoryBytes& state, const LowerTiers& lower = {})
      : level_(state), highest_(state), followed_(lower) {}

  /// Returns the bytes held at the fullest moment of an instance; where it has none, the level.
  MemoryBytes run(const Liveness& instance);
  /// Skips `times` instances, of which nobody asks what they hold while they run.
  void skip(const Liveness& instance, std::int64_t times);

  const MemoryBytes& level() const { return level_; }
  const MemoryBytes& highest() const { return highest_; }  ///< of each row on its own
  const LowerTiers& most_lower() const { return followed_.most_lower(); }

 private:
  void begin(const Liveness& instance, std::int64_t times);
  void end(const Liveness& instance, std::int64_t times);

  MemoryBytes level_;
  MemoryBytes highest_;
  Followed followed_;
};

/// The same of the sum over the rows alone, for who follows very many.
class TotalLevel {
 public:
  explicit TotalLevel(const MemoryBytes& state, const LowerTiers& lower = {})
      : level_(state.total()), followed_(lower) {}

  /// Runs one instance and returns the most bytes that it holds, as MemoryLevel::run() does.
  Bytes run(const Liveness& instance) {
    followed_.begin(instance, 1, Hold{level_});
    const Bytes fullest = instance.moments > 0 ? level_ + instance.most_total : level_;
    end(instance, 1);
    return fullest;
  }
  void skip(const Liveness& instance, std::int64_t times) {
    followed_.begin(instance, times, Hold{level_});
    end(instance, times);
  }

  Bytes level() const { return level_; }
  const LowerTiers& most_lower() const { return followed_.most_lower(); }

 private:
  struct Hold {
    Bytes& level;
    void operator()(const Allocation& allocation, std::int64_t sign) const {
      level += allocation.bytes * sign;
    }
  };
  void end(const Liveness& instance, std::int64_t times) {
    level_ += instance.change_total * times;
    followed_.end(instance, times, Hold{level_});
  }

  Bytes level_;
  Followed followed_;
};

/// Returns the bytes that a role holds on the device all the time.
MemoryBytes state_of(const Role& role);

struct MemoryPeak {
  MemoryBytes bytes;
  std::int64_t instance = 0;  ///< of the role's issue list
  MemoryBytes highest;        ///< of each row on its own
  LowerTiers lower{};         ///< most on each tier below
  MemoryBytes end;
};
/// Returns the peak of one rank of a role, instance after instance. Requires a source that is a
/// list.
MemoryPeak memory_peak(const Workload& workload, int role);

}  // namespace orrery::graph
