// The twin of the CUDA device for builds without CUDA: there are no such devices, and opening one says why.
#include "base/status.h"
#include "device/cuda_device.h"

namespace pith {

std::vector<DeviceInfo> ListCudaDevices() { return {}; }

absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int index) {
  return UnavailableError("device cuda:", index, ": expected a build with CUDA, found one for the CPU only; use the device cpu");
}

}  // namespace pith
