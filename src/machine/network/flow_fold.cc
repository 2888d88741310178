// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flow_fold.h"

#include <algorithm>
#include <bit>
#include <span>
#include <unordered_map>

#include "machine/topology/routing.h"

namespace orrery::network {
namespace {

using topology::Hop;
using topology::mixed;
using topology::Piece;

std::uint64_t bits(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

std::uint64_t mixed_with(std::uint64_t colour, std::uint64_t value) {
  return mixed(colour ^ mixed(value));
}

class Folder {
 public:
  Folder(const topology::LinkGraph& graph, const LaidFlows& flows)
      : graph_(graph), flows_(flows), links_(graph.links.size()), met_(graph.links.size()) {}

  std::optional<FoldedFlows> run() {
    begin();
    const bool pipes =
        std::ranges::any_of(used_, [this](std::uint32_t link) { return graph_.links[link].pipe; });
    if (used_.empty() || pipes) {
      return std::nullopt;
    }
    for (std::size_t before = count();;) {
      refine();
      const std::size_t now = count();
      if (now * 2 > used_.size()) {
        return std::nullopt;
      }
      if (now == before) {
        break;
      }
      before = now;
    }
    name_classes();
    for (std::size_t c = 0; c < first_.size(); ++c) {
      add(c);
    }
    return std::move(folded_);
  }

 private:
  void begin() {
    const auto& pieces = flows_.assigned.pieces;
    own_.reserve(pieces.size());
    for (const Piece& piece : pieces) {
      const FlowRequest& flow = request(piece);
      Time latency{0};
      for (const Hop& hop : flows_.assigned.route(piece)) {
        latency += hop.latency;
        if (std::uint64_t& colour = links_[hop.link]; colour == 0) {
          colour = mixed(bits(graph_.links[hop.link].bandwidth.value())) | 1U;
          used_.push_back(static_cast<std::uint32_t>(hop.link));
        }
      }
      std::uint64_t colour = mixed_with(bits(piece.share), std::bit_cast<std::uint64_t>(latency));
      colour = mixed_with(colour, std::bit_cast<std::uint64_t>(flow.start));
      colour = mixed_with(colour, std::bit_cast<std::uint64_t>(flow.bytes));
      colour = mixed_with(colour, bits(flow.weight));
      own_.push_back(mixed_with(colour, bits(flow.cap.value())));
    }
    colours_.resize(pieces.size());
  }

  const FlowRequest& request(const Piece& piece) const {
    return flows_.all[flows_.order[piece.flow]];
  }

  void refine() {
    for (const std::uint32_t link : used_) {
      met_[link] = 0;
    }
    for (std::size_t p = 0; p < own_.size(); ++p) {
      const std::span<const Hop> route = flows_.assigned.route(flows_.assigned.pieces[p]);
      std::uint64_t sum = own_[p];
      for (const Hop& hop : route) {
        sum += mixed(links_[hop.link] ^ bits(hop.bandwidth.value()));
      }
      colours_[p] = mixed(sum);
      for (const Hop& hop : route) {
        met_[hop.link] += mixed(colours_[p] ^ bits(hop.bandwidth.value()));
      }
    }
    for (const std::uint32_t link : used_) {
      links_[link] = mixed(links_[link] + mixed(met_[link]));
    }
  }

  /// Classes of links.
  std::size_t count() {
    seen_.clear();
    for (const std::uint32_t link : used_) {
      seen_.push_back(links_[link]);
    }
    std::ranges::sort(seen_);
    return static_cast<std::size_t>(std::ranges::unique(seen_).begin() - seen_.begin());
  }

  void name_classes() {
    std::unordered_map<std::uint64_t, std::uint32_t> names;
    folded_.class_of.reserve(colours_.size());
    for (std::size_t p = 0; p < colours_.size(); ++p) {
      const auto next = static_cast<std::uint32_t>(first_.size());
      const auto [name, is_new] = names.try_emplace(colours_[p], next);
      if (is_new) {
        first_.push_back(p);
        pieces_.push_back(0);
      }
      ++pieces_[name->second];
      folded_.class_of.push_back(name->second);
    }
    std::unordered_map<std::uint64_t, std::uint32_t> of_links;
    folded_.stands_for.resize(links_.size());
    std::ranges::sort(used_);
    for (const std::uint32_t link : used_) {
      const std::uint32_t first = of_links.try_emplace(links_[link], link).first->second;
      folded_.stands_for[link] = first;
      met_[first] = first == link ? 1 : met_[first] + 1;
    }
  }

  /// The class's first piece. Of n pieces that pass links of a class with shares of s in all, each
  /// of its m links gets n s / m.
  void add(std::size_t number) {
    const Piece& piece = flows_.assigned.pieces[first_[number]];
    auto& hops = folded_.assigned.hops;
    const std::size_t first = hops.size();
    for (const Hop& hop : flows_.assigned.route(piece)) {
      const std::uint32_t link = folded_.stands_for[hop.link];
      const double share = graph_.links[link].bandwidth.value() / hop.bandwidth.value();
      auto known = std::find_if(hops.begin() + static_cast<std::ptrdiff_t>(first), hops.end(),
                                [link](const Hop& other) { return other.link == link; });
      if (known == hops.end()) {
        hops.push_back({static_cast<topology::LinkId>(link), Bandwidth(0), Time(0)});
        known = hops.end() - 1;
      }
      known->bandwidth += Bandwidth(share);
      known->latency += hop.latency;
    }
    for (std::size_t h = first; h < hops.size(); ++h) {
      const double passes = hops[h].bandwidth.value() * static_cast<double>(pieces_[number]) /
                            static_cast<double>(met_[hops[h].link]);
      hops[h].bandwidth = Bandwidth(graph_.links[hops[h].link].bandwidth.value() / passes);
    }
    folded_.assigned.pieces.push_back({static_cast<std::uint32_t>(number),
                                       static_cast<std::uint32_t>(hops.size() - first), piece.share,
                                       first});
    folded_.flows.push_back(request(piece));
  }

  const topology::LinkGraph& graph_;
  const LaidFlows& flows_;
  std::vector<std::uint64_t> links_;    ///< colours by link; 0: nothing passes it
  std::vector<std::uint64_t> met_;      ///< by link: the colours that pass it; at last, of a
                                        ///< class's first, how many links the class has
  std::vector<std::uint32_t> used_;     ///< links
  std::vector<std::uint64_t> own_;      ///< colours by piece, before any link is looked at
  std::vector<std::uint64_t> colours_;  ///< by piece
  std::vector<std::uint64_t> seen_;
  std::vector<std::size_t> first_;     ///< piece of each class
  std::vector<std::uint64_t> pieces_;  ///< of each class
  FoldedFlows folded_;
};

}  // namespace

std::optional<FoldedFlows> fold(const topology::LinkGraph& graph, const LaidFlows& flows) {
  return Folder(graph, flows).run();
}

FlowRun unfold(const FoldedFlows& folded, const LaidFlows& flows, const FlowRun& run) {
  FlowRun all;
  all.finish.resize(flows.all.size());
  all.load.resize(run.load.size());
  all.end = run.end;
  all.solved = run.solved;
  all.simulated = run.pieces;
  all.pieces = flows.assigned.pieces.size();
  for (std::size_t p = 0; p < all.pieces; ++p) {
    const topology::Piece& piece = flows.assigned.pieces[p];
    Time& finish = all.finish[flows.order[piece.flow]];
    finish = std::max(finish, run.finish[folded.class_of[p]]);
    for (const topology::Hop& hop : flows.assigned.route(piece)) {
      all.load[hop.link] = run.load[folded.stands_for[hop.link]];
    }
  }
  return all;
}

}  // namespace orrery::network
