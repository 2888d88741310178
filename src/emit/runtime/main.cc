// SPDX-License-Identifier: Apache-2.0
/// Runs the plan of plan.cc: products and streamed bytes of the plan's sizes, collectives and
/// messages on its communicators. Every buffer holds numbers that follow from who sends it; every
/// element that arrives is compared with what must arrive.
///
///   plan [--repeat N] [--order FILE] [--trace PREFIX] [--telemetry PREFIX] [--slow RANK FACTOR]
///        [--hang RANK STEP] [--limit S]
///
/// --order    the calls that MPI has seen must be those of the file, rank by rank (order.txt)
/// --trace    writes PREFIX.RANK.txt: seconds since the first step, and the call
/// --telemetry  writes PREFIX.RANK.jsonl for `orrery diagnose`
/// --slow     a rank computes everything FACTOR times
/// --hang     a rank stops before a step, the first being 0
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
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "emit/runtime/arguments.h"
#include "emit/runtime/plan.h"
#include "emit/runtime/telemetry.h"
#include "emit/runtime/trace.h"
#include "emit/runtime/work.h"

namespace {

using plan::Arguments;
using plan::Call;
using plan::Kind;
using Buffer = std::vector<std::uint64_t>;
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

/// Numbers that differ for each exchange and sender (splitmix64).
std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = (a * 0x100000001b3 + b) * 0x100000001b3 + c + kStep;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111eb;
  return x ^ (x >> 31U);
}

void wait_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

constexpr std::array kNames{"compute",   "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                            "broadcast", "send_recv",  "send",       "receive"};

struct Communicator {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string name;
  int size = 1;
  int place = 0;
  std::uint64_t calls = 0;
};

struct Exchange {
  Kind kind = Kind::compute;
  const Communicator* group = nullptr;
  std::uint64_t number = 0;  ///< of its communicator's collectives, or of a pair's messages
  std::uint64_t key = 0;
  int sender = 0;    ///< of a message
  int receiver = 0;  ///< of a message
  double entered = 0;
  Buffer out;
  Buffer in;
  std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  bool open = false;
};

class Rank {
 public:
  Rank(int number, const Arguments& arguments)
      : number_(number), arguments_(arguments), telemetry_(arguments.telemetry, number) {
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
    exchanges_.assign(calls.size(), Exchange{});
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (const int earlier : calls[i].waits) {
        finish(exchanges_[static_cast<std::size_t>(earlier)]);
      }
      if (calls[i].kind == Kind::compute) {
        for (int time = 0; time < factor; ++time) {
          kernels_.run(calls[i].works);
        }
      } else {
        start(calls[i], exchanges_[i]);
      }
    }
    for (Exchange& exchange : exchanges_) {
      finish(exchange);
    }
  }

  /// A rank that does nothing any more; whoever waits for it ends the program.
  [[noreturn]] void hang() {
    wait_ms(1000 * arguments_.limit_s);
    telemetry_.snapshot(MPI_Wtime());
    for (;;) {
      wait_ms(1000);
    }
  }

  void snapshot() { telemetry_.snapshot(MPI_Wtime()); }
  long long wrong() const { return wrong_ + kernels_.wrong(); }
  long long exchanged() const { return exchanged_; }
  std::uint64_t checksum() const { return checksum_; }

 private:
  // Filling and checking: element i of what `sender` gives to exchange `number` of `key`.
  static std::uint64_t value(const Exchange& exchange, int sender, std::size_t i) {
    return mixed(exchange.key, exchange.number, static_cast<std::uint64_t>(sender)) + i * kStep;
  }

  void start(const Call& call, Exchange& exchange) {
    exchange.kind = call.kind;
    exchange.open = true;
    exchange.entered = MPI_Wtime();
    if (call.kind == Kind::send || call.kind == Kind::receive) {
      start_message(call, exchange);
    } else {
      start_collective(call, exchange);
    }
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
    buffer.resize(static_cast<std::size_t>(call.elements));
    const int count = static_cast<int>(call.elements);
    if (sends) {
      fill(exchange, number_);
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
    exchange.key = static_cast<std::uint64_t>(call.group);
    exchange.number = group.calls++;
    const auto one = static_cast<std::size_t>(call.elements);
    const auto all = one * static_cast<std::size_t>(group.size);
    const int count = static_cast<int>(call.elements);
    const bool from_all = call.kind == Kind::reduce_scatter || call.kind == Kind::all_to_all;
    const bool to_all = call.kind == Kind::all_gather || call.kind == Kind::all_to_all;
    exchange.out.resize(from_all ? all : one);
    exchange.in.resize(to_all ? all : one);
    fill(exchange, group.place);
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

  static void fill(Exchange& exchange, int sender) {
    for (std::size_t i = 0; i < exchange.out.size(); ++i) {
      exchange.out[i] = value(exchange, sender, i);
    }
  }

  std::uint64_t expected(const Exchange& exchange, std::size_t i) const {
    if (exchange.group == nullptr) {
      return value(exchange, exchange.sender, i);
    }
    const Communicator& group = *exchange.group;
    const std::size_t one = exchange.in.size() / static_cast<std::size_t>(group.size);
    const auto place = static_cast<std::size_t>(group.place);
    std::uint64_t sum = 0;
    switch (exchange.kind) {
      case Kind::all_gather:
        return value(exchange, static_cast<int>(i / one), i % one);
      case Kind::all_to_all:
        return value(exchange, static_cast<int>(i / one), place * one + i % one);
      case Kind::broadcast:
        return value(exchange, 0, i);
      case Kind::ring_shift:
        return value(exchange, (group.place + group.size - 1) % group.size, i);
      default:
        for (int member = 0; member < group.size; ++member) {
          const std::size_t shard =
              exchange.kind == Kind::reduce_scatter ? place * exchange.in.size() : 0;
          sum += value(exchange, member, shard + i);
        }
        return sum;
    }
  }

  /// Gives the core to others while it waits: there may be more ranks than cores.
  void finish(Exchange& exchange) {
    if (!exchange.open) {
      return;
    }
    const double began = MPI_Wtime();
    bool said = false;
    for (int done = 0; done == 0;) {
      MPI_Testall(2, exchange.requests.data(), &done, MPI_STATUSES_IGNORE);
      if (done != 0) {
        break;
      }
      std::this_thread::yield();
      const double waited = MPI_Wtime() - began;
      if (waited > arguments_.limit_s && !said) {
        say_where();
        said = true;
      } else if (waited > 2.0 * arguments_.limit_s) {
        MPI_Abort(MPI_COMM_WORLD, 3);
      }
    }
    note(exchange, MPI_Wtime());
    for (std::size_t i = 0; i < exchange.in.size(); ++i) {
      wrong_ += exchange.in[i] == expected(exchange, i) ? 0 : 1;
      checksum_ += exchange.in[i];
    }
    ++exchanged_;
    exchange = Exchange{};
  }

  static std::uint64_t bytes_of(const Exchange& exchange) {
    return sizeof(std::uint64_t) * std::max(exchange.out.size(), exchange.in.size());
  }

  void note(const Exchange& exchange, double ended) {
    if (exchange.group != nullptr) {
      telemetry_.collective(exchange.group->name, exchange.number,
                            kNames[static_cast<std::size_t>(exchange.kind)], bytes_of(exchange),
                            exchange.entered, ended);
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
  std::vector<Communicator> groups_;
  std::vector<Exchange> exchanges_;
  std::map<std::tuple<int, int, int>, std::uint64_t> messages_;
  plan::Kernels kernels_;
  long long wrong_ = 0;
  long long exchanged_ = 0;
  std::uint64_t checksum_ = 0;
};

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
  std::vector<double> steps;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int step = 0; step < arguments.repeat; ++step) {
    if (rank == arguments.hanging_rank && step == arguments.hanging_step) {
      self.hang();
    }
    const double before = MPI_Wtime();
    self.run(rank == arguments.slow_rank ? arguments.slow_factor : 1);
    steps.push_back(MPI_Wtime() - before);
  }
  self.snapshot();
  if (!arguments.trace.empty()) {
    trace::write(arguments.trace, rank, begin);
  }
  std::array<long long, 3> counts{self.wrong(), self.exchanged(), 0};
  if (!arguments.order.empty()) {
    counts[2] = trace::differences(arguments.order, rank, arguments.repeat);
  }
  std::uint64_t checksum = self.checksum();
  MPI_Allreduce(MPI_IN_PLACE, counts.data(), 3, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &checksum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    std::sort(steps.begin(), steps.end());
    std::printf("%d ranks, %lld exchanges, %lld wrong elements, %lld calls out of order, ", ranks,
                counts[1], counts[0], counts[2]);
    std::printf("checksum %016llx, step %.6f s (median of %d)\n",
                static_cast<unsigned long long>(checksum), steps[steps.size() / 2],
                arguments.repeat);
  }
  return counts[0] == 0 && counts[2] == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!plan::read(argc, argv, arguments)) {
    std::fprintf(stderr,
                 "usage: plan [--repeat N] [--order FILE] [--trace PREFIX] [--telemetry PREFIX]\n"
                 "            [--slow RANK FACTOR] [--hang RANK STEP] [--limit S]\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  const int status = run(arguments);
  MPI_Finalize();
  return status;
}
