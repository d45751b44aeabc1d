// The CPU as a Device: host memory, and a stream that does everything in the calling thread before it returns.
#pragma once

#include <memory>

#include "device/device.h"

namespace pith {

DeviceInfo CpuDeviceInfo();
std::unique_ptr<Device> MakeCpuDevice();

}  // namespace pith
