// SPDX-License-Identifier: Apache-2.0
#include "serving/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <tuple>

#include "serving/steady.h"

namespace orrery::serving {
namespace {

constexpr double kNear = 0.9;  // of the front, by formula: is simulated
constexpr std::int64_t kMostSeats = 1024;
constexpr std::int64_t kRounds = 5;  // requests of a simulation over those at once
constexpr std::int64_t kFewestRequests = 16;

/// Gives every point its share of what others give users who are served as well or better.
void share_out(std::vector<PlanPoint*> points) {
  std::sort(points.begin(), points.end(), [](const PlanPoint* a, const PlanPoint* b) {
    return a->per_user != b->per_user ? a->per_user > b->per_user : a->per_device > b->per_device;
  });
  double best = 0;
  for (PlanPoint* point : points) {
    point->ahead = point->breaks.empty() && point->per_device > best;
    best = point->ahead ? point->per_device : best;
    point->share = best > 0 ? point->per_device / best : 0;
  }
}

std::string broken(const Metrics& m, const Objectives& limits, double attained, double wanted) {
  const auto over = [&](const char* name, const Statistics& found, Time limit) {
    return found.p99 > limit ? fmt::format("P99 {} {:.4g} ms instead of {:.4g}, ", name,
                                           1e3 * to_seconds(found.p99), 1e3 * to_seconds(limit))
                             : std::string();
  };
  return over("TTFT", m.ttft, limits.ttft) + over("TPOT", m.tpot, limits.tpot) +
         over("E2E", m.e2e, limits.e2e) +
         fmt::format("limits kept by {:.1f} % of requests instead of {:.1f}", 100 * attained,
                     100 * wanted);
}

class Search {
 public:
  Search(const zoo::Model& model, const Engine& engine, const PlanSearch& search)
      : model_(model), engine_(engine), search_(search) {
    load_.input = search.load.input.mean();
    load_.shared = static_cast<double>(search.load.shared_prefix);
    load_.output = search.load.output.mean();
  }

  PlansFound run() {
    lay_out();
    screen();
    simulate();
    settle();
    return std::move(found_);
  }

 private:
  /// Beside a layout: what runs it, or why nothing does.
  struct Maker {
    const machine::Machine* machine = nullptr;
    std::optional<Server> server;
    std::string problem;
  };

  void lay_out() {
    std::vector<Format> formats = search_.formats;
    if (formats.empty()) {
      formats.push_back({"", "", engine_.weights, engine_.activations, engine_.kv});
    }
    for (const machine::Machine& machine : search_.machines) {
      for (const Format& format : formats) {
        for (std::int64_t devices = 1; devices <= search_.devices; ++devices) {
          lay_out(machine, format, devices);
        }
      }
    }
  }

  /// Degrees that fill so many devices.
  void lay_out(const machine::Machine& machine, const Format& format, std::int64_t devices) {
    if (search_.devices % devices != 0) {
      return;
    }
    for (std::int64_t tp = 1; tp <= devices; ++tp) {
      if (devices % tp != 0) {
        continue;
      }
      const std::int64_t rest = devices / tp;
      Engine engine = engine_;
      engine.weights = format.weights;
      engine.activations = format.activations;
      engine.kv = format.kv;
      engine.block_scaled = engine.block_scaled && format.weights == graph::DataType::fp8;
      engine.tp = tp;
      engine.pp = rest;
      engine.dp = engine.ep = 1;
      add(machine, format, engine);
      if (model_.experts > 0 && devices > 1) {
        engine.pp = 1;
        engine.dp = rest;
        engine.ep = devices;
        add(machine, format, engine);
      }
    }
  }

  void add(const machine::Machine& machine, const Format& format, const Engine& engine) {
    found_.layouts.push_back({.engine = engine,
                              .machine = machine.name,
                              .format = std::string(format.name),
                              .devices = engine.tp * engine.pp * engine.dp});
    Maker& maker = makers_.emplace_back();
    maker.machine = &machine;
    auto server = Server::make(model_, machine, engine);
    if (server) {
      maker.server.emplace(std::move(*server));
    } else {
      maker.problem = server.error().to_string();
    }
  }

  void screen() {
    const double longest = load_.shared + load_.input + load_.output;
    for (std::size_t i = 0; i < makers_.size(); ++i) {
      Maker& maker = makers_[i];
      if (!maker.server) {
        continue;
      }
      Engine engine = maker.server->engine();
      const std::int64_t blocks = maker.server->kv_blocks();
      const double room = static_cast<double>(blocks * engine.block_size) / longest;
      if (room < 1) {
        maker.problem = fmt::format("its KV cache holds {} tokens, a request has {:.0f}",
                                    blocks * engine.block_size, longest);
        continue;
      }
      const std::int64_t most = std::min(kMostSeats, engine.max_num_seqs);
      for (std::int64_t seats = 1; seats <= most && static_cast<double>(seats) <= room;
           seats *= 2) {
        const std::int64_t requests = seats * engine.dp;
        const Steady steady = steady_state(maker.server->cost(), engine, blocks, requests, load_);
        PlanPoint& point = points_.emplace_back();
        point.layout = i;
        point.concurrency = requests;
        point.per_device = steady.tokens_per_s / static_cast<double>(found_.layouts[i].devices);
        point.per_user = 1 / to_seconds(steady.per_token);
        if (steady.per_token > search_.objectives.tpot * (1 / kNear)) {
          point.breaks = fmt::format("TPOT {:.4g} ms instead of {:.4g} by formula",
                                     1e3 * to_seconds(steady.per_token),
                                     1e3 * to_seconds(search_.objectives.tpot));
        }
      }
    }
    found_.screened = static_cast<std::int64_t>(points_.size());
    share_out(all());
  }

  std::vector<PlanPoint*> all() {
    std::vector<PlanPoint*> points;
    for (PlanPoint& point : points_) {
      points.push_back(&point);
    }
    return points;
  }

  void simulate() {
    std::vector<PlanPoint*> near;
    for (PlanPoint& point : points_) {
      if (point.share >= kNear && point.breaks.empty()) {
        near.push_back(&point);
      }
    }
    double error = 0;
    for (std::size_t i = 0; i < near.size(); ++i) {
      const double screened = near[i]->per_device;
      simulate(*near[i]);
      error += std::abs(screened / near[i]->per_device - 1);
      if (search_.progress) {
        search_.progress(static_cast<double>(i + 1) / static_cast<double>(near.size()));
      }
    }
    found_.screen_error = near.empty() ? 0 : error / static_cast<double>(near.size());
  }

  void simulate(PlanPoint& point) {
    Maker& maker = makers_[point.layout];
    requests::Generator load = search_.load;
    load.arrival = requests::Arrival::infinite;
    load.count = std::max(kFewestRequests, kRounds * point.concurrency);
    const Run run =
        maker.server->run(requests::generate(load), {.max_concurrency = point.concurrency});
    point.simulated = true;
    point.metrics = metrics(run, *maker.machine);
    point.per_device = point.metrics.output_tokens_per_s_per_device;
    point.per_user = point.metrics.output_tokens_per_s_per_user;
    const double attained = attainment(run, search_.objectives);
    if (attained < search_.attainment) {
      point.breaks = run.requests.empty()
                         ? "every request is longer than the engine takes"
                         : broken(point.metrics, search_.objectives, attained, search_.attainment);
    }
  }

  void settle() {
    std::vector<PlanPoint*> simulated;
    for (PlanPoint& point : points_) {
      if (point.simulated) {
        simulated.push_back(&point);
      }
    }
    share_out(simulated);
    std::vector<const PlanPoint*> nearest(makers_.size());  // of each layout
    const auto nearer = [](const PlanPoint& a, const PlanPoint& b) {
      return std::tuple(a.simulated, a.breaks.empty(), a.share) >
             std::tuple(b.simulated, b.breaks.empty(), b.share);
    };
    for (const PlanPoint& point : points_) {
      const PlanPoint*& best = nearest[point.layout];
      best = best == nullptr || nearer(point, *best) ? &point : best;
    }
    std::vector<bool> wins(makers_.size(), false);
    for (PlanPoint* point : simulated) {
      wins[point->layout] = wins[point->layout] || point->ahead;
      (point->ahead ? found_.front : found_.beaten).push_back(*point);
    }
    for (std::size_t i = 0; i < makers_.size(); ++i) {
      if (!wins[i]) {
        found_.losers.push_back(loser(i, nearest[i]));
      }
    }
    std::stable_sort(found_.losers.begin(), found_.losers.end(),
                     [](const Loser& a, const Loser& b) { return a.share > b.share; });
    std::sort(found_.front.begin(), found_.front.end(),
              [](const PlanPoint& a, const PlanPoint& b) { return a.per_user < b.per_user; });
  }

  Loser loser(std::size_t layout, const PlanPoint* nearest) const {
    if (nearest == nullptr) {
      return {.layout = layout, .share = 0, .reason = makers_[layout].problem};
    }
    Loser lost{.layout = layout, .share = nearest->share, .reason = {}};
    if (!nearest->breaks.empty()) {
      lost.share = 0;
      lost.reason = nearest->breaks;
    } else {
      lost.reason = fmt::format(
          "{:.1f} % of the front's tokens/s/GPU at {:.0f} requests ({:.4g} tokens/s/user), {}",
          100 * nearest->share, static_cast<double>(nearest->concurrency), nearest->per_user,
          nearest->simulated ? "simulated" : "by formula");
    }
    return lost;
  }

  const zoo::Model& model_;
  const Engine& engine_;
  const PlanSearch& search_;
  MeanLoad load_;
  PlansFound found_;
  std::vector<Maker> makers_;  ///< by layout
  std::vector<PlanPoint> points_;
};

}  // namespace

std::string Layout::name() const {
  std::string text =
      machine + (format.empty() ? "" : " " + format) + fmt::format(" tp{}", engine.tp);
  for (const auto& [letter, degree] :
       {std::pair{"pp", engine.pp}, {"dp", engine.dp}, {"ep", engine.ep}}) {
    text += degree > 1 ? fmt::format(" {}{}", letter, degree) : "";
  }
  return text;
}

PlansFound search_plans(const zoo::Model& model, const Engine& engine, const PlanSearch& search) {
  const auto begin = std::chrono::steady_clock::now();
  PlansFound found = Search(model, engine, search).run();
  found.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return found;
}

}  // namespace orrery::serving
