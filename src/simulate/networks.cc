// SPDX-License-Identifier: Apache-2.0
#include "machine/network/fair.h"
#include "machine/network/fifo.h"
#include "machine/network/flit/network.h"
#include "machine/network/packets/packet_links.h"
#include "simulate/run.h"

namespace orrery::simulate {

std::vector<NetworkRow> shipped_networks() {
  return {
      {.value = NetworkModel::ports,
       .name = "ports",
       .sentence = "a phase of a collective occupies its links at once, for its closed form; who "
                   "shares a link gets less of all of its own. Ranks alike are simulated once",
       .meant_by = {"analytical"},
       .run = run<PortTransport>},
      message_network<network::FifoNetwork>(
          {.value = NetworkModel::fifo,
           .name = "fifo",
           .sentence = "every message of every collective holds every link of its way, first come "
                       "first served; one waits only for what it needs",
           .meant_by = {"message", "messages"}}),
      message_network<network::FairNetwork>(
          {.value = NetworkModel::flow,
           .name = "flow",
           .sentence = "every message of every collective is a flow; links are shared by max-min "
                       "fairness, and what a flow cannot use is given to others",
           .meant_by = {"fair", "max-min"}}),
      message_network<flit::FlitNetwork>(
          {.value = NetworkModel::flit,
           .name = "flit",
           .sentence = "every message of every collective is packets of flits through "
                       "virtual-channel routers with finite buffers, cycle by cycle; in closed "
                       "form while messages do not meet"}),
      message_network<packets::PacketLinks>(
          {.value = NetworkModel::packet,
           .name = "packet",
           .sentence = "every message of every collective is packets in queues of the links that "
                       "they pass, as store-and-forward switches and a protocol of senders and "
                       "receivers have it (`packet` of the machine file)"})};
}

const std::vector<NetworkRow>& networks() {
  static const std::vector<NetworkRow> rows = in_listed_order(network_list());
  return rows;
}

const std::vector<Named<NetworkModel>>& listed_values(NetworkModel /*any*/) {
  static const std::vector<Named<NetworkModel>> names = names_of_rows(networks());
  return names;
}

}  // namespace orrery::simulate
