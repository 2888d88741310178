// SPDX-License-Identifier: Apache-2.0
#include "graph/verify_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "graph/liveness.h"

namespace orrery::graph {
namespace {

constexpr int kNothing = -1;

class TensorCheck {
 public:
  TensorCheck(const Workload& workload, const Template& t)
      : workload_(workload),
        template_(t),
        streams_(workload.streams.size()),
        writers_(t.tensors.size(), kNothing),
        in_order_(streams_, kNothing) {
    if (std::any_of(t.tensors.begin(), t.tensors.end(),
                    [](const Tensor& tensor) { return tensor.memory.none(); })) {
      done_before_.resize(t.nodes.size() * streams_, kNothing);
    }
  }

  std::vector<std::string> run() {
    for (std::size_t i = 0; i < template_.tensors.size(); ++i) {
      check_tensor(i);
    }
    for (std::size_t n = 0; n < template_.nodes.size() && mistakes_.empty(); ++n) {
      if (!done_before_.empty()) {
        note_order(n);
      }
      check_uses(n);
    }
    return std::move(mistakes_);
  }

 private:
  void check_tensor(std::size_t number) {
    const Tensor& tensor = template_.tensors[number];
    const auto require = [&](bool ok, std::string_view law) {
      if (!ok) {
        mistakes_.push_back(fmt::format("template '{}', tensor {} '{}': {}", template_.name, number,
                                        tensor.name, law));
      }
    };
    require(tensor.bytes >= Bytes(0) && !tensor.bytes.is_overflow(),
            "has a negative or overflowing size");
    require(
        tensor.memory.none() || *tensor.memory < std::min(workload_.memory.size(), kMostMemoryRows),
        "counts as a kind of memory that is not there");
    require(!tensor.memory.none() || tensor.lifetime == Tensor::Lifetime::instance,
            "outlives its instance but is no allocation");
    for (const Sharding& sharding : tensor.layout) {
      require(*sharding.group < workload_.groups.size(), "is held by a group that is not there");
    }
  }

  /// Notes what has surely completed when node n starts: by stream, the last such node.
  void note_order(std::size_t n) {
    const Node& node = template_.nodes[n];
    for (const int before : node.after) {
      take(before, n);
    }
    if (workload_.streams[*node.stream].order == Order::issue) {
      int& last = in_order_[*node.stream];
      if (last != kNothing) {
        take(last, n);
      }
      last = static_cast<int>(n);
    }
  }

  void take(int before, std::size_t n) {
    const auto from = static_cast<std::size_t>(before);
    int* done = &done_before_[n * streams_];
    for (std::size_t s = 0; s < streams_; ++s) {
      done[s] = std::max(done[s], done_before_[from * streams_ + s]);
    }
    int& own = done[*template_.nodes[from].stream];
    own = std::max(own, before);
  }

  void check_uses(std::size_t n) {
    const Node& node = template_.nodes[n];
    const auto is_there = [&](const Use& use) {
      const auto operators = std::max<std::size_t>(1, node.operators.size());
      return use.tensor >= 0 && static_cast<std::size_t>(use.tensor) < template_.tensors.size() &&
             use.at >= 0 && static_cast<std::size_t>(use.at) < operators;
    };
    if (!std::all_of(node.reads.begin(), node.reads.end(), is_there) ||
        !std::all_of(node.writes.begin(), node.writes.end(), is_there)) {
      return add(n, "uses a tensor that is not there");
    }
    for (const Use& use : node.reads) {
      const auto tensor = static_cast<std::size_t>(use.tensor);
      if (template_.tensors[tensor].memory.none() && !is_own(node, use)) {
        check_read(n, writers_[tensor]);
      }
    }
    for (const Use& use : node.writes) {
      writers_[static_cast<std::size_t>(use.tensor)] = static_cast<int>(n);
    }
  }

  /// Written by an earlier operator of the node itself.
  static bool is_own(const Node& node, const Use& read) {
    return std::any_of(node.writes.begin(), node.writes.end(), [&](const Use& write) {
      return write.tensor == read.tensor && write.at < read.at;
    });
  }

  void check_read(std::size_t n, int writer) {
    if (writer == kNothing) {
      return add(n, "reads what nothing has written");
    }
    const std::size_t stream = *template_.nodes[static_cast<std::size_t>(writer)].stream;
    if (workload_.streams[stream].order == Order::issue &&
        done_before_[n * streams_ + stream] < writer) {
      add(n, fmt::format("reads what node {} writes and does not wait for it", writer));
    }
  }

  void add(std::size_t n, std::string_view law) {
    mistakes_.push_back(fmt::format("template '{}', node {} '{}': {}", template_.name, n,
                                    template_.nodes[n].name, law));
  }

  const Workload& workload_;
  const Template& template_;
  std::size_t streams_;
  std::vector<int> writers_;      // by tensor
  std::vector<int> in_order_;     // by stream: the last node
  std::vector<int> done_before_;  // [node][stream]; empty: no values, allocations need no order
  std::vector<std::string> mistakes_;
};

}  // namespace

std::vector<std::string> tensor_mistakes(const Workload& workload, const Template& t) {
  return t.tensors.empty() ? std::vector<std::string>() : TensorCheck(workload, t).run();
}

}  // namespace orrery::graph
