// SPDX-License-Identifier: Apache-2.0
/// Fields that elements of SimGrid's platform files have alike. Private to the folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/topology/link_graph.h"
#include "machine/topology/maker_fields.h"
#include "machine/topology/xml_text.h"

namespace orrery::topology {

/// FATPIPE: every flow has the whole bandwidth. SPLITDUPLEX: a link each way.
enum class Sharing : std::uint8_t { shared, split, fat_pipe };

/// Attributes that the element has not; profiles over time are refused.
void check_attributes(XmlText& xml, const pugi::xml_node& node);
Wire wire_of(XmlText& xml, const pugi::xml_node& node, const char* bandwidth, const char* latency);
Sharing sharing_of(XmlText& xml, const pugi::xml_node& node, const char* attribute,
                   Sharing otherwise);
/// Reads "0-15,20" as numbers.
std::vector<std::int64_t> radical_of(XmlText& xml, const pugi::xml_node& node);
/// Returns the host's prefix, number and suffix.
std::string cluster_host(const pugi::xml_node& node, std::int64_t number);

/// Returns a platform that is one cluster of a regular topology, without backbone and limiters.
LinkGraph read_simgrid_cluster(XmlText& xml, const pugi::xml_node& node);

}  // namespace orrery::topology
