// SPDX-License-Identifier: Apache-2.0
#include "estimate/rank_time.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "collective/group_extents.h"

namespace orrery {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double picoseconds(Time time) {
  return static_cast<double>(time.value());
}

/// Equal but for their names.
bool same_work(const Operator& a, const Operator& b) {
  return a.bytes == b.bytes && a.kind == b.kind && a.gemm == b.gemm && a.flops == b.flops &&
         a.type == b.type && a.kernels == b.kernels && a.backward == b.backward;
}

/// Steps from completion to completion. Times are picoseconds.
class RankRun {
 public:
  RankRun(const TimedTemplate& nodes, bool with_host)
      : nodes_(nodes), with_host_(with_host), done_(nodes.size(), false) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      queue_[index_of(nodes[i].stream)].push_back(i);
    }
  }

  double run() {
    while (true) {
      while (start_what_can()) {
      }
      const double next = next_event();
      if (next == kNever) {
        return now_;
      }
      advance(next);
    }
  }

 private:
  struct Running {
    std::size_t position = 0;  // in the stream's queue
    bool busy = false;
    double begin = 0;
    double end = kNever;  // of kernels: at the present speed
  };

  static std::size_t index_of(Stream stream) { return static_cast<std::size_t>(stream); }

  bool ready(const TimedNode& node) const {
    return std::all_of(node.after.begin(), node.after.end(),
                       [&](int before) { return done_[static_cast<std::size_t>(before)]; });
  }

  bool start_what_can() {
    bool any = false;
    for (std::size_t s = 0; s < kStreamCount; ++s) {
      Running& stream = streams_[s];
      if (stream.busy || stream.position == queue_[s].size()) {
        continue;
      }
      const TimedNode& node = nodes_[queue_[s][stream.position]];
      if (ready(node)) {
        start(node, stream);
        any = true;
      }
    }
    if (any) {
      set_speed();
      finish_ended();
    }
    return any;
  }

  void start(const TimedNode& node, Running& stream) {
    stream.busy = true;
    stream.begin = now_;
    stream.end = now_ + picoseconds(node.work);
    if (with_host_ && node.kernels) {
      stream.end = std::max(stream.end, host_ + picoseconds(node.host_span));
      slowdown_ = 1;
    }
    if (with_host_) {
      host_ += picoseconds(node.host_cost);
    }
    if (with_host_ && !node.kernels && node.work > Time(0)) {
      stream.begin = std::max(now_, host_);
      stream.end = stream.begin + picoseconds(node.work);
    }
    if (node.kernels) {
      slowdown_ = 1;
    }
  }

  const TimedNode& current(std::size_t s) const { return nodes_[queue_[s][streams_[s].position]]; }

  /// Copies take nothing from kernels.
  bool communicating() const {
    for (std::size_t s = 0; s < kStreamCount; ++s) {
      const Running& stream = streams_[s];
      if (s == index_of(Stream::to_host) || s == index_of(Stream::from_host)) {
        continue;
      }
      if (stream.busy && stream.begin <= now_ && stream.end > now_ && !current(s).kernels) {
        return true;
      }
    }
    return false;
  }

  /// What is left of the running kernels goes on slower beside communication.
  void set_speed() {
    Running& compute = streams_[index_of(Stream::compute)];
    if (!compute.busy) {
      return;
    }
    const double wanted = communicating() ? current(index_of(Stream::compute)).contention : 1.0;
    compute.end = now_ + (compute.end - now_) / slowdown_ * wanted;
    slowdown_ = wanted;
  }

  double next_event() const {
    double next = kNever;
    for (const Running& stream : streams_) {
      if (stream.busy) {
        next = std::min(next, stream.begin > now_ ? stream.begin : stream.end);
      }
    }
    return next;
  }

  void advance(double to) {
    now_ = to;
    finish_ended();
    set_speed();
  }

  void finish_ended() {
    for (std::size_t s = 0; s < kStreamCount; ++s) {
      Running& stream = streams_[s];
      if (!stream.busy || stream.end > now_) {
        continue;
      }
      if (current(s).host_sync) {
        host_ = std::max(host_, now_);
      }
      done_[queue_[s][stream.position]] = true;
      stream.busy = false;
      ++stream.position;
    }
  }

  const TimedTemplate& nodes_;
  bool with_host_;
  std::vector<bool> done_;
  std::array<std::vector<std::size_t>, kStreamCount> queue_;
  std::array<Running, kStreamCount> streams_;
  double now_ = 0;
  double host_ = 0;
  double slowdown_ = 1;
};

}  // namespace

NodeTimer::NodeTimer(const Machine& machine, const RankLayout& layout,
                     const AlgorithmChoice& algorithms, Time host_dispatch)
    : machine_(machine), algorithms_(algorithms), host_dispatch_(host_dispatch) {
  for (const Axis axis : {Axis::tp, Axis::dp, Axis::pp, Axis::embedding}) {
    if (layout.size(axis) > 1) {
      extents_[static_cast<std::size_t>(axis)] = group_extents(layout, axis, machine);
    }
  }
}

KernelTime NodeTimer::time(const Operator& kernel) {
  const auto same = std::find_if(kernels_.begin(), kernels_.end(), [&](const KnownKernel& known) {
    return same_work(known.kernel, kernel);
  });
  if (same != kernels_.end()) {
    return same->time;
  }
  return kernels_.emplace_back(KnownKernel{kernel, kernel_time(kernel, machine_.device)}).time;
}

Time NodeTimer::time(const Node& collective) const {
  const auto axis = static_cast<std::size_t>(collective.axis);
  return collective_time(collective.collective, collective.bytes, extents_[axis], algorithms_[axis],
                         machine_);
}

/// From the last kernel backwards: the host issues kernel i, then either the kernels from i on run
/// back to back, or the next one waits for the host again.
void NodeTimer::time_kernels(const Node& node, TimedNode& timed) {
  Time beside_collective{0};
  Time beside_message{0};
  for (auto op = node.operators.rbegin(); op != node.operators.rend(); ++op) {
    const KernelTime kernel = time(*op);
    const Time dispatch = host_dispatch_ * op->kernels;
    timed.work += kernel.alone;
    beside_collective += kernel.beside_collective;
    beside_message += kernel.beside_message;
    timed.host_cost += dispatch;
    timed.host_span = dispatch + std::max(timed.work, timed.host_span);
  }
  if (timed.work > Time(0)) {
    timed.contention = beside_collective / timed.work;
    timed.message_contention = beside_message / timed.work;
  }
}

TimedTemplate NodeTimer::time(const Template& source) {
  TimedTemplate nodes;
  nodes.reserve(source.nodes.size());
  for (const Node& node : source.nodes) {
    TimedNode& timed = nodes.emplace_back();
    timed.stream = node.stream;
    timed.host_sync = node.host_sync;
    timed.after = node.after;
    if (node.kind == Node::Kind::compute) {
      timed.kernels = true;
      time_kernels(node, timed);
    } else if (node.kind == Node::Kind::collective) {
      timed.work = time(node);
      timed.host_cost = host_dispatch_;
    }
  }
  return nodes;
}

void join(TimedTemplate& chain, const TimedTemplate& next) {
  const int offset = static_cast<int>(chain.size());
  for (const TimedNode& node : next) {
    chain.push_back(node);
    for (int& before : chain.back().after) {
      before += offset;
    }
  }
}

Time makespan(const TimedTemplate& nodes, bool with_host) {
  return Time::from_double(RankRun(nodes, with_host).run());
}

}  // namespace orrery
