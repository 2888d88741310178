// SPDX-License-Identifier: Apache-2.0
/// Known content of KV blocks in memory below the accelerator's: host, disk, a store behind the
/// network.
///
///   written   when a request ends, what others may want of it and the tier lacks; its blocks are
///             free when the first tier has it. Each tier's content goes on to the next one.
///   found     beyond what the prefix cache has, block by block, in whichever tier
///   fetched   each block from the first tier that has it, in one copy per tier; the request has
///             blocks for all of its prompt, and waits
///   dropped   what was used least recently, where a tier is full
///
/// A tier makes one copy after the other, in the order in which they are asked for, whichever way:
///
///   begin = max(asked, end of the one before)      end = begin + latency + bytes / bandwidth
///
/// All per device: every rank copies its share beside the others, and every copy of an engine's
/// attention (dp) has tiers of its own. `remote` is one store of all copies and engines of a fleet:
/// each reaches it by a way of its own, and finds what any of them has written
/// from the moment it is there. What two of them write at a time is copied twice. With a bandwidth
/// of its own, S, the store too serves one copy after the other, of all ranks of an engine
/// together:
///
///   end = max(that of the way, latency + max(begin, end of the store's before) + ranks bytes / S)
///
/// Ignores:  a stop at a tier between; copies that take bandwidth from collectives; fetching what
///           would be computed sooner; content of requests that were preempted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"
#include "machine/memory/resident_set.h"
#include "serving/scheduler/scheduler.h"

namespace orrery::serving {

struct KvTier {
  std::string name;
  Bytes capacity{0};
  Bandwidth bandwidth{0};
  Time latency{0};
  Bandwidth store{0};  ///< of a store, for all who reach it; 0: no limit
};
/// A store behind the network: the name of such a tier.
constexpr std::string_view kRemoteTier = "remote";

/// The parts of "host:100 GB,remote:1 TB@20 GB/s": sizes, and a store's own bandwidth, where they
/// are stated. Mistakes: of its form.
struct NamedTier {
  std::string name;
  std::optional<Bytes> size;
  std::optional<Bandwidth> store;
};
Result<std::vector<NamedTier>> named_tiers(const std::string& text);
/// Reads "host:100 GB,nvme": memory tiers of the device after its first one, or `remote`, a store
/// behind the outermost dimension of the network; a size each, per device, or all that the tier has
/// (of `remote` it must be stated). Mistakes: other names, sizes.
Result<std::vector<KvTier>> kv_tiers_of(const std::string& text, const machine::Machine& machine);

/// Content of a tier that several engines write to. They ask in the order of time.
class KvStore {
 public:
  explicit KvStore(Bytes capacity, Bandwidth own = Bandwidth(0)) : content_(capacity), own_(own) {}

  /// Returns the end of moving `bytes` by its own bandwidth, after what it was asked for before.
  Time moved(Time begin, Bytes bytes);

  bool holds(std::uint64_t key) const { return content_.holds(static_cast<std::int64_t>(key)); }
  void use(std::uint64_t key, Bytes block) { content_.use(static_cast<std::int64_t>(key), block); }
  /// Expects these keys, which are there from `at` on.
  void expect(Time at, std::vector<std::uint64_t> keys, Bytes block);
  /// Returns when the next ones are; Time::max(): none are expected.
  Time next() const { return coming_.empty() ? Time::max() : coming_.top().at; }
  void advance(Time now);

 private:
  struct Coming {
    Time at{0};
    std::uint64_t order = 0;
    Bytes block{0};
    std::vector<std::uint64_t> keys;
    bool operator>(const Coming& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  memory::ResidentSet content_;
  Bandwidth own_{0};
  Time free_{0};
  std::priority_queue<Coming, std::vector<Coming>, std::greater<>> coming_;
  std::uint64_t order_ = 0;
};

class KvTiers : public scheduler::LowerTiers {
 public:
  /// Makes the tiers of an engine of so many ranks. Requires tiers, block > 0.
  KvTiers(const std::vector<KvTier>& tiers, Bytes block, std::int64_t ranks = 1);

  /// Makes `store` its tier `remote` from now on, as other engines'. A block takes `block` of its
  /// capacity: what it takes on a device of all of them, where their devices hold unequal shares.
  void share(const std::shared_ptr<KvStore>& store, Bytes block);

  bool holds(std::uint64_t key) const override;
  void fetch(Time at, const scheduler::Fetch& fetch);
  /// Returns false where the tiers have or get all of it; nothing begins then.
  bool write(Time at, scheduler::RequestIndex request, const std::vector<std::uint64_t>& keys);

  /// Returns when the next copy ends, or a shared store has more; Time::max(): none is in flight.
  Time next() const;
  struct Done {
    scheduler::RequestIndex request = 0;
    bool fetched = false;  ///< else written: its blocks may go
    Time asked{0};
  };
  /// Returns the moves that have ended by `now`, in order.
  std::vector<Done> advance(Time now);

  std::int64_t written_blocks() const { return written_; }

 private:
  struct Tier {
    KvTier is;
    std::shared_ptr<KvStore> store;
    Bytes block{0};                            ///< of the store's capacity
    std::unordered_set<std::uint64_t> coming;  ///< written by this engine, not there yet
    Time free{0};
  };
  struct Copy {
    Time end{0};
    std::uint64_t order = 0;
    std::size_t tier = 0;
    scheduler::RequestIndex request = -1;  ///< that waits for it; -1: nobody
    bool fetches = false;
    Time asked{0};
    std::vector<std::uint64_t> keys;
    bool operator>(const Copy& other) const {
      return end != other.end ? end > other.end : order > other.order;
    }
  };

  /// Returns when a tier has copied so many blocks more.
  Time copied(Tier& tier, Time at, std::size_t blocks) const;
  /// Begins to write there what of `keys` the tier lacks.
  bool write_to(std::size_t tier, Time at, scheduler::RequestIndex request,
                const std::vector<std::uint64_t>& keys);

  Bytes block_;
  std::int64_t ranks_ = 1;
  std::vector<Tier> tiers_;
  std::priority_queue<Copy, std::vector<Copy>, std::greater<>> copies_;
  std::uint64_t order_ = 0;
  std::int64_t written_ = 0;
};

}  // namespace orrery::serving
