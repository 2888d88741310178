// SPDX-License-Identifier: Apache-2.0
#include "collective/tiles/rank.h"

#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <random>
#include <thread>

namespace orrery::tiles {
namespace {

bool send_all(int socket, const void* data, std::size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(socket, next, size, MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    next += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t size) {
  return size == 0 || ::recv(socket, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

/// Multiples of 1/1024 up to 1, of which sums round, so that their order shows.
std::vector<float> drawn(std::int64_t count, std::mt19937_64& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(static_cast<std::int64_t>(random() % 2049) - 1024) / 1024.0F;
  }
  return values;
}

}  // namespace

Operands::Operands(const Problem& problem) : problem_(problem) {
  std::mt19937_64 random(static_cast<std::uint64_t>(problem.seed));
  for (std::int64_t rank = 0; rank < problem.ranks; ++rank) {
    left_.push_back(drawn(problem.rows * problem.inner, random));
    right_.push_back(drawn(problem.inner * problem.columns, random));
  }
}

void Operands::multiply(std::int64_t rank, std::int64_t tile, float* out) const {
  const std::int64_t columns = problem_.columns;
  const float* left =
      left_[static_cast<std::size_t>(rank)].data() + tile * problem_.tile_rows() * problem_.inner;
  const float* right = right_[static_cast<std::size_t>(rank)].data();
  std::fill_n(out, problem_.tile_rows() * columns, 0.0F);
  for (std::int64_t row = 0; row < problem_.tile_rows(); ++row) {
    for (std::int64_t k = 0; k < problem_.inner; ++k) {
      const float factor = left[row * problem_.inner + k];
      for (std::int64_t column = 0; column < columns; ++column) {
        out[row * columns + column] += factor * right[k * columns + column];
      }
    }
  }
}

std::vector<float> Operands::sum() const {
  const std::int64_t elements = problem_.tile_rows() * problem_.columns;
  std::vector<float> sum(static_cast<std::size_t>(problem_.rows * problem_.columns));
  std::vector<float> more(static_cast<std::size_t>(elements));
  for (std::int64_t tile = 0; tile < problem_.all_tiles(); ++tile) {
    float* total = sum.data() + tile * elements;
    for (std::int64_t step = 1; step <= problem_.ranks; ++step) {
      const std::int64_t rank = (tile / problem_.tiles + step) % problem_.ranks;
      multiply(rank, tile, step == 1 ? total : more.data());
      for (std::int64_t i = 0; step > 1 && i < elements; ++i) {
        total[i] = total[i] + more[static_cast<std::size_t>(i)];
      }
    }
  }
  return sum;
}

Rank::Rank(const Problem& problem, const Operands& operands, std::int64_t number, int in, int out)
    : problem_(problem),
      operands_(operands),
      number_(number),
      in_(in),
      out_(out),
      elements_(problem.tile_rows() * problem.columns),
      local_(static_cast<std::size_t>(problem.rows * problem.columns)),
      arrived_(local_.size()),
      result_(local_.size()),
      counters_(static_cast<std::size_t>(problem.all_tiles())),
      own_left_(problem.tiles),
      gather_left_(problem.tiles * (problem.ranks - 1)) {}

std::int64_t Rank::made_at(std::int64_t place) const {
  const std::int64_t back = 1 + place / problem_.tiles;
  const std::int64_t chunk = (number_ + problem_.ranks - back) % problem_.ranks;
  return chunk * problem_.tiles + place % problem_.tiles;
}

Rank::Moments Rank::produce(std::barrier<>& all, bool overlaps) {
  all.arrive_and_wait();
  Moments moments{.started = Clock::now(), .made = {}, .reduced = {}, .gathered = {}};
  for (std::int64_t place = 0; place < problem_.all_tiles(); ++place) {
    const std::int64_t tile = made_at(place);
    operands_.multiply(number_, tile, at(local_, tile));
    if (overlaps) {
      update(tile);
    }
  }
  moments.made = Clock::now();
  if (!overlaps) {
    all.arrive_and_wait();
    for (std::int64_t place = 0; place < problem_.all_tiles(); ++place) {
      update(made_at(place));
    }
  }
  wait_for(own_left_);
  moments.reduced = Clock::now();
  all.arrive_and_wait();
  for (std::int64_t tile = number_ * problem_.tiles; tile < (number_ + 1) * problem_.tiles;
       ++tile) {
    enqueue({static_cast<std::uint32_t>(tile), 1});
  }
  wait_for(gather_left_);
  moments.gathered = Clock::now();
  return moments;
}

/// A store or an arrival. Whoever makes the counter full sees what the other one wrote.
void Rank::update(std::int64_t tile) {
  const int expected = is_first(tile) ? 1 : 2;
  updates_.fetch_add(1, std::memory_order_relaxed);
  const int before =
      counters_[static_cast<std::size_t>(tile)].fetch_add(1, std::memory_order_acq_rel);
  if (before + 1 == expected) {
    complete(tile);
  }
}

void Rank::complete(std::int64_t tile) {
  float* own = at(local_, tile);
  if (!is_first(tile)) {
    const float* arrived = at(arrived_, tile);
    for (std::int64_t i = 0; i < elements_; ++i) {
      own[i] = arrived[i] + own[i];
    }
  }
  if (is_own(tile)) {
    std::copy_n(own, elements_, at(result_, tile));
    finish(own_left_);
  } else {
    triggered_.fetch_add(1, std::memory_order_relaxed);
    enqueue({static_cast<std::uint32_t>(tile), 0});
  }
}

void Rank::enqueue(Header header) {
  {
    const std::lock_guard lock(mutex_);
    ready_.push_back(header);
  }
  changed_.notify_all();
}

void Rank::finish(std::int64_t& left) {
  {
    const std::lock_guard lock(mutex_);
    --left;
  }
  changed_.notify_all();
}

void Rank::wait_for(const std::int64_t& left) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return left == 0 || failed_; });
}

void Rank::fail() {
  {
    const std::lock_guard lock(mutex_);
    failed_ = true;
  }
  ::shutdown(in_, SHUT_RDWR);
  ::shutdown(out_, SHUT_RDWR);
  changed_.notify_all();
}

void Rank::send() {
  const std::int64_t all = 2 * problem_.tiles * (problem_.ranks - 1);
  const std::size_t size = static_cast<std::size_t>(elements_) * sizeof(float);
  const double rate = problem_.bandwidth.value();
  const auto takes = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(rate > 0 ? static_cast<double>(size) / rate : 0));
  for (std::int64_t sent = 0; sent < all; ++sent) {
    Header header;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !ready_.empty() || failed_; });
      if (failed_) {
        return;
      }
      header = ready_.front();
      ready_.pop_front();
    }
    if (rate > 0) {
      std::this_thread::sleep_until(Clock::now() + takes);
    }
    std::vector<float>& from = header.gathers != 0 ? result_ : local_;
    if (!send_all(out_, &header, sizeof header) || !send_all(out_, at(from, header.tile), size)) {
      return fail();
    }
  }
}

void Rank::receive() {
  const std::int64_t all = 2 * problem_.tiles * (problem_.ranks - 1);
  const std::size_t size = static_cast<std::size_t>(elements_) * sizeof(float);
  for (std::int64_t received = 0; received < all; ++received) {
    Header header;
    if (!receive_all(in_, &header, sizeof header) || header.tile >= problem_.all_tiles() ||
        !receive_all(in_, at(header.gathers != 0 ? result_ : arrived_, header.tile), size)) {
      return fail();
    }
    if (header.gathers == 0) {
      update(header.tile);
      continue;
    }
    if ((number_ + 1) % problem_.ranks != chunk_of(header.tile)) {
      enqueue(header);  // the next rank is not its owner
    }
    finish(gather_left_);
  }
}

}  // namespace orrery::tiles
