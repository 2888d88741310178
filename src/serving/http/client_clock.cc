// SPDX-License-Identifier: Apache-2.0
#include "serving/http/client_clock.h"

namespace orrery::http {

void ClientClock::count(const Client& client, std::int64_t by) {
  (client.unanswered > 0 ? waiting_ : closed_) += client.unanswered > 0 || client.closed ? by : 0;
}

void ClientClock::asked(const std::string& client, Time now) {
  begin_ = clients_.empty() ? now : begin_;
  Client& its = clients_[client];
  count(its, -1);
  ++its.unanswered;
  its.closed = false;
  count(its, 1);
}

void ClientClock::answered(const std::string& client) {
  const auto found = clients_.find(client);
  if (found == clients_.end() || found->second.unanswered == 0) {
    return;
  }
  count(found->second, -1);
  --found->second.unanswered;
  count(found->second, 1);
  settle();
}

void ClientClock::closed(const std::string& client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) {
    return;
  }
  count(found->second, -1);
  found->second.closed = true;
  count(found->second, 1);
  settle();
}

void ClientClock::settle() {
  if (waiting_ == 0 && closed_ >= announced_ &&
      closed_ == static_cast<std::int64_t>(clients_.size())) {
    clients_.clear();
    closed_ = 0;
  }
}

}  // namespace orrery::http
