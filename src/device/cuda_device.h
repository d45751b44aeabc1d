// CUDA as a Device. Defined by cuda_device.cu in builds with CUDA, and by no_cuda.cc otherwise.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "device/device.h"

namespace pith {

std::vector<DeviceInfo> ListCudaDevices();
absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int index);

}  // namespace pith
