// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/reader.h"
#include "machine/compute/device.h"

namespace orrery::machine {

/// Reads `model` of a device and the map of that name, which only its model has and needs.
void read_model(Reader& read_device, compute::Device& device);

}  // namespace orrery::machine
