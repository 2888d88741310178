// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>

#include "mpi/two_hop.h"

namespace orrery::mpi {
namespace {

/// Multiples of 2^-12 below 1: floats add them up without rounding, up to 2^12 ranks.
std::vector<std::vector<float>> exact_values(std::size_t ranks, std::size_t elements) {
  constexpr int kSteps = 1 << 12;
  std::vector<std::vector<float>> by_rank(ranks, std::vector<float>(elements));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::mt19937_64 random(rank + 1);
    for (float& value : by_rank[rank]) {
      const int step = static_cast<int>(random() % (2 * kSteps - 1)) - (kSteps - 1);
      value = static_cast<float>(step) / kSteps;
    }
  }
  return by_rank;
}

/// A line of the answer, of the worst process.
struct Row {
  const char* name = "";
  std::int64_t near_bytes = 0;
  std::int64_t far_bytes = 0;
  double seconds = 0;
  double error = 0;  ///< largest, over its bound; 0 where nothing is quantised
  bool right = true;
};

class Proof {
 public:
  explicit Proof(const TwoHopRun& run) : run_(run) {
    int processes = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    ranks_ = static_cast<std::size_t>(processes);
    near_ = run.near > 0 ? run.near : std::max(processes / 2, 1);
    shard_ = static_cast<std::size_t>(run.elements) / ranks_;
    by_rank_ = exact_values(ranks_, shard_ * ranks_);
  }

  bool all() {
    say_head();
    bool right = true;
    for (const int bits : {0, 4}) {
      right = say(reduced(bits)) && right;
    }
    for (const int bits : {0, 8}) {
      right = say(gathered(bits)) && right;
    }
    return say(second()) && right;
  }

 private:
  const std::vector<float>& mine() const { return by_rank_[static_cast<std::size_t>(rank_)]; }
  std::span<const float> my_part() const {
    return std::span(mine()).subspan(static_cast<std::size_t>(rank_) * shard_, shard_);
  }
  std::int64_t wire(std::size_t elements, int bits) const {
    const auto count = static_cast<std::int64_t>(elements);
    return bits == 0 ? 4 * count : collective::quantized_bytes(count, bits, run_.block).value();
  }

  /// The least time of `repeat` runs and what the last returned.
  template <class Run>
  std::vector<float> timed(Row& row, Run run) const {
    row.seconds = std::numeric_limits<double>::infinity();
    std::vector<float> result;
    for (int i = 0; i < run_.repeat; ++i) {
      TwoLevels levels(near_, run_.block);
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      result = run(levels);
      row.seconds = std::min(row.seconds, MPI_Wtime() - begin);
      row.near_bytes = levels.near_bytes();
      row.far_bytes = levels.far_bytes();
    }
    return result;
  }

  Row reduced(int bits) {
    Row row{.name = bits == 0 ? "reduce, floats" : "reduce, int4"};
    const auto found = timed(row, [&](TwoLevels& levels) { return levels.reduce(mine(), bits); });
    std::vector<float> exact(shard_);
    MPI_Reduce_scatter_block(mine().data(), exact.data(), static_cast<int>(shard_), MPI_FLOAT,
                             MPI_SUM, MPI_COMM_WORLD);
    const std::size_t nodes = ranks_ / static_cast<std::size_t>(near_);
    row.right = row.near_bytes == near_ * wire(nodes * shard_, bits) &&
                row.far_bytes == static_cast<std::int64_t>(nodes) * wire(shard_, bits);
    if (bits == 0) {
      row.right = row.right && found == exact;
      return row;
    }
    const collective::TwoHopSum reference =
        collective::two_hop_sum(by_rank_, static_cast<std::size_t>(near_), bits, run_.block);
    const auto own = static_cast<std::size_t>(rank_);
    // Adding floats rounds: each of at most `ranks` sums, of what is below 2 x ranks.
    const double rounding =
        2.0 * static_cast<double>(ranks_ * ranks_) * std::numeric_limits<float>::epsilon();
    for (std::size_t i = 0; i < shard_; ++i) {
      const double bound = double{reference.bounds[own][i]} * (1 + 1e-6) + rounding;
      row.error = std::max(row.error, std::abs(double{found[i]} - exact[i]) / bound);
    }
    row.right = row.right && found == reference.shards[own] && row.error <= 1;
    return row;
  }

  Row gathered(int bits) {
    Row row{.name = bits == 0 ? "gather, floats" : "gather, int8"};
    const auto found =
        timed(row, [&](TwoLevels& levels) { return levels.gather(my_part(), bits); });
    row.right = row.far_bytes == wire(shard_, bits);
    if (bits == 0) {
      std::vector<float> flat(found.size());
      const int each = static_cast<int>(shard_);
      MPI_Allgather(my_part().data(), each, MPI_FLOAT, flat.data(), each, MPI_FLOAT,
                    MPI_COMM_WORLD);
      row.right = row.right && found == flat;
      return row;
    }
    for (std::size_t from = 0; from < ranks_; ++from) {
      const auto part = std::span(by_rank_[from]).subspan(from * shard_, shard_);
      const collective::QuantizedBlocks blocks = collective::quantize(part, bits, run_.block);
      const std::vector<float> expected = dequantize(blocks);
      for (std::size_t i = 0; i < shard_; ++i) {
        const float value = found[from * shard_ + i];
        const double half = double{blocks.scales[i / static_cast<std::size_t>(run_.block)]} / 2;
        row.error = std::max(row.error, half > 0 ? std::abs(double{value} - part[i]) / half : 0);
        row.right = row.right && value == expected[i];
      }
    }
    row.right = row.right && row.error <= 1;
    return row;
  }

  Row second() {
    Row row{.name = "second copy, gather"};
    TwoLevels levels(near_, run_.block);
    const std::vector<float> whole = levels.gather(my_part(), 8);
    const std::size_t near = static_cast<std::size_t>(near_);
    const std::size_t part = whole.size() / near;
    const std::size_t place = static_cast<std::size_t>(rank_) % near;
    const auto own = std::span(whole).subspan(place * part, part);
    const auto found = timed(row, [&](TwoLevels& again) { return again.second(own); });
    row.right = found == whole && row.far_bytes == 0 && row.near_bytes == wire(part, 0);
    return row;
  }

  void say_head() const {
    if (rank_ == 0 && !run_.json) {
      fmt::print(
          "{} nodes of {} ranks, {} values a rank, blocks of {}\n{:<20}{:>14}{:>14}{:>12}{:>15}  "
          "{}\n",
          ranks_ / static_cast<std::size_t>(near_), near_, shard_ * ranks_, run_.block,
          "collective", "bytes in node", "between", "ms", "error / bound", "right");
    }
  }

  bool say(Row row) const {
    std::array<double, 2> worst{row.seconds, row.error};
    MPI_Allreduce(MPI_IN_PLACE, worst.data(), 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    int right = row.right ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank_ == 0) {
      fmt::print(
          fmt::runtime(run_.json ? R"({{"collective": "{}", "near_bytes": {}, "far_bytes": {}, )"
                                   R"("ms": {:.6f}, "error_over_bound": {:.6f}, "right": {}}})"
                                   "\n"
                                 : "{:<20}{:>14}{:>14}{:>12.3f}{:>15.4f}  {}\n"),
          row.name, row.near_bytes, row.far_bytes, 1e3 * worst[0], worst[1], right != 0);
      std::fflush(stdout);
    }
    return right != 0;
  }

  TwoHopRun run_;
  int rank_ = 0;
  int near_ = 1;
  std::size_t ranks_ = 1;
  std::size_t shard_ = 1;
  std::vector<std::vector<float>> by_rank_;
};

}  // namespace

bool run_two_hop(const TwoHopRun& run) {
  return Proof(run).all();
}

}  // namespace orrery::mpi
