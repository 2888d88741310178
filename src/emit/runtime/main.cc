// SPDX-License-Identifier: Apache-2.0
/// Runs the plan of plan.cc: products and streamed bytes of the plan's sizes, collectives and
/// messages on its communicators. Every buffer holds numbers that follow from who sends it; every
/// element that arrives is compared with what must arrive.
///
///   plan [--repeat N] [--order FILE] [--trace PREFIX] [--telemetry PREFIX] [--slow RANK FACTOR]
///        [--hang RANK STEP] [--limit S] [--unchecked] [--measure FILE] [--probe N]
///        [--delay SOURCE TARGET US]
///
/// --order    the calls that MPI has seen must be those of the file, rank by rank (order.txt)
/// --trace    writes PREFIX.RANK.txt: seconds since the first step, and the call
/// --telemetry  writes PREFIX.RANK.jsonl for `orrery diagnose`
/// --slow     a rank computes everything FACTOR times
/// --hang     a rank stops before a step, the first being 0
/// --unchecked  buffers are filled once and nothing is compared: what is timed is the plan's work,
///            after two steps that do not count
/// --measure  writes FILE: a step's time, and that of each work and exchange in it (measure.h)
/// --probe    after the steps, N messages between every pair of ranks, for --telemetry (probe.h)
/// --delay    those from SOURCE come to TARGET so many microseconds late
/// --limit    who waits for one exchange so long writes where it is, and ends the program after as
///            long again; 60 unless stated
/// Exit status 1 where anything differs, 3 after the limit.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "emit/runtime/arguments.h"
#include "emit/runtime/exchange.h"
#include "emit/runtime/measure.h"
#include "emit/runtime/plan.h"
#include "emit/runtime/probe.h"
#include "emit/runtime/telemetry.h"
#include "emit/runtime/trace.h"
#include "emit/runtime/work.h"

namespace {

using plan::Arguments;
using plan::Buffer;
using plan::Call;
using plan::Communicator;
using plan::Exchange;
using plan::Kind;
using plan::mixed;
void wait_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

class Rank {
 public:
  Rank(int number, const Arguments& arguments)
      : number_(number),
        arguments_(arguments),
        telemetry_(arguments.telemetry, number),
        measured_(arguments.measure, number),
        kernels_(!arguments.checked) {
    for (const plan::Group& group : plan::groups) {
      const auto at = static_cast<std::size_t>(number);
      Communicator made;
      const int color = group.colors[at];
      MPI_Comm_split(MPI_COMM_WORLD, color < 0 ? MPI_UNDEFINED : color, group.keys[at], &made.comm);
      if (made.comm != MPI_COMM_NULL) {
        MPI_Comm_size(made.comm, &made.size);
        MPI_Comm_rank(made.comm, &made.place);
        MPI_Comm_set_name(made.comm, group.name);
        made.name = std::string(group.name) + "." + std::to_string(color);
        telemetry_.communicator(made.name, made.comm);
      }
      groups_.push_back(made);
    }
  }

  /// `factor`: how often everything is computed.
  void run(int factor) {
    const auto calls = plan::calls_of(number_);
    exchanges_.resize(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (const int earlier : calls[i].waits) {
        finish(static_cast<std::size_t>(earlier));
      }
      if (calls[i].kind == Kind::compute) {
        const std::clock_t before = telemetry_.on() ? std::clock() : 0;  // a call of the system
        for (int time = 0; time < factor; ++time) {
          measured_.run(calls[i].works,
                        [&](std::span<const plan::Work> works) { kernels_.run(works); });
        }
        if (telemetry_.on()) {
          computed_ += static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
        }
      } else {
        start(calls[i], exchanges_[i]);
      }
    }
    for (std::size_t i = 0; i < exchanges_.size(); ++i) {
      finish(i);
    }
  }

  void end_step(bool counts) { measured_.end_step(counts, groups_); }
  void write_measured(const std::vector<double>& steps, double median) {
    measured_.write(steps, median);
  }

  /// A rank that does nothing any more; whoever waits for it ends the program.
  [[noreturn]] void hang() {
    wait_ms(1000 * arguments_.limit_s);
    telemetry_.snapshot(MPI_Wtime());
    for (;;) {
      wait_ms(1000);
    }
  }

  void probe() { plan::Probe(telemetry_, arguments_, pause_).run(); }
  void snapshot() { telemetry_.snapshot(MPI_Wtime()); }
  long long wrong() const { return wrong_ + kernels_.wrong(); }
  long long exchanged() const { return exchanged_; }
  std::uint64_t checksum() const { return checksum_; }

 private:
  void start(const Call& call, Exchange& exchange) {
    const double before = measured_.now();
    exchange.kind = call.kind;
    exchange.open = true;
    exchange.entered = MPI_Wtime();
    if (call.kind == Kind::send || call.kind == Kind::receive) {
      start_message(call, exchange);
    } else {
      start_collective(call, exchange);
    }
    exchange.start = measured_.now() - before;
  }

  void start_message(const Call& call, Exchange& exchange) {
    const int peer = number_ + static_cast<int>(call.peer);
    const bool sends = call.kind == Kind::send;
    const int sender = sends ? number_ : peer;
    const int receiver = sends ? peer : number_;
    exchange.sender = sender;
    exchange.receiver = receiver;
    exchange.key = mixed(static_cast<std::uint64_t>(sender), static_cast<std::uint64_t>(receiver),
                         static_cast<std::uint64_t>(call.tag));
    exchange.number = messages_[{sender, receiver, call.tag}]++;
    Buffer& buffer = sends ? exchange.out : exchange.in;
    const bool is_new = resize(buffer, static_cast<std::size_t>(call.elements));
    const int count = static_cast<int>(call.elements);
    if (sends) {
      if (is_new) {
        fill(exchange, number_);
      }
      MPI_Isend(buffer.data(), count, MPI_UINT64_T, peer, call.tag, MPI_COMM_WORLD,
                exchange.requests.data());
    } else {
      MPI_Irecv(buffer.data(), count, MPI_UINT64_T, peer, call.tag, MPI_COMM_WORLD,
                exchange.requests.data());
    }
  }

  void start_collective(const Call& call, Exchange& exchange) {
    Communicator& group = groups_[static_cast<std::size_t>(call.group)];
    exchange.group = &group;
    exchange.computed = std::exchange(computed_, 0);
    exchange.key = static_cast<std::uint64_t>(call.group);
    exchange.number = group.calls++;
    const auto one = static_cast<std::size_t>(call.elements);
    const auto all = one * static_cast<std::size_t>(group.size);
    const int count = static_cast<int>(call.elements);
    const bool from_all = call.kind == Kind::reduce_scatter || call.kind == Kind::all_to_all;
    const bool to_all = call.kind == Kind::all_gather || call.kind == Kind::all_to_all;
    if (resize(exchange.out, from_all ? all : one)) {
      fill(exchange, group.place);
    }
    resize(exchange.in, to_all ? all : one);
    std::uint64_t* const out = exchange.out.data();
    std::uint64_t* const in = exchange.in.data();
    MPI_Request* const request = exchange.requests.data();
    switch (call.kind) {
      case Kind::all_reduce:
        MPI_Iallreduce(out, in, count, MPI_UINT64_T, MPI_SUM, group.comm, request);
        break;
      case Kind::all_gather:
        MPI_Iallgather(out, count, MPI_UINT64_T, in, count, MPI_UINT64_T, group.comm, request);
        break;
      case Kind::reduce_scatter:
        MPI_Ireduce_scatter_block(out, in, count, MPI_UINT64_T, MPI_SUM, group.comm, request);
        break;
      case Kind::all_to_all:
        MPI_Ialltoall(out, count, MPI_UINT64_T, in, count, MPI_UINT64_T, group.comm, request);
        break;
      case Kind::broadcast:
        if (group.place == 0) {
          exchange.in = exchange.out;
        }
        MPI_Ibcast(exchange.in.data(), count, MPI_UINT64_T, 0, group.comm, request);
        break;
      default:  // a ring shift
        MPI_Irecv(in, count, MPI_UINT64_T, (group.place + group.size - 1) % group.size, 0,
                  group.comm, request);
        MPI_Isend(out, count, MPI_UINT64_T, (group.place + 1) % group.size, 0, group.comm,
                  request + 1);
    }
  }

  /// Returns whether the buffer has to be filled: what is checked differs each time.
  bool resize(Buffer& buffer, std::size_t size) const {
    const bool same = buffer.size() == size;
    buffer.resize(size);
    return arguments_.checked || !same;
  }

  void finish(std::size_t call) {
    Exchange& exchange = exchanges_[call];
    if (!exchange.open) {
      return;
    }
    const double looked = measured_.now();
    const double began = MPI_Wtime();
    bool said = false;
    for (int done = 0; done == 0;) {
      MPI_Testall(2, exchange.requests.data(), &done, MPI_STATUSES_IGNORE);
      if (done != 0) {
        break;
      }
      pause_.between_looks();
      const double waited = MPI_Wtime() - began;
      if (waited > arguments_.limit_s && !said) {
        say_where();
        said = true;
      } else if (waited > 2.0 * arguments_.limit_s) {
        MPI_Abort(MPI_COMM_WORLD, 3);
      }
    }
    measured_.exchanged(call, looked - exchange.start, measured_.now());
    note(exchange, MPI_Wtime());
    ++exchanged_;
    exchange.open = false;
    if (!arguments_.checked) {
      return;
    }
    for (std::size_t i = 0; i < exchange.in.size(); ++i) {
      wrong_ += exchange.in[i] == expected(exchange, i) ? 0 : 1;
      checksum_ += exchange.in[i];
    }
    exchange = Exchange{};
  }

  static std::uint64_t bytes_of(const Exchange& exchange) {
    return sizeof(std::uint64_t) * std::max(exchange.out.size(), exchange.in.size());
  }

  void note(const Exchange& exchange, double ended) {
    if (exchange.group != nullptr) {
      telemetry_.collective({exchange.group->name, exchange.number, plan::name_of(exchange.kind),
                             bytes_of(exchange), exchange.entered, ended, exchange.computed});
    }
  }

  /// Everything that is open, for who looks for the rank that hangs.
  void say_where() {
    for (const Exchange& exchange : exchanges_) {
      if (exchange.open && exchange.group != nullptr) {
        note(exchange, -1);
      } else if (exchange.open) {
        telemetry_.open_message(exchange.sender, exchange.receiver, exchange.number,
                                bytes_of(exchange), exchange.entered);
      }
    }
    telemetry_.snapshot(MPI_Wtime());
  }

  int number_;
  const Arguments& arguments_;
  plan::Telemetry telemetry_;
  plan::Measurements measured_;
  std::vector<Communicator> groups_;
  std::vector<Exchange> exchanges_;
  std::map<std::tuple<int, int, int>, std::uint64_t> messages_;
  plan::Pause pause_;
  plan::Kernels kernels_;
  double computed_ = 0;
  long long wrong_ = 0;
  long long exchanged_ = 0;
  std::uint64_t checksum_ = 0;
};

/// Returns how many steps do not count: pages of buffers, connections that MPI opens.
int warm_steps(const Arguments& arguments) {
  return arguments.checked ? 0 : 2;
}

/// Returns the seconds of each step that counts.
std::vector<double> run_steps(Rank& self, int rank, const Arguments& arguments) {
  std::vector<double> steps;
  for (int step = -warm_steps(arguments); step < arguments.repeat; ++step) {
    if (rank == arguments.hanging_rank && step == arguments.hanging_step) {
      self.hang();
    }
    if (!arguments.checked) {
      MPI_Barrier(MPI_COMM_WORLD);
    }
    const double before = MPI_Wtime();
    self.run(rank == arguments.slow_rank ? arguments.slow_factor : 1);
    if (step >= 0) {
      steps.push_back(MPI_Wtime() - before);
    }
    self.end_step(step >= 0);
  }
  return steps;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(const Arguments& arguments) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != plan::ranks) {
    if (rank == 0) {
      std::fprintf(stderr, "found %d ranks, expected %d\n", ranks, plan::ranks);
    }
    return 2;
  }
  Rank self(rank, arguments);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  std::vector<double> steps = run_steps(self, rank, arguments);
  if (arguments.probes > 0) {
    self.probe();
  }
  self.snapshot();
  MPI_Allreduce(MPI_IN_PLACE, steps.data(), arguments.repeat, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const double median = median_of(steps);
  if (!arguments.trace.empty()) {
    trace::write(arguments.trace, rank, begin);
  }
  std::array<long long, 3> counts{0, self.exchanged(), 0};
  if (!arguments.order.empty()) {
    counts[2] = trace::differences(arguments.order, rank, warm_steps(arguments) + arguments.repeat);
  }
  self.write_measured(steps, median);
  counts[0] = self.wrong();
  std::uint64_t checksum = self.checksum();
  MPI_Allreduce(MPI_IN_PLACE, counts.data(), 3, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &checksum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("%d ranks, %lld exchanges, %lld wrong elements, %lld calls out of order, ", ranks,
                counts[1], counts[0], counts[2]);
    std::printf("checksum %016llx, step %.6f s (median of %d)\n",
                static_cast<unsigned long long>(checksum), median, arguments.repeat);
  }
  return counts[0] == 0 && counts[2] == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!plan::read(argc, argv, arguments)) {
    std::fprintf(stderr,
                 "usage: plan [--repeat N] [--order FILE] [--trace PREFIX] [--telemetry PREFIX]\n"
                 "            [--slow RANK FACTOR] [--hang RANK STEP] [--limit S] [--unchecked]\n"
                 "            [--measure FILE] [--probe N] [--delay SOURCE TARGET US]\n");
    return 2;
  }
  plan::keep_freed_memory();
  MPI_Init(&argc, &argv);
  const int status = run(arguments);
  MPI_Finalize();
  return status;
}
