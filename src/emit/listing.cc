// SPDX-License-Identifier: Apache-2.0
#include "emit/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace orrery::emit {
namespace {

/// Numbers follow from the exchange (`key`), their sender and place, as in runtime/exchange.h.
constexpr const char* kHelpers = R"(
static uint64_t value(uint64_t key, int sender, int64_t i) {
  uint64_t x = (key * 0x100000001b3u + (uint64_t)sender) * 0x100000001b3u + (uint64_t)i;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 27);
}

/* Buffers of an exchange: `sent` elements of this sender, room for `received`. */
static void prepare(int call, int64_t sent, int64_t received, uint64_t key, int sender) {
  out[call] = malloc((size_t)(sent + 1) * sizeof(uint64_t));
  in[call] = malloc((size_t)(received + 1) * sizeof(uint64_t));
  for (int64_t i = 0; i < sent; i++) out[call][i] = value(key, sender, i);
}

static void release(int call) {
  free(out[call]);
  free(in[call]);
}

/* What has arrived: of each of `senders`, from the first one on, `elements` from `begin` on. */
static void arrived(int call, int64_t elements, uint64_t key, int first, int senders, int64_t begin) {
  for (int s = 0; s < senders; s++)
    for (int64_t i = 0; i < elements; i++)
      wrong += in[call][s * elements + i] != value(key, first + s, begin + i);
  release(call);
}

/* Sums over all senders. */
static void added(int call, int64_t elements, uint64_t key, int senders, int64_t begin) {
  for (int64_t i = 0; i < elements; i++) {
    uint64_t sum = 0;
    for (int s = 0; s < senders; s++) sum += value(key, s, begin + i);
    wrong += in[call][i] != sum;
  }
  release(call);
}

static void product(int64_t batch, int64_t m, int64_t n, int64_t k) {
  float *a = malloc((size_t)(m * k) * sizeof(float));
  float *b = malloc((size_t)(k * n) * sizeof(float));
  float *c = malloc((size_t)(m * n) * sizeof(float));
  for (int64_t i = 0; i < m * k; i++) a[i] = 1;
  for (int64_t i = 0; i < k * n; i++) b[i] = 0.5f;
  for (int64_t time = 0; time < batch; time++) {
    for (int64_t i = 0; i < m * n; i++) c[i] = 0;
    for (int64_t i = 0; i < m; i++)
      for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < n; j++) c[i * n + j] += a[i * k + l] * b[l * n + j];
    wrong += c[0] != 0.5f * (float)k;
  }
  free(a);
  free(b);
  free(c);
}

static void stream(int64_t bytes) {
  int64_t floats = bytes / 8 + 1;
  float *all = calloc((size_t)floats, sizeof(float));
  for (int64_t i = 0; i < floats; i++) all[i] += 1;
  wrong += all[floats - 1] != 1;
  free(all);
}

static void last(int64_t nanoseconds) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < nanoseconds);
}

)";

/// Keys number the exchanges of each communicator, or of each peer and tag.
using Keys = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;

/// A ListWriter writes the function of one list.
class ListWriter {
 public:
  explicit ListWriter(const std::vector<Call>& calls) : calls_(calls), keys_(calls.size()) {}

  std::string text(std::size_t number) {
    std::vector<bool> is_over(calls_.size());
    text_ = fmt::format("static void list{}(int rank) {{\n", number);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const Call& call = calls_[i];
      for (const int earlier : call.waits) {
        finish(static_cast<std::size_t>(earlier));
        is_over[static_cast<std::size_t>(earlier)] = true;
      }
      start(i);
    }
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].kind != Call::Kind::compute && !is_over[i]) {
        finish(i);
      }
    }
    return text_ + "}\n\n";
  }

 private:
  template <class... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    text_ += "  " + fmt::format(format, std::forward<Values>(values)...) + "\n";
  }

  void start(std::size_t i) {
    const Call& call = calls_[i];
    if (call.kind == Call::Kind::compute) {
      std::string name;
      std::ranges::copy_if(call.name, std::back_inserter(name),
                           [](char c) { return c >= ' ' && c <= '~' && c != '*' && c != '\\'; });
      line("/* {} {} */", i, name);
      for (const Work& work : call.works) {
        compute(work);
      }
    } else if (call.kind == Call::Kind::collective) {
      start_collective(i);
    } else {
      start_message(i);
    }
  }

  void compute(const Work& work) {
    if (work.gemm.batch > 0) {
      line("product({}, {}, {}, {});", work.gemm.batch, work.gemm.m, work.gemm.n, work.gemm.k);
    } else if (work.bytes > Bytes(0)) {
      line("stream({});", work.bytes.value());
    } else {
      line("last({});", work.duration / 1_ns);
    }
  }

  void start_message(std::size_t i) {
    const Call& call = calls_[i];
    const bool sends = call.kind == Call::Kind::send;
    const auto elements = call.elements;
    keys_[i] = std::int64_t{1000003} * (call.tag + 1) + messages_[sends][{call.peer, call.tag}]++;
    line("prepare({}, {}, {}, {}, rank);", i, sends ? elements : 0, sends ? 0 : elements, keys_[i]);
    line("MPI_I{}({}[{}], {}, MPI_UINT64_T, rank + ({}), {}, MPI_COMM_WORLD, request[{}]);",
         sends ? "send" : "recv", sends ? "out" : "in", i, elements, call.peer, call.tag, i);
  }

  void start_collective(std::size_t i) {
    using enum graph::CollectiveKind;
    const Call& call = calls_[i];
    const int g = call.group;
    const auto n = call.elements;
    const std::string all = fmt::format("{} * size[{}]", n, g);
    const std::string one = std::to_string(n);
    const bool from_all = call.collective == reduce_scatter || call.collective == all_to_all;
    const bool to_all = call.collective == all_gather || call.collective == all_to_all;
    keys_[i] = 1009 * (collectives_[{g, 0}]++) + g;
    line("prepare({}, {}, {}, {}, place[{}]);", i, from_all ? all : one, to_all ? all : one,
         keys_[i], g);
    switch (call.collective) {
      case all_reduce:
        return line(
            "MPI_Iallreduce(out[{0}], in[{0}], {1}, MPI_UINT64_T, MPI_SUM, group[{2}], "
            "request[{0}]);",
            i, n, g);
      case all_gather:
      case all_to_all:
        return line(
            "MPI_I{3}(out[{0}], {1}, MPI_UINT64_T, in[{0}], {1}, MPI_UINT64_T, group[{2}], "
            "request[{0}]);",
            i, n, g, call.collective == all_gather ? "allgather" : "alltoall");
      case reduce_scatter:
        return line(
            "MPI_Ireduce_scatter_block(out[{0}], in[{0}], {1}, MPI_UINT64_T, MPI_SUM, group[{2}], "
            "request[{0}]);",
            i, n, g);
      case broadcast:
        line("if (place[{1}] == 0) memcpy(in[{0}], out[{0}], {2} * sizeof(uint64_t));", i, g, n);
        return line("MPI_Ibcast(in[{0}], {1}, MPI_UINT64_T, 0, group[{2}], request[{0}]);", i, n,
                    g);
      case send_recv:
        line(
            "MPI_Irecv(in[{0}], {1}, MPI_UINT64_T, (place[{2}] + size[{2}] - 1) % size[{2}], 0, "
            "group[{2}], request[{0}]);",
            i, n, g);
        return line(
            "MPI_Isend(out[{0}], {1}, MPI_UINT64_T, (place[{2}] + 1) % size[{2}], 0, group[{2}], "
            "request[{0}] + 1);",
            i, n, g);
    }
  }

  void finish(std::size_t i) {
    using enum graph::CollectiveKind;
    const Call& call = calls_[i];
    const int g = call.group;
    const auto n = call.elements;
    line("MPI_Waitall(2, request[{}], MPI_STATUSES_IGNORE);", i);
    if (call.kind == Call::Kind::send) {
      return line("release({});", i);
    }
    if (call.kind == Call::Kind::receive) {
      return line("arrived({}, {}, {}, rank + ({}), 1, 0);", i, n, keys_[i], call.peer);
    }
    switch (call.collective) {
      case all_reduce:
        return line("added({}, {}, {}, size[{}], 0);", i, n, keys_[i], g);
      case reduce_scatter:
        return line("added({0}, {1}, {2}, size[{3}], place[{3}] * INT64_C({1}));", i, n, keys_[i],
                    g);
      case all_gather:
        return line("arrived({}, {}, {}, 0, size[{}], 0);", i, n, keys_[i], g);
      case all_to_all:
        return line("arrived({0}, {1}, {2}, 0, size[{3}], place[{3}] * INT64_C({1}));", i, n,
                    keys_[i], g);
      case broadcast:
        return line("arrived({}, {}, {}, 0, 1, 0);", i, n, keys_[i]);
      case send_recv:
        return line("arrived({0}, {1}, {2}, (place[{3}] + size[{3}] - 1) % size[{3}], 1, 0);", i, n,
                    keys_[i], g);
    }
  }

  const std::vector<Call>& calls_;
  std::vector<std::int64_t> keys_;
  Keys messages_[2];  ///< received, sent
  Keys collectives_;
  std::string text_;
};

std::string main_text(const Program& program) {
  std::string text = fmt::format(
      "int main(int argc, char **argv) {{\n  int rank = 0;\n  int ranks = 0;\n  long long all = "
      "0;\n\n  MPI_Init(&argc, &argv);\n  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n  "
      "MPI_Comm_size(MPI_COMM_WORLD, &ranks);\n  if (ranks != {0}) {{\n    if (rank == 0) "
      "fprintf(stderr, \"found %d ranks, expected {0}\\n\", ranks);\n    MPI_Finalize();\n    "
      "return 2;\n  }}\n  for (int i = 0; i < CALLS; i++) {{\n    request[i][0] = "
      "MPI_REQUEST_NULL;\n    request[i][1] = MPI_REQUEST_NULL;\n  }}\n",
      program.ranks);
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    text += fmt::format(
        "  /* {1} */\n  MPI_Comm_split(MPI_COMM_WORLD, colors[{0}][rank] < 0 ? MPI_UNDEFINED : "
        "colors[{0}][rank], keys[{0}][rank], &group[{0}]);\n  if (colors[{0}][rank] >= 0) {{\n    "
        "MPI_Comm_size(group[{0}], &size[{0}]);\n    MPI_Comm_rank(group[{0}], &place[{0}]);\n  "
        "}}\n",
        g, program.groups[g].name);
  }
  text += "  switch (list_of[rank]) {\n";
  for (std::size_t i = 0; i < program.lists.size(); ++i) {
    text += fmt::format("    case {0}:\n      list{0}(rank);\n      break;\n", i);
  }
  return text +
         fmt::format(
             "  }}\n  MPI_Allreduce(&wrong, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);\n  "
             "if (rank == 0) printf(\"{} ranks, {} exchanges, %lld wrong elements\\n\", all);\n  "
             "MPI_Finalize();\n  return all == 0 ? 0 : 1;\n}}\n",
             program.ranks, exchanges_of(program));
}

}  // namespace

std::string listing_of(const Program& program, const std::string& title) {
  std::size_t calls = 1;
  for (const std::vector<Call>& list : program.lists) {
    calls = std::max(calls, list.size());
  }
  const std::size_t groups = std::max<std::size_t>(program.groups.size(), 1);
  std::vector<std::string> colors;
  std::vector<std::string> keys;
  for (const Family& family : program.groups) {
    colors.push_back(fmt::format("{{{}}}", fmt::join(family.colors, ", ")));
    keys.push_back(fmt::format("{{{}}}", fmt::join(family.keys, ", ")));
  }
  if (program.groups.empty()) {
    colors.emplace_back("{-1}");
    keys.emplace_back("{0}");
  }
  std::string text = fmt::format(
      "/* {}\n   A step as every rank makes it, call by call; every element that arrives is "
      "compared. */\n#include <mpi.h>\n#include <stdint.h>\n#include <stdio.h>\n#include "
      "<stdlib.h>\n#include <string.h>\n#include <time.h>\n\n#define CALLS {}\n\n"
      "static const int colors[{}][{}] = {{{}}};\nstatic const int keys[{}][{}] = {{{}}};\n"
      "static const int list_of[{}] = {{{}}};\n\nstatic MPI_Comm group[{}];\nstatic int "
      "size[{}];\nstatic int place[{}];\nstatic uint64_t *out[CALLS];\nstatic uint64_t "
      "*in[CALLS];\nstatic MPI_Request request[CALLS][2];\nstatic long long wrong;\n",
      title, calls, groups, program.ranks, fmt::join(colors, ", "), groups, program.ranks,
      fmt::join(keys, ", "), program.ranks, fmt::join(program.list_of, ", "), groups, groups,
      groups);
  text += kHelpers;
  for (std::size_t i = 0; i < program.lists.size(); ++i) {
    text += ListWriter(program.lists[i]).text(i);
  }
  return text + main_text(program);
}

}  // namespace orrery::emit
