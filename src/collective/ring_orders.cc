// SPDX-License-Identifier: Apache-2.0
#include "collective/ring_orders.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/lists.h"
#include "collective/steps.h"

namespace orrery::collective {
namespace {

using Orders = std::vector<std::vector<int>>;

std::vector<int> ascending(int members) {
  std::vector<int> order(static_cast<std::size_t>(members));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Orders cycles_of(const Extent& extent, const machine::Machine& machine) {
  const auto members = static_cast<int>(extent.count);
  const Fabric fabric =
      fabric_of(extent, machine.network[static_cast<std::size_t>(extent.dimension)]);
  if (fabric.form == Fabric::Form::complete) {
    return complete_cycles(members);
  }
  Orders orders{ascending(members)};
  if (fabric.form == Fabric::Form::cycle) {
    orders.emplace_back(orders[0].rbegin(), orders[0].rend());
  }
  return orders;
}

/// Returns the order that goes through all of `inside` in each coordinate of `outside`, back and
/// forth.
std::vector<int> there_and_back(const std::vector<int>& inside, const std::vector<int>& outside) {
  std::vector<int> order;
  for (std::size_t block = 0; block < outside.size(); ++block) {
    std::vector<int> members = mapped(inside, [&](const int member) {
      return outside[block] * static_cast<int>(inside.size()) + member;
    });
    if (block % 2 == 1) {
      std::reverse(members.begin(), members.end());
    }
    order.insert(order.end(), members.begin(), members.end());
  }
  return order;
}

/// Returns the outermost orders, and where their closing edge crosses the dimensions inside
/// (flat.h), in every block once.
Orders outer_orders(const Extent& extent, const machine::Machine& machine, bool closes) {
  Orders orders;
  for (std::vector<int> order : cycles_of(extent, machine)) {
    for (std::size_t turn = 0; turn < (closes ? order.size() : 1); ++turn) {
      orders.push_back(order);
      std::rotate(order.begin(), order.begin() + 1, order.end());
    }
  }
  return orders;
}

Orders orders_over(std::span<const Extent> extents, const machine::Machine& machine, bool turned) {
  if (extents.size() == 1) {
    return cycles_of(extents.back(), machine);
  }
  const Extent& last = extents.back();
  const bool closes = turned && last.count % 2 == 1 &&
                      machine.network[static_cast<std::size_t>(last.dimension)].kind !=
                          topology::DimensionKind::switched;
  Orders orders;
  for (const std::vector<int>& outer : outer_orders(last, machine, closes)) {
    for (std::vector<int> inner : orders_over(extents.first(extents.size() - 1), machine, false)) {
      for (std::size_t turn = 0; turn < (turned ? inner.size() : 1); ++turn) {
        orders.push_back(there_and_back(inner, outer));
        std::rotate(inner.begin(), inner.begin() + 1, inner.end());
      }
    }
  }
  return orders;
}

}  // namespace

Orders complete_cycles(int members) {
  if (members <= 3) {
    Orders orders{ascending(members)};
    if (members == 3) {
      orders.push_back({0, 2, 1});
    }
    return orders;
  }
  Orders orders;
  const int circle = members - 1;
  for (int turn = 0; turn < circle / 2; ++turn) {
    std::vector<int> order{circle};
    for (int i = 0; i < circle; ++i) {
      const int zigzag = i % 2 == 1 ? (i + 1) / 2 : circle - i / 2;
      order.push_back((zigzag + turn) % circle);
    }
    orders.push_back(order);
    orders.emplace_back(order.rbegin(), order.rend());
  }
  return orders;
}

Orders ring_orders(std::span<const Extent> extents, const machine::Machine& machine) {
  return orders_over(extents, machine, true);
}

MessageSchedule rings(graph::CollectiveKind kind, const Orders& orders, int chunks,
                      CollectiveAlgorithm algorithm) {
  const auto ranks = static_cast<int>(orders.front().size());
  MessageSchedule one = schedule_of(kind, algorithm, ranks, chunks).value_or(MessageSchedule{});
  const auto count = static_cast<int>(orders.size());
  MessageSchedule all{.kind = kind,
                      .ranks = ranks,
                      .blocks = one.blocks * count,
                      .block_share = one.block_share / count,
                      .messages = {},
                      .lanes = one.lanes * count};
  Orders places = orders;
  for (std::vector<int>& order : places) {
    if (kind == graph::CollectiveKind::broadcast) {
      std::rotate(order.begin(), std::find(order.begin(), order.end(), 0), order.end());
    }
  }
  all.messages.reserve(one.messages.size() * orders.size());
  for (const Message& original : one.messages) {  // of one ring after the other, message by message
    for (int ring = 0; ring < count; ++ring) {
      const std::vector<int>& order = places[static_cast<std::size_t>(ring)];
      Message message = original;
      message.sender = order[static_cast<std::size_t>(message.sender)];
      message.receiver = order[static_cast<std::size_t>(message.receiver)];
      for (int& block : message.blocks) {
        block += ring * one.blocks;
      }
      for (int& earlier : message.after) {
        earlier = earlier * count + ring;
      }
      all.messages.push_back(std::move(message));
    }
  }
  return all;
}

}  // namespace orrery::collective
