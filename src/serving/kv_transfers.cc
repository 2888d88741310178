// SPDX-License-Identifier: Apache-2.0
#include "serving/kv_transfers.h"

#include <algorithm>
#include <span>
#include <type_traits>

#include "machine/network/fair.h"
#include "machine/network/fifo.h"
#include "machine/network/flit/network.h"
#include "machine/network/packets/packet_links.h"

namespace orrery::serving {
namespace {

constexpr std::uint32_t kStart = 0;
constexpr std::uint32_t kBound = 1;  // nothing happens: the network looks no further

topology::LinkMap laid(const machine::Machine& machine) {
  topology::LinkMap map(machine.network);
  map.lay(machine.wires);
  return map;
}

/// Parts of the source that have some of a part of the destination: [first, end).
struct Sources {
  std::int64_t first = 0;
  std::int64_t end = 0;
};
Sources sources_of(std::int64_t part, std::int64_t from, std::int64_t to) {
  const std::int64_t first = part * from / to;
  return {first, std::max(first + 1, (part + 1) * from / to)};
}

}  // namespace

/// A model of the network.
struct KvTransfers::Links {
  virtual ~Links() = default;
  virtual Result<void> check() const = 0;
  /// Returns whether settle() simulates up to the next event of the queue.
  virtual bool looks_ahead() const = 0;
  virtual network::TransferId start(const topology::FlowEnds& message,
                                    std::span<const topology::Hop> route,
                                    engine::EventQueue& queue) = 0;
  virtual bool handle(const engine::EventQueue::Event& event, engine::EventQueue& queue) = 0;
  virtual void settle(engine::EventQueue& queue) = 0;
};

template <class Network>
struct KvTransfers::LinksOf : Links {
  template <class... Arguments>
  explicit LinksOf(const Arguments&... arguments) : network(arguments...) {}

  Result<void> check() const override {
    if constexpr (requires { network.check(); }) {
      return network.check();
    }
    return {};
  }
  bool looks_ahead() const override {
    return std::is_same_v<Network, flit::FlitNetwork> ||
           std::is_same_v<Network, packets::PacketLinks>;
  }
  network::TransferId start(const topology::FlowEnds& message, std::span<const topology::Hop> route,
                            engine::EventQueue& queue) override {
    if constexpr (std::is_same_v<Network, packets::PacketLinks>) {
      return network.start(message, route, queue);
    } else {
      return network.start(message.bytes, route, queue);
    }
  }
  bool handle(const engine::EventQueue::Event& event, engine::EventQueue& queue) override {
    return network.handle(event, queue);
  }
  void settle(engine::EventQueue& queue) override { network.settle(queue); }

  Network network;
};

KvTransfers::KvTransfers(const machine::Machine& machine,
                         std::optional<simulate::NetworkModel> network)
    : map_(laid(machine)) {
  using simulate::NetworkModel;
  network::PacketOptions packets = machine.packet;
  packets.seed = machine.wires.seed;
  switch (network.value_or(NetworkModel::flow)) {
    case NetworkModel::fifo:
      links_ = std::make_unique<LinksOf<network::FifoNetwork>>(map_.links());
      break;
    case NetworkModel::flit:
      links_ = std::make_unique<LinksOf<flit::FlitNetwork>>(map_, machine.flit, true);
      break;
    case NetworkModel::packet:
      links_ = std::make_unique<LinksOf<packets::PacketLinks>>(map_, packets);
      break;
    case NetworkModel::ports:
    case NetworkModel::flow:
      links_ = std::make_unique<LinksOf<network::FairNetwork>>(map_.links());
      break;
  }
}

KvTransfers::~KvTransfers() = default;

Result<void> KvTransfers::check() const {
  return links_->check();
}

std::size_t KvTransfers::begin(Time at, const Placement& source, const Placement& destination,
                               Bytes bytes) {
  transfers_.push_back({source, destination, bytes, 0});
  queue_.push(at, kStart, static_cast<std::uint32_t>(transfers_.size() - 1));
  ++under_way_;
  return transfers_.size() - 1;
}

void KvTransfers::start(std::size_t transfer) {
  const Transfer it = transfers_[transfer];
  const Placement& from = it.source;
  const Placement& to = it.destination;
  for (std::int64_t rank = 0; rank < to.ranks(); ++rank) {
    const Sources heads = sources_of(rank % to.heads, from.heads, to.heads);
    const Sources tokens = sources_of(rank / to.heads % to.tokens, from.tokens, to.tokens);
    const Sources layers = sources_of(rank / to.heads / to.tokens, from.layers, to.layers);
    const std::int64_t of_heads = heads.end - heads.first;
    const std::int64_t of_tokens = tokens.end - tokens.first;
    const std::int64_t messages = of_heads * of_tokens * (layers.end - layers.first);
    for (std::int64_t i = 0; i < messages; ++i) {  // heads innermost, layers outermost
      const std::int64_t h = heads.first + i % of_heads;
      const std::int64_t t = tokens.first + i / of_heads % of_tokens;
      const std::int64_t l = layers.first + i / of_heads / of_tokens;
      start_message(transfer, from.first + h + from.heads * (t + from.tokens * l), to.first + rank,
                    it.bytes / messages);
    }
  }
}

void KvTransfers::start_message(std::size_t transfer, std::int64_t from, std::int64_t to,
                                Bytes bytes) {
  auto [route, fresh] = routes_.try_emplace({from, to});
  if (fresh) {
    map_.route(from, to, route->second);
  }
  const topology::FlowEnds ends{static_cast<std::int32_t>(from), static_cast<std::int32_t>(to),
                                bytes};
  const network::TransferId id = links_->start(ends, route->second, queue_);
  owner_.resize(std::max<std::size_t>(owner_.size(), id + 1));
  owner_[id] = transfer;
  ++transfers_[transfer].messages;
}

bool KvTransfers::looks_ahead() const {
  return links_->looks_ahead() && under_way_ > 0;
}

/// Lets rates follow. A network that looks ahead is settled by whoever says how far.
void KvTransfers::settle() {
  if (!links_->looks_ahead() && queue_.instant_is_over()) {
    links_->settle(queue_);
  }
}

Time KvTransfers::next(Time bound) {
  if (looks_ahead()) {
    if (!bound.is_overflow()) {
      queue_.push(std::max(bound, queue_.now()), kBound, 0);
    }
    for (;;) {
      links_->settle(queue_);
      // The heap's first is the queue's next.
      if (queue_.empty() || queue_.pending().front().kind != kBound) {
        break;
      }
      if (queue_.next_time() >= bound) {
        return Time::max();
      }
      queue_.pop();
    }
  }
  return queue_.empty() ? Time::max() : queue_.next_time();
}

const KvTransfers::Changes& KvTransfers::advance(Time until) {
  changes_.begun.clear();
  changes_.ended.clear();
  if (looks_ahead()) {
    queue_.push(std::max(until, queue_.now()), kBound, 0);
  }
  while (!queue_.empty() && queue_.next_time() <= until) {
    if (links_->looks_ahead() && queue_.instant_is_over()) {
      links_->settle(queue_);
    }
    const engine::EventQueue::Event event = queue_.pop();
    if (event.kind == kStart) {
      start(event.subject);
      changes_.begun.push_back(event.subject);
    } else if (event.kind != kBound && links_->handle(event, queue_) &&
               --transfers_[owner_[event.subject]].messages == 0) {
      changes_.ended.push_back(owner_[event.subject]);
      --under_way_;
    }
    settle();
  }
  return changes_;
}

}  // namespace orrery::serving
