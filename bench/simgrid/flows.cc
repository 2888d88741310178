// SPDX-License-Identifier: Apache-2.0
/// Flows on SimGrid's flow model, as `orrery flow` runs them: an oracle for its results
/// (tests/machine/network/simgrid_oracle_test.cc) and its speed (bench/simgrid_speed.py).
///
///   simgrid_flows PLATFORM flows FILE.csv     columns source, target, bytes, start_s; prints the
///                                             finish time of each, a line each
///   simgrid_flows PLATFORM all_to_all BYTES   every host to every other, all at once; last finish
///   simgrid_flows PLATFORM ring BYTES         ring all-reduce of BYTES: 2 (n-1) rounds of n flows
///                                             between neighbours; last finish
///
/// Rates are max-min shares of the links: CM02 without cross-traffic and without a limit of TCP's
/// window. One actor begins all flows and waits for them, so SimGrid pays for flows alone.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <simgrid/s4u.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace sg4 = simgrid::s4u;

struct Flow {
  sg4::Host* source;
  sg4::Host* target;
  std::uint64_t bytes;
  double start;
};

std::vector<Flow> read_flows(const std::string& file) {
  std::ifstream lines(file);
  std::string line;
  std::getline(lines, line);  // the header
  std::vector<Flow> flows;
  while (std::getline(lines, line)) {
    std::ranges::replace(line, ',', ' ');
    std::istringstream words(line);
    std::string source;
    std::string target;
    Flow flow{};
    words >> source >> target >> flow.bytes >> flow.start;
    flow.source = sg4::Host::by_name(source);
    flow.target = sg4::Host::by_name(target);
    flows.push_back(flow);
  }
  return flows;
}

/// Hosts of a cluster in the order of their numbers.
std::vector<sg4::Host*> hosts_in_order() {
  std::vector<sg4::Host*> hosts = sg4::Engine::get_instance()->get_all_hosts();
  std::ranges::sort(hosts, {}, [](const sg4::Host* host) {
    return std::pair(host->get_name().size(), host->get_name());
  });
  return hosts;
}

void run_flows(const std::string& file) {
  const std::vector<Flow> flows = read_flows(file);
  std::vector<std::size_t> order(flows.size());
  for (std::size_t f = 0; f < order.size(); ++f) {
    order[f] = f;
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t f) { return flows[f].start; });
  std::vector<sg4::CommPtr> comms(flows.size());
  for (const std::size_t f : order) {
    sg4::this_actor::sleep_until(flows[f].start);
    comms[f] = sg4::Comm::sendto_async(flows[f].source, flows[f].target, flows[f].bytes);
  }
  sg4::Comm::wait_all(comms);
  for (const sg4::CommPtr& comm : comms) {
    std::printf("%.15g\n", comm->get_finish_time());
  }
}

void run_all_to_all(std::uint64_t bytes) {
  const std::vector<sg4::Host*> hosts = hosts_in_order();
  std::vector<sg4::CommPtr> comms;
  for (std::size_t ahead = 1; ahead < hosts.size(); ++ahead) {
    for (std::size_t from = 0; from < hosts.size(); ++from) {
      comms.push_back(
          sg4::Comm::sendto_async(hosts[from], hosts[(from + ahead) % hosts.size()], bytes));
    }
  }
  sg4::Comm::wait_all(comms);
  std::printf("%.15g\n", sg4::Engine::get_clock());
}

void run_ring(std::uint64_t bytes) {
  const std::vector<sg4::Host*> hosts = hosts_in_order();
  std::vector<sg4::CommPtr> comms(hosts.size());
  for (std::size_t round = 0; round < 2 * (hosts.size() - 1); ++round) {
    for (std::size_t from = 0; from < hosts.size(); ++from) {
      comms[from] = sg4::Comm::sendto_async(hosts[from], hosts[(from + 1) % hosts.size()],
                                            bytes / hosts.size());
    }
    sg4::Comm::wait_all(comms);
  }
  std::printf("%.15g\n", sg4::Engine::get_clock());
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/TCP-gamma:0");
  if (argc != 4) {
    std::fprintf(stderr, "simgrid_flows PLATFORM flows|all_to_all|ring FILE|BYTES\n");
    return 2;
  }
  engine.load_platform(argv[1]);
  const std::string what = argv[2];
  const std::string with = argv[3];
  const std::function<void()> run = [&] {
    if (what == "flows") {
      run_flows(with);
    } else if (what == "ring") {
      run_ring(std::stoull(with));
    } else {
      run_all_to_all(std::stoull(with));
    }
  };
  sg4::Actor::create("flows", engine.get_all_hosts().front(), run);
  engine.run();
  return 0;
}
