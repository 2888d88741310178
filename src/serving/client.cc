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
}

Time Client::next_sent() const {
  if (next_ == requests_.size() || (limited_ && users_.empty())) {
    return Time::max();
  }
  const Time arrival = requests_[next_].arrival;
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
    on_the_way_.push_back({.request = next_++, .sent = sent, .queued = sent + front_end_});
  }
  if (on_the_way_.empty() || on_the_way_.front().queued > now) {
    return std::nullopt;
  }
  const Delivery delivery = on_the_way_.front();
  on_the_way_.pop_front();
  return delivery;
}

void Client::ended(std::size_t /*request*/, Time at) {
  if (limited_) {
    users_.push(at + think_);
  }
}

}  // namespace orrery::serving
