// SPDX-License-Identifier: Apache-2.0
/// Networks from YAML files.
#pragma once

#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "neural/network.h"

namespace orrery::neural {

/// Reads a file of one network,
///
///   name: two-cells
///   input: [3, 8, 8]
///   classes: 10
///   accuracy: 0.93
///   layers:
///     - {name: stem, kind: convolution, channels: 8, kernel: 3}
///     - {name: a, kind: cell, channels: 8, edges: [skip, conv3x3, none, conv1x1, skip, skip]}
///     - {name: sum, kind: add, inputs: [stem, a]}
///     - {kind: global_pool}
///     - {kind: linear, features: 10}
///
/// or of a space of networks of cells, of which `count` different ones are drawn:
///
///   input: [3, 8, 8]
///   classes: 10
///   stages: [8, 16]
///   count: 70
///   seed: 1
///
/// Without a name the file's is taken, without its ending; accuracy is what the user has measured.
/// The input is channels, height, width, or tokens, features, or features. Stages are channels of
/// each stage, which has one cell; the extent halves between them. A layer's input is the one
/// before it; `input` is the network's own. A cell (cell.h) stands for its layers. Mistakes: all of
/// the file at once, with the shapes that do not fit; a network whose last layer has no [classes]
/// outputs; more than 2,000 layers or 50 million weights.
Result<std::vector<Network>> read_networks(const ConfigNode& root);

/// Every .yaml and .yml file of a folder in the order of names, or one file. Mistakes: no files,
/// two networks of one name.
Result<std::vector<Network>> load_networks(const std::string& folder_or_file);

}  // namespace orrery::neural
