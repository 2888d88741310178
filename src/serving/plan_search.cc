// SPDX-License-Identifier: Apache-2.0
#include "serving/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include "serving/plan_load.h"
#include "serving/steady.h"

namespace orrery::serving {
namespace {

constexpr double kNear = 0.9;  // of the front, by formula: is simulated
constexpr std::int64_t kMostSeats = 1024;

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
  /// Holds, beside a layout, what runs it, or why nothing does.
  struct Maker {
    const machine::Machine* machine = nullptr;
    std::optional<Server> server;
    std::string problem;
  };

  void lay_out() {
    std::vector<Format> formats = search_.formats;
    if (formats.empty()) {
      formats.push_back({"", "", engine_.weights, engine_.activations, engine_.kv, 0});
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
      Engine engine = format.name.empty() ? engine_ : with_format(engine_, format);
      engine.tp = tp;
      engine.pp = rest;
      engine.cp = engine.dp = engine.ep = engine.replicas = 1;
      engine.prefill = engine.ffn = 0;
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
                              .devices = engine.devices()});
    makers_.emplace_back().machine = &machine;
  }

  /// Made when it is first wanted; null: it cannot be.
  Server* server_of(std::size_t layout) {
    Maker& maker = makers_[layout];
    if (!maker.server && maker.problem.empty()) {
      auto server = Server::make(model_, *maker.machine, found_.layouts[layout].engine);
      if (server) {
        maker.server.emplace(std::move(*server));
      } else {
        maker.problem = server.error().to_string();
      }
    }
    return maker.server ? &*maker.server : nullptr;
  }

  void screen() {
    const std::size_t engines = makers_.size();
    for (std::size_t i = 0; i < engines; ++i) {
      for (const std::int64_t seats : seats_of(i)) {
        Server& server = *server_of(i);
        const std::int64_t requests = seats * server.engine().dp;
        const Steady steady =
            steady_state(server.cost(), server.engine(), server.kv_blocks(), requests, load_);
        add_point(i, requests, steady, steady.tokens_per_s);
      }
    }
    for (std::size_t i = 0; i < engines; ++i) {
      for (std::size_t j = 0; j < engines; ++j) {
        if (may_pool(i, j)) {
          screen_pools(i, j);
        }
      }
    }
    found_.screened = static_cast<std::int64_t>(points_.size());
    share_out(all());
  }

  /// Requests of a copy at once; none: the layout cannot serve one.
  std::vector<std::int64_t> seats_of(std::size_t layout) {
    std::vector<std::int64_t> list;
    const Server* const server = server_of(layout);
    if (server == nullptr) {
      return list;
    }
    const std::int64_t tokens = server->kv_blocks() * server->engine().block_size;
    const double whole = load_.shared + load_.input + load_.output;
    const step::CacheBytes& cache = server_of(layout)->cost().cache();
    const double longest =
        whole + static_cast<double>(cache.fixed_tokens(static_cast<std::int64_t>(whole)));
    const double room = static_cast<double>(tokens) / longest;
    if (room < 1) {
      makers_[layout].problem =
          fmt::format("its KV cache holds {} tokens, a request has {:.0f}", tokens, longest);
      makers_[layout].server.reset();
      return list;
    }
    const std::int64_t most = std::min(kMostSeats, server->engine().max_num_seqs);
    for (std::int64_t seats = 1; seats <= most && static_cast<double>(seats) <= room; seats *= 2) {
      list.push_back(seats);
    }
    return list;
  }

  bool may_pool(std::size_t prompts, std::size_t decodes) const {
    const Engine& a = found_.layouts[prompts].engine;
    const Engine& b = found_.layouts[decodes].engine;
    return makers_[prompts].machine == makers_[decodes].machine &&
           found_.layouts[prompts].format == found_.layouts[decodes].format && a.pp * a.dp == 1 &&
           b.pp * b.dp == 1 && (a.ep > 1) == (b.ep > 1) && makers_[prompts].server &&
           makers_[decodes].server && a.tp + b.tp <= search_.devices &&
           a.policy != scheduler::Policy::vllm_v0 && a.policy != scheduler::Policy::mlfq;
  }

  /// Instances of either pool with the most requests/s and device, from those of one instance each.
  double size_pools(Engine& engine, const Prompts& prompts, double answers) const {
    double best = 0;
    for (std::int64_t x = 1; x * engine.prefill_tp + engine.tp <= search_.devices; ++x) {
      const std::int64_t y = (search_.devices - x * engine.prefill_tp) / engine.tp;
      for (std::int64_t count = 1; count <= y; ++count) {
        const double rate = std::min(static_cast<double>(x) * prompts.requests_per_s,
                                     static_cast<double>(count) * answers) /
                            static_cast<double>(x * engine.prefill_tp + count * engine.tp);
        if (rate > best * (1 + 1e-9)) {
          best = rate;
          engine.prefill = x;
          engine.replicas = count;
        }
      }
    }
    return best;
  }

  void screen_pools(std::size_t prompts, std::size_t decodes) {
    Server& first = *makers_[prompts].server;
    Server& second = *makers_[decodes].server;
    const Prompts computed = steady_prompts(first.cost(), first.engine(), load_);
    for (const std::int64_t seats : seats_of(decodes)) {
      const Steady steady =
          steady_decodes(second.cost(), second.engine(), second.kv_blocks(), seats, load_);
      const double answers = steady.tokens_per_s / load_.output;
      Engine engine = found_.layouts[decodes].engine;
      engine.prefill_tp = first.engine().tp;
      const double best = size_pools(engine, computed, answers);
      const std::size_t layout = pools(engine, decodes);
      add_point(layout, engine.replicas * seats + engine.prefill * computed.at_once, steady,
                best * load_.output * static_cast<double>(found_.layouts[layout].devices));
    }
  }

  /// The layout of these pools.
  std::size_t pools(const Engine& engine, std::size_t like) {
    const auto [found, fresh] = pools_.try_emplace(
        std::tuple(like, engine.prefill_tp, engine.prefill, engine.replicas), makers_.size());
    if (fresh) {
      Layout layout = found_.layouts[like];
      layout.engine = engine;
      layout.devices = engine.devices();
      found_.layouts.push_back(std::move(layout));
      makers_.emplace_back().machine = makers_[like].machine;
    }
    return found->second;
  }

  void add_point(std::size_t layout, std::int64_t requests, const Steady& steady, double tokens) {
    PlanPoint& point = points_.emplace_back();
    point.layout = layout;
    point.concurrency = requests;
    point.per_device = tokens / static_cast<double>(found_.layouts[layout].devices);
    point.per_user = 1 / to_seconds(steady.per_token);
    if (steady.per_token > search_.objectives.tpot * (1 / kNear)) {
      point.breaks = fmt::format("TPOT {:.4g} ms instead of {:.4g} by formula",
                                 1e3 * to_seconds(steady.per_token),
                                 1e3 * to_seconds(search_.objectives.tpot));
    }
  }

  std::vector<PlanPoint*> all() {
    std::vector<PlanPoint*> points;
    std::ranges::transform(points_, std::back_inserter(points), [](auto& point) { return &point; });
    return points;
  }

  void simulate() {
    std::vector<PlanPoint*> near = is_open(search_) ? best_of_layouts() : near_ones();
    double error = 0;
    int runs = 0;
    for (std::size_t i = 0; i < near.size(); ++i) {
      const double screened = near[i]->per_device;
      simulate(*near[i]);
      if (near[i]->simulated) {
        error += std::abs(screened / near[i]->per_device - 1);
        ++runs;
      }
      if (search_.progress) {
        search_.progress(static_cast<double>(i + 1) / static_cast<double>(near.size()));
      }
    }
    found_.screen_error = runs == 0 ? 0 : error / runs;
  }

  std::vector<PlanPoint*> near_ones() {
    std::vector<PlanPoint*> near;
    for (PlanPoint& point : points_) {
      if (point.share >= kNear && point.breaks.empty()) {
        near.push_back(&point);
      }
    }
    return near;
  }

  /// Returns of each layout that may be of the front (of given requests: that may keep up) the
  /// point with the most tokens/s of a device.
  std::vector<PlanPoint*> best_of_layouts() {
    std::vector<PlanPoint*> best(makers_.size());
    for (PlanPoint& point : points_) {
      const double tokens =
          point.per_device * static_cast<double>(found_.layouts[point.layout].devices);
      const bool near = search_.requests.empty() ? point.share >= kNear
                                                 : tokens >= kNear * search_.rate * load_.output;
      PlanPoint*& its = best[point.layout];
      if (near && point.breaks.empty() && (its == nullptr || point.per_device > its->per_device)) {
        its = &point;
      }
    }
    std::erase(best, nullptr);
    return best;
  }

  void simulate(PlanPoint& point) {
    Server* const server = search_.goes_on() ? server_of(point.layout) : nullptr;
    if (server == nullptr) {  // pools that the machine has no room for as a whole
      point.breaks = search_.goes_on() ? makers_[point.layout].problem : std::string(kEndedEarly);
      return;
    }
    Run run;
    if (is_open(search_)) {
      auto [open, rate] = run_open(*server, search_);
      run = std::move(open);
      point.rate = rate;
      point.concurrency = run.peak_running;
    } else {
      run = run_closed(*server, search_, point.concurrency);
    }
    if (!search_.goes_on()) {
      point.breaks = kEndedEarly;
      return;
    }
    point.simulated = true;
    point.metrics = metrics(run, *makers_[point.layout].machine);
    point.per_device = point.metrics.output_tokens_per_s_per_device;
    point.per_user = point.metrics.output_tokens_per_s_per_user;
    const double attained = attainment(run, search_.objectives);
    if (attained < search_.attainment) {
      const bool alone = is_open(search_) && search_.requests.empty();
      point.breaks = run.requests.empty()
                         ? "every request is longer than the engine takes"
                         : (alone ? "alone, " : "") + broken(point.metrics, search_.objectives,
                                                             attained, search_.attainment);
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
      return std::tuple(a.simulated, a.breaks == kEndedEarly, a.breaks.empty(), a.share) >
             std::tuple(b.simulated, b.breaks == kEndedEarly, b.breaks.empty(), b.share);
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
      lost.share = nearest->breaks == kEndedEarly ? lost.share : 0;
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
  std::deque<Maker> makers_;  ///< by layout; they stay where they are
  std::vector<PlanPoint> points_;
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t, std::int64_t>, std::size_t> pools_;
};

}  // namespace

PlansFound search_plans(const zoo::Model& model, const Engine& engine, const PlanSearch& search) {
  const auto begin = std::chrono::steady_clock::now();
  PlansFound found = Search(model, engine, search).run();
  found.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return found;
}

}  // namespace orrery::serving
