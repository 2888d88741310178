// SPDX-License-Identifier: Apache-2.0
#include "serving/client.h"

#include <algorithm>

namespace orrery::serving {

Client::Client(const std::vector<requests::Request>& requests, std::int64_t max_concurrency,
               Time think, Time front_end)
    : requests_(requests), limited_(max_concurrency > 0), think_(think), front_end_(front_end) {
  for (std::int64_t user = 0; user < max_concurrency; ++user) {
    users_.push(Time(0));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].after >= 0) {
      turn_after_.resize(requests.size(), 0);
      turn_after_[static_cast<std::size_t>(requests[i].after)] = i;
    }
  }
}

std::size_t Client::next_request() const {
  const bool turn = !turns_.empty() &&
                    (next_ == requests_.size() || turns_.top().first < requests_[next_].arrival);
  return turn ? turns_.top().second : next_;
}

Time Client::next_sent() const {
  const std::size_t request = next_request();
  if (request == requests_.size() || (limited_ && users_.empty())) {
    return Time::max();
  }
  const Time arrival = request == next_ ? requests_[next_].arrival : turns_.top().first;
  return limited_ ? std::max(arrival, users_.top()) : arrival;
}

Time Client::next() const {
  return on_the_way_.empty() ? next_sent() + front_end_ : on_the_way_.front().queued;
}

std::optional<Delivery> Client::pop(Time now) {
  for (Time sent = next_sent(); sent <= now && !sent.is_overflow(); sent = next_sent()) {
    if (limited_) {
      users_.pop();
    }
    const std::size_t request = next_request();
    on_the_way_.push_back({.request = request, .sent = sent, .queued = sent + front_end_});
    if (request != next_) {
      turns_.pop();
      continue;
    }
    do {
      ++next_;
    } while (next_ < requests_.size() && requests_[next_].after >= 0);
  }
  if (on_the_way_.empty() || on_the_way_.front().queued > now) {
    return std::nullopt;
  }
  const Delivery delivery = on_the_way_.front();
  on_the_way_.pop_front();
  return delivery;
}

void Client::ended(std::size_t request, Time at) {
  if (const std::size_t turn = turn_after_.empty() ? 0 : turn_after_[request]; turn > 0) {
    turns_.emplace(at + requests_[turn].arrival, turn);
  }
  if (limited_) {
    users_.push(at + think_);
  }
}

}  // namespace orrery::serving
