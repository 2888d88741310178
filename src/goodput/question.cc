// SPDX-License-Identifier: Apache-2.0
#include "goodput/question.h"

#include "base/collect.h"
#include "base/format.h"

namespace orrery::goodput {
namespace {

class Asking {
 public:
  Asking(const Question& question, const std::function<bool(std::string_view)>& given)
      : question_(question), given_(given) {}

  Result<Asked> ask(std::int64_t devices) {
    check_ranges();
    fill(devices);
    read_rates(devices);
    check_interval();
    return or_mistakes(std::move(asked_), std::move(mistakes_));
  }

 private:
  void require(bool ok, const std::string& field, const std::string& found,
               const std::string& expected) {
    if (!ok) {
      mistakes_.add({{}, field, found, (found.empty() ? "expected " : "") + expected});
    }
  }

  void check_ranges() {
    const Question& q = question_;
    const Duration none{0};
    require(!given_("mtbf") || q.mtbf > none, "mtbf", to_string(q.mtbf), "more than 0 s");
    require(!given_("job_mtbf") || q.job_mtbf > none, "job_mtbf", to_string(q.job_mtbf),
            "more than 0 s");
    require(q.checkpoint_cost > none, "checkpoint_cost", to_string(q.checkpoint_cost),
            "more than 0 s: with free checkpoints the best interval is 0");
    require(!given_("checkpoint_interval") || q.checkpoint_interval > none, "checkpoint_interval",
            to_string(q.checkpoint_interval), "more than 0 s");
    require(q.storage_every >= 1, "storage_every", std::to_string(q.storage_every), "1 or more");
    require(q.node_devices >= 1, "node_devices", std::to_string(q.node_devices), "1 or more");
    require(!given_("spares") || q.spares >= 0, "spares", std::to_string(q.spares), "0 or more");
    require(q.repair > none, "repair", to_string(q.repair), "more than 0 s");
    require(q.shrunk_speed >= 0 && q.shrunk_speed <= 1, "shrunk_speed", exact_text(q.shrunk_speed),
            "a share from 0 to 1");
    require(q.seeds >= 1 && q.seeds <= 1'000'000, "seeds", std::to_string(q.seeds),
            "1 to 1,000,000");
    const bool one_source =
        given_("mtbf") + given_("job_mtbf") + given_("failures") + given_("log") <= 1;
    require(one_source, "mtbf", "", "one of mtbf, job_mtbf, failures and log");
    require(!given_("log") || q.log_length > none, "log_length", "",
            "how long the log is, such as '54 d'");
    for (const char* name : {"log_length", "log_devices"}) {
      require(!given_(name) || given_("log"), name, "", "it beside log");
    }
  }

  void fill(std::int64_t devices) {
    const Question& q = question_;
    Scenario& s = asked_.scenario;
    s.devices = devices;
    s.node = q.node_devices;
    s.checkpoint = {
        {q.checkpoint_cost, q.checkpoint_persist}, q.checkpoint_interval, q.storage_every};
    s.spares = q.spares;
    s.repair = q.repair;
    s.without_spare = q.without_spare;
    s.shrunk_speed = q.shrunk_speed;
    assume("checkpoint_cost", "a checkpoint holds the job for 60 s");
    assume("restart", "a restart takes 300 s");
    assume("spares", "a spare node is always at hand");
    if (given_("spares") && q.without_spare == WithoutSpare::shrink && q.shrunk_speed == 0) {
      assume("shrunk_speed", "a smaller job loses the share of its devices, no more");
    }
  }

  void assume(std::string_view field, const std::string& sentence) {
    if (!given_(field)) {
      asked_.assumed.push_back(std::string(field) + " was not stated: " + sentence);
    }
  }

  void read_rates(std::int64_t devices) {
    const Question& q = question_;
    Component any;
    any.detection = q.detection;
    any.diagnosis = q.diagnosis;
    any.restart = q.restart;
    asked_.otherwise = any;
    std::vector<Component>& components = asked_.scenario.components;
    if (given_("failures")) {
      collect_into(components, load_config(q.failures).and_then([&](const ConfigNode& file) {
        return read_components(file, any);
      }),
                   mistakes_);
    } else if (given_("log") && q.log_length > Duration(0)) {
      const auto fitted =
          fit_log(q.log, q.log_devices > 0 ? q.log_devices : devices, q.log_length, any);
      if (!fitted) {
        mistakes_.add(fitted.error());
        return;
      }
      asked_.fitted = *fitted;
      for (const FittedRate& rate : *fitted) {
        components.push_back(rate.component);
      }
    } else if (q.mtbf > Duration(0) || q.job_mtbf > Duration(0)) {
      any.per = q.mtbf > Duration(0) ? Unit::device : Unit::job;
      any.mtbf = q.mtbf > Duration(0) ? q.mtbf : q.job_mtbf;
      components.push_back(any);
    }
  }

  void check_interval() {
    const Question& q = question_;
    if (q.checkpoint_interval > Duration(0)) {
      require(q.checkpoint_persist <= q.checkpoint_interval + q.checkpoint_cost,
              "checkpoint_persist", to_string(q.checkpoint_persist),
              "at most interval and cost, " + to_string(q.checkpoint_interval + q.checkpoint_cost) +
                  ": a checkpoint is durable before the next begins");
    }
  }

  const Question& question_;
  const std::function<bool(std::string_view)>& given_;
  Asked asked_;
  Error mistakes_;
};

}  // namespace

Result<Asked> ask(const Question& question, std::int64_t devices,
                  const std::function<bool(std::string_view)>& given) {
  return Asking(question, given).ask(devices);
}

Result<void> check_stops(const Scenario& scenario, Duration length, std::int64_t seeds) {
  constexpr double kMost = 3e8;
  const double stops = length / mtbf_of(scenario.stops()) * static_cast<double>(seeds);
  if (!(stops <= kMost)) {
    return fail(Error({{},
                       "seeds",
                       std::to_string(seeds),
                       "fewer: they meet " + exact_text(stops) +
                           " stops of the job, and at most 3e8 are simulated"}));
  }
  return {};
}

}  // namespace orrery::goodput
