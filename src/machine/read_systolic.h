// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/reader.h"
#include "machine/compute/device.h"

namespace orrery::machine {

/// `model` and `systolic` of a device: arrays where the model is systolic, and only there.
void read_systolic(Reader& read_device, compute::Device& device);

}  // namespace orrery::machine
