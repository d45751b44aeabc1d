#include "device/device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "device/cpu_device.h"
#include "device/cuda_device.h"

namespace pith {

std::string DeviceName(DeviceId id) { return id.type == DeviceType::kCpu ? "cpu" : absl::StrCat("cuda:", id.index); }

absl::StatusOr<DeviceId> ParseDevice(absl::string_view name) {
  if (name == "cpu") return DeviceId{DeviceType::kCpu, 0};
  if (name == "cuda") return DeviceId{DeviceType::kCuda, 0};
  absl::string_view number = name;
  int index = 0;
  if (absl::ConsumePrefix(&number, "cuda:") && absl::SimpleAtoi(number, &index) && index >= 0) return DeviceId{DeviceType::kCuda, index};
  return UsageError("device: expected cpu, cuda or cuda:N, found ", Printable(name));
}

std::vector<DeviceInfo> ListDevices() {
  std::vector<DeviceInfo> devices = {CpuDeviceInfo()};
  for (DeviceInfo& device : ListCudaDevices()) devices.push_back(std::move(device));
  return devices;
}

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(DeviceId id) {
  if (id.type == DeviceType::kCuda) return OpenCudaDevice(id.index);
  if (id.index != 0) return UnavailableError("device cpu:", id.index, ": expected index 0, the CPU is one device");
  return MakeCpuDevice();
}

}  // namespace pith
