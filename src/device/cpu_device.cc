#include "device/cpu_device.h"

#include <unistd.h>

#include <cstring>
#include <new>

#include "base/aligned_buffer.h"
#include "base/cpu_features.h"
#include "base/status.h"

namespace pith {
namespace {

absl::Status CheckRange(const DeviceBuffer& buffer, size_t offset, size_t size) {
  if (offset <= buffer.size() && size <= buffer.size() - offset) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("copy of ", size, " bytes at offset ", offset, ": expected them inside the buffer of ", buffer.size(), " bytes"));
}

class CpuStream : public Stream {
 public:
  absl::Status CopyToDevice(const DeviceBuffer& to, size_t offset, absl::Span<const uint8_t> from) override {
    return Submit([&]() -> absl::Status {
      RETURN_IF_ERROR(CheckRange(to, offset, from.size()));
      if (!from.empty()) std::memcpy(to.data() + offset, from.data(), from.size());
      return absl::OkStatus();
    });
  }

  absl::Status CopyToHost(absl::Span<uint8_t> to, const DeviceBuffer& from, size_t offset) override {
    return Submit([&]() -> absl::Status {
      RETURN_IF_ERROR(CheckRange(from, offset, to.size()));
      if (!to.empty()) std::memcpy(to.data(), from.data() + offset, to.size());
      return absl::OkStatus();
    });
  }

  absl::Status Submit(absl::FunctionRef<absl::Status()> work) override {
    if (status_.ok()) status_ = work();
    return status_;
  }

  absl::Status Synchronize() override { return status_; }

 private:
  absl::Status status_;
};

class CpuDevice : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }

  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) override {
    try {
      auto memory = std::make_shared<AlignedBuffer>(bytes);
      return DeviceBuffer(info_.id, std::shared_ptr<uint8_t>(memory, memory->data()), bytes);
    } catch (const std::bad_alloc&) {
      return OutOfMemoryError("device cpu: expected room for ", bytes, " bytes, found none");
    }
  }

  absl::StatusOr<std::unique_ptr<Stream>> CreateStream() override { return std::make_unique<CpuStream>(); }

 private:
  const DeviceInfo info_ = CpuDeviceInfo();
};

}  // namespace

DeviceInfo CpuDeviceInfo() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  const uint64_t memory_bytes = pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes) : 0;
  return {{DeviceType::kCpu, 0}, CpuDescription(), memory_bytes};
}

std::unique_ptr<Device> MakeCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace pith
