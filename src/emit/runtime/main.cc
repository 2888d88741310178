// SPDX-License-Identifier: Apache-2.0
/// Runs the plan of plan.cc: products and streamed bytes of the plan's sizes, collectives and
/// messages on its communicators. Every buffer holds numbers that follow from who sends it; every
/// element that arrives is compared with what must arrive.
///
///   plan [--repeat N] [--order FILE] [--trace PREFIX] [--slow RANK FACTOR]
///
/// --order    the calls that MPI has seen must be those of the file, rank by rank (order.txt)
/// --trace    writes PREFIX.RANK.txt: seconds since the first step, and the call
/// --slow     a rank computes everything FACTOR times
/// Exit status 1 where anything differs.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "emit/runtime/plan.h"
#include "emit/runtime/trace.h"
#include "emit/runtime/work.h"

namespace {

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

struct Communicator {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 1;
  int place = 0;
  std::uint64_t calls = 0;
};

struct Exchange {
  Kind kind = Kind::compute;
  const Communicator* group = nullptr;
  std::uint64_t number = 0;  ///< of its communicator's collectives, or of a pair's messages
  std::uint64_t key = 0;
  int sender = 0;  ///< of a message
  Buffer out;
  Buffer in;
  std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  bool open = false;
};

class Rank {
 public:
  explicit Rank(int number) : number_(number) {
    for (const plan::Group& group : plan::groups) {
      const auto at = static_cast<std::size_t>(number);
      Communicator made;
      const int color = group.colors[at];
      MPI_Comm_split(MPI_COMM_WORLD, color < 0 ? MPI_UNDEFINED : color, group.keys[at], &made.comm);
      if (made.comm != MPI_COMM_NULL) {
        MPI_Comm_size(made.comm, &made.size);
        MPI_Comm_rank(made.comm, &made.place);
        MPI_Comm_set_name(made.comm, group.name);
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
    for (int done = 0; done == 0;) {
      MPI_Testall(2, exchange.requests.data(), &done, MPI_STATUSES_IGNORE);
      if (done == 0) {
        std::this_thread::yield();
      }
    }
    for (std::size_t i = 0; i < exchange.in.size(); ++i) {
      wrong_ += exchange.in[i] == expected(exchange, i) ? 0 : 1;
      checksum_ += exchange.in[i];
    }
    ++exchanged_;
    exchange = Exchange{};
  }

  int number_;
  std::vector<Communicator> groups_;
  std::vector<Exchange> exchanges_;
  std::map<std::tuple<int, int, int>, std::uint64_t> messages_;
  plan::Kernels kernels_;
  long long wrong_ = 0;
  long long exchanged_ = 0;
  std::uint64_t checksum_ = 0;
};

struct Arguments {
  int repeat = 1;
  std::string order;
  std::string trace;
  int slow_rank = -1;
  int slow_factor = 1;
};

bool read(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const int left = argc - i - 1;
    if (flag == "--repeat" && left >= 1) {
      arguments.repeat = std::atoi(argv[++i]);
    } else if (flag == "--order" && left >= 1) {
      arguments.order = argv[++i];
    } else if (flag == "--trace" && left >= 1) {
      arguments.trace = argv[++i];
    } else if (flag == "--slow" && left >= 2) {
      arguments.slow_rank = std::atoi(argv[++i]);
      arguments.slow_factor = std::atoi(argv[++i]);
    } else {
      return false;
    }
  }
  return arguments.repeat >= 1 && arguments.slow_factor >= 1;
}

/// Lines "RANK CALL" of this rank must be its calls, once per repetition. Returns how many differ.
long long order_differences(const Arguments& arguments, int rank) {
  std::ifstream file(arguments.order);
  std::vector<std::string> expected;
  for (std::string line; std::getline(file, line);) {
    const std::size_t space = line.find(' ');
    if (space != std::string::npos && std::atoi(line.c_str()) == rank) {
      expected.push_back(line.substr(space + 1));
    }
  }
  const std::vector<std::string>& found = trace::lines();
  const std::size_t size = expected.size() * static_cast<std::size_t>(arguments.repeat);
  long long differences = found.size() == size ? 0 : 1;
  for (std::size_t i = 0; i < std::min(size, found.size()); ++i) {
    if (found[i] != expected[i % expected.size()]) {
      if (differences++ == 0) {
        std::fprintf(stderr, "rank %d, call %zu: found '%s', expected '%s'\n", rank, i,
                     found[i].c_str(), expected[i % expected.size()].c_str());
      }
    }
  }
  return differences;
}

void write_trace(const std::string& prefix, int rank, double begin) {
  std::ofstream file(prefix + "." + std::to_string(rank) + ".txt");
  for (std::size_t i = 0; i < trace::lines().size(); ++i) {
    file << trace::starts()[i] - begin << ' ' << trace::lines()[i] << '\n';
  }
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
  Rank self(rank);
  std::vector<double> steps;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int step = 0; step < arguments.repeat; ++step) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double before = MPI_Wtime();
    self.run(rank == arguments.slow_rank ? arguments.slow_factor : 1);
    MPI_Barrier(MPI_COMM_WORLD);
    steps.push_back(MPI_Wtime() - before);
  }
  if (!arguments.trace.empty()) {
    write_trace(arguments.trace, rank, begin);
  }
  std::array<long long, 3> counts{self.wrong(), self.exchanged(), 0};
  if (!arguments.order.empty()) {
    counts[2] = order_differences(arguments, rank);
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
  if (!read(argc, argv, arguments)) {
    std::fprintf(stderr,
                 "usage: plan [--repeat N] [--order FILE] [--trace PREFIX] [--slow RANK FACTOR]\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  const int status = run(arguments);
  MPI_Finalize();
  return status;
}
