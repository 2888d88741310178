// SPDX-License-Identifier: Apache-2.0
#include "cli/live_flags.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "cli/interrupt.h"
#include "cli/request_flags.h"
#include "cli/step_flags.h"
#include "serving/http/endpoint.h"
#include "serving/http/observe.h"

namespace orrery::cli {

void LiveFlags::declare(Options& options) {
  options.group("Live");
  options.value("--listen", listen_, "ADDRESS",
                "answer OpenAI's protocol there, as 127.0.0.1:8000, until SIGINT or SIGTERM; "
                "without a host only this machine");
  options.value("--speed", speed_, "real|max|NUMBER",
                "of virtual time: the world's (default), as fast as clients that say when their "
                "requests arrive (x-orrery-arrival), or so many times the world's");
  options.value("--clients", clients_, "INT", "with --speed max: such clients; default 1");
  options.value("--served-model-name", served_name_, "NAME", "that requests may name, too");
  options.value("--observe", observe_, "URL",
                "send the requests to an endpoint, as http://127.0.0.1:8000, and print a CSV row "
                "of each for `orrery calibrate serving`");
}

void LiveFlags::check(bool searches, const serving::Engine& engine, Error& mistakes) const {
  if (!listens()) {
    refuse_given({{"--speed", speed_}, {"--clients", clients_}}, "is for --listen", mistakes);
  }
  if (!listens() && !observes()) {
    refuse_given({{"--served-model-name", served_name_}}, "is for --listen and --observe",
                 mistakes);
  }
  if (searches) {
    refuse_given({{"--listen", listen_}, {"--observe", observe_}}, "contradicts --search",
                 mistakes);
  }
  if (listens()) {
    refuse_given({{"--observe", observe_}}, "contradicts --listen: start two commands", mistakes);
    if (clients_ && speed_ != "max") {
      mistakes.add({"--clients", {}, {}, "is for --speed max, whose time goes by its clients"});
    }
    const bool ahead = engine.network == simulate::NetworkModel::packet ||
                       engine.network == simulate::NetworkModel::flit;
    if (engine.prefill > 0 && ahead) {
      mistakes.add({"--network",
                    {},
                    {},
                    "fifo or flow with --listen and engines for prompts: packets look ahead"});
    }
  }
}

Result<serving::Run> LiveFlags::listen(serving::Server& server,
                                       std::vector<std::string> models) const {
  Error mistakes;
  http::EndpointOptions options;
  options.max = speed_ == "max";
  if (speed_ && !options.max && *speed_ != "real") {
    constexpr double kMostSpeed = 1e6;
    options.speed = positive_number("--speed", speed_, 1, mistakes);
    if (options.speed > kMostSpeed) {
      mistakes.add(wrong_value("--speed", *speed_, "real, max, or a number up to 1e6"));
    }
  }
  constexpr std::int64_t kMostClients = 20'000;
  options.clients = whole_number("--clients", clients_, 1, kMostClients, mistakes);
  if (served_name_) {
    std::erase(models, *served_name_);
    models.insert(models.begin(), *served_name_);
  }
  options.models = std::move(models);
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  http::Endpoint endpoint(server, options, [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::int64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  });
  auto http =
      http::HttpServer::listen(*listen_, http::Limits{.go_on = Interrupt::going_on}, endpoint);
  if (!http) {
    for (Mistake& mistake : http.error().mistakes) {
      mistake.where = "--listen";
    }
    return fail(std::move(http.error()));
  }
  endpoint.start(**http);
  fmt::print(stderr, "orrery: {} listens on http://{} (virtual time: {})\n", options.models.front(),
             (*http)->address(), speed_.value_or("real"));
  std::fflush(stderr);
  (*http)->run();
  return endpoint.finish();
}

Result<std::string> LiveFlags::observe(const std::vector<requests::Request>& requests,
                                       const std::string& model) const {
  return http::observe(*observe_, served_name_.value_or(model), requests)
      .map([](const std::vector<http::Observed>& seen) { return http::observed_csv(seen); });
}

}  // namespace orrery::cli
