// SPDX-License-Identifier: Apache-2.0
#include "collective/message_list.h"

#include <unordered_map>

namespace orrery::collective {

MessageList::MessageList(const MessageSchedule& schedule) : block_share_(schedule.block_share) {
  std::unordered_map<std::int64_t, std::uint32_t> known;
  pair_.reserve(schedule.messages.size());
  for (const Message& message : schedule.messages) {
    const std::int64_t both =
        static_cast<std::int64_t>(message.sender) * schedule.ranks + message.receiver;
    const auto [found, fresh] = known.try_emplace(both, static_cast<std::uint32_t>(pairs_.size()));
    if (fresh) {
      pairs_.push_back({static_cast<std::uint32_t>(message.sender),
                        static_cast<std::uint32_t>(message.receiver)});
    }
    pair_.push_back(found->second);
    blocks_.push_back(static_cast<std::uint32_t>(message.blocks.size()));
    waits_.push_back(static_cast<std::uint32_t>(message.after.size()));
  }
  link(schedule);
}

/// Turns `after` round.
void MessageList::link(const MessageSchedule& schedule) {
  first_unlock_.assign(size() + 1, 0);
  for (const Message& message : schedule.messages) {
    for (const int before : message.after) {
      ++first_unlock_[static_cast<std::size_t>(before) + 1];
    }
  }
  for (std::size_t m = 0; m < size(); ++m) {
    first_unlock_[m + 1] += first_unlock_[m];
  }
  unlocks_.resize(first_unlock_.back());
  std::vector<std::uint32_t> next(first_unlock_.begin(), first_unlock_.end() - 1);
  for (std::uint32_t m = 0; m < size(); ++m) {
    for (const int before : schedule.messages[m].after) {
      unlocks_[next[static_cast<std::size_t>(before)]++] = m;
    }
  }
}

}  // namespace orrery::collective
