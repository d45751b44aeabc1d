// Where memory lies and work runs: the CPU always, CUDA when built. Callers hold these interfaces and have no #ifdef.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<Device> device, OpenDevice({DeviceType::kCpu, 0}));
//   ASSIGN_OR_RETURN(DeviceBuffer buffer, device->Allocate(bytes));
//   ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device->CreateStream());
//   RETURN_IF_ERROR(stream->CopyToDevice(buffer, 0, source));
//   RETURN_IF_ERROR(stream->Synchronize());
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

enum class DeviceType { kCpu, kCuda };

struct DeviceId {
  DeviceType type = DeviceType::kCpu;
  int index = 0;
  bool operator==(const DeviceId&) const = default;
};

std::string DeviceName(DeviceId id);                           // "cpu", "cuda:1"
absl::StatusOr<DeviceId> ParseDevice(absl::string_view name);  // "cpu", "cuda" (= "cuda:0"), "cuda:1". Errors: kInvalidArgument.

struct DeviceInfo {
  DeviceId id;
  std::string description;    // "AMD EPYC 9354, 2 CPUs, avx512_vnni"
  uint64_t memory_bytes = 0;  // in all; 0 when unknown
};

// Every device this binary can open here, the CPU first.
std::vector<DeviceInfo> ListDevices();

// Bytes on one device, 64-byte aligned and zeroed; released when destroyed. Move-only; a moved-from buffer is empty.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // For implementations of Device: the deleter of `data` gives the memory back.
  DeviceBuffer(DeviceId device, std::shared_ptr<uint8_t> data, size_t size) : device_(device), data_(std::move(data)), size_(size) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : device_(other.device_), data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    device_ = other.device_;
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  DeviceId device() const { return device_; }
  uint8_t* data() const { return data_.get(); }  // an address of that device: only the CPU's may be read or written by the caller
  size_t size() const { return size_; }

 private:
  DeviceId device_;
  std::shared_ptr<uint8_t> data_;
  size_t size_ = 0;
};

// An ordered executor of one device: what is submitted runs in that order. On the CPU everything is done when the call returns; on other
// devices only after Synchronize, so sources and targets must live until then. After an error the stream skips what follows and every
// call returns that first error. Not thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;

  // Copies between host memory and a buffer of this stream's device. Errors: kOutOfRange when offset + size passes the buffer.
  virtual absl::Status CopyToDevice(const DeviceBuffer& to, size_t offset, absl::Span<const uint8_t> from) = 0;
  virtual absl::Status CopyToHost(absl::Span<uint8_t> to, const DeviceBuffer& from, size_t offset) = 0;
  // Runs `work` (which launches kernels, or on the CPU computes) after all that was submitted before.
  virtual absl::Status Submit(absl::FunctionRef<absl::Status()> work) = 0;
  // Waits for everything submitted. Returns the first error of the stream.
  virtual absl::Status Synchronize() = 0;
};

// Thread-safe. Must outlive its buffers and streams.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  // Errors: kResourceExhausted with the bytes asked for.
  virtual absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream() = 0;
};

// Errors: kUnavailable when there is no such device, or this binary was built without support for it.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(DeviceId id);

}  // namespace pith
