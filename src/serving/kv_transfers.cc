// SPDX-License-Identifier: Apache-2.0
#include "serving/kv_transfers.h"

#include <algorithm>

namespace orrery::serving {
namespace {

constexpr std::uint32_t kStart = 0;

topology::LinkMap laid(const machine::Machine& machine) {
  topology::LinkMap map(machine.network);
  map.lay(machine.wires);
  return map;
}

}  // namespace

KvTransfers::KvTransfers(const machine::Machine& machine,
                         std::optional<simulate::NetworkModel> network)
    : map_(laid(machine)), network_(std::in_place_index<0>, map_.links()) {
  if (network == simulate::NetworkModel::fifo) {
    network_.emplace<network::FifoNetwork>(map_.links());
  }
}

std::size_t KvTransfers::begin(Time at, const Placement& source, const Placement& destination,
                               Bytes bytes) {
  transfers_.push_back({source, destination, bytes, 0});
  queue_.push(at, kStart, static_cast<std::uint32_t>(transfers_.size() - 1));
  return transfers_.size() - 1;
}

void KvTransfers::start(std::size_t transfer) {
  const Transfer it = transfers_[transfer];
  const std::int64_t from = it.source.ranks;
  const std::int64_t to = it.destination.ranks;
  for (std::int64_t rank = 0; rank < to; ++rank) {
    const std::int64_t first = rank * from / to;
    const std::int64_t end = std::max(first + 1, (rank + 1) * from / to);
    for (std::int64_t source = first; source < end; ++source) {
      start_message(transfer, it.source.first + source, it.destination.first + rank,
                    it.bytes / (end - first));
    }
  }
}

void KvTransfers::start_message(std::size_t transfer, std::int64_t from, std::int64_t to,
                                Bytes bytes) {
  auto [route, fresh] = routes_.try_emplace({from, to});
  if (fresh) {
    map_.route(from, to, route->second);
  }
  const network::TransferId id =
      std::visit([&](auto& links) { return links.start(bytes, route->second, queue_); }, network_);
  owner_.resize(std::max<std::size_t>(owner_.size(), id + 1));
  owner_[id] = transfer;
  ++transfers_[transfer].messages;
}

const std::vector<std::size_t>& KvTransfers::advance(Time until) {
  ended_.clear();
  while (!queue_.empty() && queue_.next_time() <= until) {
    const engine::EventQueue::Event event = queue_.pop();
    std::visit(
        [&](auto& links) {
          if (event.kind == kStart) {
            start(event.subject);
          } else if (links.handle(event, queue_) &&
                     --transfers_[owner_[event.subject]].messages == 0) {
            ended_.push_back(owner_[event.subject]);
          }
          if (queue_.instant_is_over()) {
            links.settle(queue_);
          }
        },
        network_);
  }
  return ended_;
}

}  // namespace orrery::serving
