// SPDX-License-Identifier: Apache-2.0
/// Mesh, torus, flattened butterfly, HammingMesh.
#include <numeric>

#include "machine/topology/maker_fields.h"

namespace orrery::topology {
namespace {

using Family = Layout::Family;

std::int64_t product(const std::vector<std::int32_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

/// Cables of the routers of a line of `extent`, `stride` vertices apart.
void link_line(LinkGraph& graph, std::int32_t first, std::int32_t extent, std::int32_t stride,
               const Wire& wire) {
  const Family family = graph.layout.family;
  for (std::int32_t i = 0; i < extent; ++i) {
    const std::int32_t here = first + i * stride;
    if (family == Family::butterfly) {
      for (std::int32_t j = i + 1; j < extent; ++j) {
        graph.connect(here, first + j * stride, wire.bandwidth, wire.latency);
      }
    } else if (i + 1 < extent) {
      graph.connect(here, here + stride, wire.bandwidth, wire.latency);
    } else if (family == Family::torus && extent > 2) {
      graph.connect(here, first, wire.bandwidth, wire.latency);
    }
  }
}

LinkGraph grid(Family family, const std::vector<std::int32_t>& shape, std::int32_t concentration,
               const Wire& wire, const Wire& host_wire) {
  LinkGraph graph;
  const std::int64_t routers = product(shape);
  add_hosts(graph, concentration == 0 ? routers : routers * concentration);
  graph.hosts_forward = concentration == 0;
  graph.layout.family = family;
  graph.layout.shape = shape;
  graph.layout.concentration = concentration;
  graph.routing = family == Family::butterfly ? Routing::ecmp : Routing::dimension_order;
  graph.layout.first_router = concentration == 0 ? 0 : add_switches(graph, routers, "router", 1);
  if (concentration > 0) {
    for (std::int32_t h = 0; h < graph.hosts; ++h) {
      graph.connect(h, graph.layout.first_router + h / concentration, host_wire.bandwidth,
                    host_wire.latency);
    }
  }
  std::int32_t stride = 1;
  for (const std::int32_t extent : shape) {
    for (std::int32_t r = 0; r < routers; ++r) {
      if (r / stride % extent == 0) {
        link_line(graph, graph.layout.first_router + r, extent, stride, wire);
      }
    }
    stride *= extent;
  }
  return graph;
}

Result<LinkGraph> read_grid(const ConfigNode& map, Family family) {
  constexpr std::size_t kMostGridDimensions = 6;
  Reader read(map);
  const std::vector<std::int32_t> shape = read_extents(read, "shape", 1, kMostGridDimensions);
  const std::int32_t hosts = read_count(read, "hosts", family == Family::butterfly ? 1 : 0, 0);
  const Wire wire = read_wire(read);
  const Wire host_wire = read_wire(read, "host_", wire);
  double routers = 1;
  double neighbours = 0;
  for (const std::int32_t extent : shape) {
    routers *= extent;
    neighbours += family == Family::butterfly ? extent - 1 : 2;
  }
  check_size(read, "shape", routers * (1 + hosts), routers * (neighbours + 2.0 * hosts));
  return finished(read, [&] { return grid(family, shape, hosts, wire, host_wire); });
}

struct HammingMesh {
  std::vector<std::int32_t> board;  ///< accelerators: columns x rows
  std::vector<std::int32_t> boards;
  Wire wire;         ///< on the board
  Wire switch_wire;  ///< to the switches of rows and columns
};

/// OnLine describes a host on a row or column: its place, that of a board's length, and whom it is
/// linked with.
struct OnLine {
  std::int32_t at = 0;
  std::int32_t extent = 0;
  std::int32_t next = 0;
  std::int32_t hub = 0;
};

void connect_on_line(LinkGraph& graph, const HammingMesh& mesh, std::int32_t host,
                     const OnLine& line) {
  if (line.at % line.extent + 1 < line.extent) {
    graph.connect(host, line.next, mesh.wire.bandwidth, mesh.wire.latency);
  } else {  // the far edge
    graph.connect(host, line.hub, mesh.switch_wire.bandwidth, mesh.switch_wire.latency);
  }
  if (line.at % line.extent == 0) {  // the near edge
    graph.connect(host, line.hub, mesh.switch_wire.bandwidth, mesh.switch_wire.latency);
  }
}

/// Host (x, y) of all boards together is x + y * columns.
LinkGraph hamming_mesh(const HammingMesh& mesh) {
  LinkGraph graph;
  const std::int32_t columns = mesh.board[0] * mesh.boards[0];
  const std::int32_t rows = mesh.board[1] * mesh.boards[1];
  add_hosts(graph, std::int64_t{columns} * rows);
  graph.hosts_forward = true;
  const std::int32_t row_switch = add_switches(graph, rows, "row", 1);
  const std::int32_t column_switch = add_switches(graph, columns, "column", 1);
  for (std::int32_t y = 0; y < rows; ++y) {
    for (std::int32_t x = 0; x < columns; ++x) {
      const std::int32_t host = x + y * columns;
      connect_on_line(graph, mesh, host, {x, mesh.board[0], host + 1, row_switch + y});
      connect_on_line(graph, mesh, host, {y, mesh.board[1], host + columns, column_switch + x});
    }
  }
  return graph;
}

}  // namespace

Result<LinkGraph> make_mesh(const ConfigNode& map) {
  return read_grid(map, Family::mesh);
}

Result<LinkGraph> make_torus(const ConfigNode& map) {
  return read_grid(map, Family::torus);
}

Result<LinkGraph> make_flattened_butterfly(const ConfigNode& map) {
  return read_grid(map, Family::butterfly);
}

Result<LinkGraph> make_hamming_mesh(const ConfigNode& map) {
  Reader read(map);
  HammingMesh mesh;
  mesh.board = read_extents(read, "board", 2, 2);
  mesh.boards = read_extents(read, "shape", 2, 2);
  mesh.wire = read_wire(read);
  mesh.switch_wire = read_wire(read, "switch_", mesh.wire);
  const double hosts = 1.0 * mesh.board[0] * mesh.board[1] * mesh.boards[0] * mesh.boards[1];
  check_size(read, "shape", 3 * hosts, 8 * hosts);
  return finished(read, [&] { return hamming_mesh(mesh); });
}

}  // namespace orrery::topology
