// SPDX-License-Identifier: Apache-2.0
#include "mpi/rounds.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "neural/build_network.h"
#include "neural/execute.h"
#include "neural/weights.h"

namespace orrery::mpi {
namespace {

using plan::DataParallelUpdate;

constexpr double kGrid = 0x1p-32;
constexpr std::int64_t kFeatures = 20;
constexpr std::int64_t kClasses = 5;
constexpr std::size_t kSamplesOfWorker = 1024;
constexpr std::size_t kTestSamples = 1000;
constexpr std::size_t kRunsOfWorker = 2;

double to_grid(double value, double grid) {
  return std::nearbyint(value / grid) * grid;
}

neural::Network network_of(const RoundTask& task) {
  neural::NetworkBuilder builder(neural::Shape{{kFeatures}}, kClasses);
  const auto add = [&](const char* name, neural::LayerKind kind, std::int64_t width) {
    builder.add({.name = name, .kind = kind, .width = width, .bias = width > 0});
  };
  add("hidden", neural::LayerKind::linear, task.hidden);
  add("active", neural::LayerKind::relu, 0);
  add("logits", neural::LayerKind::linear, kClasses);
  return builder.network();
}

/// Returns the samples [first, first + count) of a list of their numbers.
neural::Samples picked(const neural::Samples& all, const std::vector<std::size_t>& numbers,
                       std::size_t first, std::size_t count) {
  neural::Samples some;
  for (std::size_t i = first; i < first + count; ++i) {
    const std::size_t number = numbers[i];
    const double* const values = all.values.data() + number * kFeatures;
    some.values.insert(some.values.end(), values, values + kFeatures);
    some.labels.push_back(all.labels[number]);
  }
  return some;
}

/// Sorted by class, in twice as many runs as workers; worker w has runs w and w + W, shuffled.
std::vector<neural::Samples> deal(const neural::Samples& all, const RoundTask& task) {
  std::vector<std::size_t> order(all.count());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return all.labels[i]; });
  const auto workers = static_cast<std::size_t>(task.workers);
  const std::size_t run = all.count() / (kRunsOfWorker * workers);
  std::vector<neural::Samples> dealt;
  for (std::size_t w = 0; w < workers; ++w) {
    neural::Samples own = picked(all, order, w * run, run);
    const neural::Samples more = picked(all, order, (w + workers) * run, run);
    own.values.insert(own.values.end(), more.values.begin(), more.values.end());
    own.labels.insert(own.labels.end(), more.labels.begin(), more.labels.end());
    dealt.push_back(draw_from(own, own.count(), task.seed + w));
  }
  return dealt;
}

/// A sum over processes that may be under way.
class PendingSum {
 public:
  explicit PendingSum(MPI_Comm comm) : comm_(comm) {}

  void start(std::vector<double> values) {
    values_ = std::move(values);
    under_way_ = true;
    MPI_Iallreduce(MPI_IN_PLACE, values_.data(), static_cast<int>(values_.size()), MPI_DOUBLE,
                   MPI_SUM, comm_, &request_);
  }
  bool under_way() const { return under_way_; }
  void poll() {
    int done = 0;
    if (under_way_) {
      MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
    }
  }
  const std::vector<double>& wait() {
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
    under_way_ = false;
    return values_;
  }

 private:
  MPI_Comm comm_;
  std::vector<double> values_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool under_way_ = false;
};

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value * value;
  }
  return std::sqrt(sum);
}

class Trainer {
 public:
  Trainer(const RoundTask& task, const OuterUpdate& outer, MPI_Comm comm)
      : task_(task), outer_(outer), comm_(comm), network_(network_of(task)), pending_(comm) {
    int rank = 0;
    int processes = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &processes);
    assert(task.workers % processes == 0 && std::has_single_bit(std::uint64_t(task.workers)));
    mine_ = task.workers / processes;
    const auto all = neural::draw_samples(
        samples_task(), kSamplesOfWorker * static_cast<std::size_t>(task.workers), task.seed);
    std::vector<neural::Samples> dealt = deal(all, task);
    const auto first = static_cast<std::ptrdiff_t>(rank * mine_);
    shards_.assign(dealt.begin() + first, dealt.begin() + first + mine_);
    start_ = draw_weights(network_, task.seed);
    std::ranges::transform(start_, start_.begin(), [](double x) { return to_grid(x, kGrid); });
    momentum_.resize(start_.size());
    last_start_ = start_;
  }

  RoundOutcome run() {
    const bool steps_together = outer_.update == DataParallelUpdate::every_step;
    const std::int64_t tau = steps_together ? 1 : outer_.tau;
    const std::int64_t rounds = task_.steps / tau;
    for (round_ = 0; round_ < rounds; ++round_) {
      const double begin = MPI_Wtime();
      std::vector<double> sent = steps_together ? gradients() : alone(tau);
      const double stepped = MPI_Wtime();
      waited_ = 0;
      end_round(std::move(sent));
      if (round_ > 0) {
        const double end = MPI_Wtime();
        times_.step += (stepped - begin) / static_cast<double>(tau);
        times_.outer += end - stepped - waited_;
        times_.waited += waited_;
        times_.round += end - begin;
      }
    }
    if (pending_.under_way()) {
      apply(pending_.wait());
    }
    return outcome(rounds);
  }

 private:
  neural::Task samples_task() const {
    return {.input = network_.input, .classes = kClasses, .noise = task_.noise};
  }
  std::size_t message_size() const {
    return start_.size() + 1 + static_cast<std::size_t>(task_.padding);
  }

  /// gamma g of a worker's next minibatch, on the grid of steps.
  std::vector<double> step_of(std::size_t worker, const std::vector<double>& x) {
    const neural::Samples& shard = shards_[worker];
    const auto count = static_cast<std::size_t>(task_.minibatch);
    std::vector<double> input;
    std::vector<int> labels;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t number = (next_ * count + i) % shard.count();
      const double* const values = shard.values.data() + number * kFeatures;
      input.insert(input.end(), values, values + kFeatures);
      labels.push_back(shard.labels[number]);
    }
    neural::Activations passed =
        forward(network_, x, std::move(input), neural::Arithmetic::together);
    const neural::Loss loss = cross_entropy(network_, passed.logits(), labels);
    neural::SumGradients sums(network_);
    backward(network_, x, passed, loss.logit_gradients, &sums, neural::Arithmetic::together);
    std::vector<double> step = sums.sum();
    const double grid = kGrid * static_cast<double>(task_.workers);
    const double share = task_.rate / static_cast<double>(count);
    std::ranges::transform(step, step.begin(), [&](double g) { return to_grid(share * g, grid); });
    return step;
  }

  /// Returns the sum of gamma g over this process's workers, at the point that all have.
  std::vector<double> gradients() {
    std::vector<double> sum(message_size());
    for (std::size_t w = 0; w < shards_.size(); ++w) {
      const std::vector<double> step = step_of(w, start_);
      std::ranges::transform(step, sum, sum.begin(), std::plus<>());
    }
    ++next_;
    return sum;
  }

  /// Returns the sum of x0 - x over this process's workers after so many steps of each.
  std::vector<double> alone(std::int64_t steps) {
    std::vector<std::vector<double>> local(shards_.size(), start_);
    for (std::int64_t i = 0; i < steps; ++i) {
      for (std::size_t w = 0; w < local.size(); ++w) {
        const std::vector<double> step = step_of(w, local[w]);
        std::ranges::transform(local[w], step, local[w].begin(), std::minus<>());
        if (outer_.polled) {
          pending_.poll();
        }
      }
      ++next_;
    }
    std::vector<double> sum(message_size());
    for (const std::vector<double>& x : local) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        sum[i] += start_[i] - x[i];
      }
    }
    return sum;
  }

  /// Sends what the round has made and applies a sum: its own, or of co2 the one before.
  void end_round(std::vector<double> sent) {
    sent[start_.size()] = static_cast<double>(round_ * mine_);
    const bool delayed = outer_.update == DataParallelUpdate::co2 && !outer_.waited;
    if (delayed && pending_.under_way()) {
      apply(waited_for());
    } else if (delayed) {
      last_start_ = start_;
    }
    pending_.start(std::move(sent));
    if (!delayed) {
      apply(waited_for());
    }
  }

  const std::vector<double>& waited_for() {
    const double begin = MPI_Wtime();
    const std::vector<double>& sum = pending_.wait();
    waited_ += MPI_Wtime() - begin;
    return sum;
  }

  void apply(const std::vector<double>& sum) {
    const auto workers = static_cast<double>(task_.workers);
    const std::int64_t delay = round_ - std::llround(sum[start_.size()] / workers);
    least_delay_ = applied_ == 0 ? delay : std::min(least_delay_, delay);
    most_delay_ = std::max(most_delay_, delay);
    ++applied_;
    std::vector<double> mean(sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(start_.size()));
    std::ranges::transform(mean, mean.begin(), [&](double d) { return d / workers; });
    const double gap = gap_of(mean);
    last_start_ = start_;
    for (std::size_t i = 0; i < mean.size(); ++i) {
      start_[i] -= to_grid(outer_step(momentum_[i], mean[i], gap), kGrid);
    }
  }

  double gap_of(const std::vector<double>& mean) const {
    if (outer_.update != DataParallelUpdate::co2 || !outer_.penalty) {
      return 1;
    }
    std::vector<double> moved(start_.size());
    std::ranges::transform(start_, last_start_, moved.begin(), std::minus<>());
    const double travel = norm(mean);
    return travel > 0 ? 1 + norm(moved) / (2 * travel) : 1;
  }

  double outer_step(double& m, double d, double gap) const {
    switch (outer_.update) {
      case DataParallelUpdate::every_step:
      case DataParallelUpdate::local_sgd:
        return d;
      case DataParallelUpdate::diloco:
        m = outer_.beta * m + d;
        return outer_.alpha * (outer_.beta * m + d);
      case DataParallelUpdate::slow_mo:
      case DataParallelUpdate::co2:
        break;
    }
    m = outer_.beta * m + d / (task_.rate * gap);
    if (outer_.update == DataParallelUpdate::co2 && outer_.clip > 0) {
      m = std::clamp(m, -outer_.clip, outer_.clip);
    }
    return outer_.alpha * task_.rate * m;
  }

  RoundOutcome outcome(std::int64_t rounds) const {
    const neural::Samples test =
        neural::draw_samples(samples_task(), kTestSamples, task_.seed + 1000);
    const neural::Activations passed =
        forward(network_, start_, test.values, neural::Arithmetic::together);
    const neural::Loss loss = cross_entropy(network_, passed.logits(), test.labels);
    std::array<double, 4> times{times_.step, times_.outer, times_.round, times_.waited};
    MPI_Allreduce(MPI_IN_PLACE, times.data(), static_cast<int>(times.size()), MPI_DOUBLE, MPI_MAX,
                  comm_);
    const double timed = static_cast<double>(std::max<std::int64_t>(rounds - 1, 1));
    return {.weights = start_,
            .loss = loss.sum / kTestSamples,
            .accuracy = static_cast<double>(loss.right) / kTestSamples,
            .least_delay = least_delay_,
            .most_delay = most_delay_,
            .applied = applied_,
            .times = {.step = times[0] / timed,
                      .outer = times[1] / timed,
                      .round = times[2] / timed,
                      .waited = times[3] / timed}};
  }

  RoundTask task_;
  OuterUpdate outer_;
  MPI_Comm comm_;
  neural::Network network_;
  std::int64_t mine_ = 1;
  std::vector<neural::Samples> shards_;  ///< of this process's workers
  std::vector<double> start_;            ///< x0
  std::vector<double> last_start_;       ///< of the round before
  std::vector<double> momentum_;
  PendingSum pending_;
  std::size_t next_ = 0;  ///< minibatch
  std::int64_t round_ = 0;
  std::int64_t least_delay_ = 0;
  std::int64_t most_delay_ = 0;
  std::int64_t applied_ = 0;
  double waited_ = 0;
  RoundTimes times_;
};

}  // namespace

RoundOutcome train_rounds(const RoundTask& task, const OuterUpdate& update, MPI_Comm comm) {
  return Trainer(task, update, comm).run();
}

double sum_seconds(const RoundTask& task, int repeat) {
  const std::size_t size = network_of(task).weights + 1 + static_cast<std::size_t>(task.padding);
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    PendingSum sum(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    sum.start(std::vector<double>(size, 1));
    sum.wait();
    double taken = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    seconds.push_back(taken);
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

std::uint64_t hash_of(const std::vector<double>& weights) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const double value : weights) {
    hash = (hash ^ std::bit_cast<std::uint64_t>(value + 0.0)) * 0x100000001b3;
  }
  return hash ^ (hash >> 32U);  // the grid leaves the lowest bits of weights 0
}

}  // namespace orrery::mpi
