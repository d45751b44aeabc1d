#include "device/device.h"

#include <algorithm>
#include <vector>

#include "base/cpu_features.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DeviceName, ParseUndoesIt) {
  for (const char* name : {"cpu", "cuda:0", "cuda:7"}) EXPECT_EQ(DeviceName(*ParseDevice(name)), name);
  EXPECT_EQ(DeviceName(*ParseDevice("cuda")), "cuda:0");
  for (const char* name : {"", "gpu", "cpu:0", "cuda:", "cuda:-1", "cuda:x", "CPU", "cuda:99999999999"}) {
    EXPECT_EQ(ParseDevice(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST(ListDevices, TheCpuComesFirst) {
  const std::vector<DeviceInfo> devices = ListDevices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].id, (DeviceId{DeviceType::kCpu, 0}));
  EXPECT_EQ(devices[0].description, CpuDescription());
  EXPECT_GT(devices[0].memory_bytes, uint64_t{64} << 20);
}

TEST(OpenDevice, WhatIsNotThereIsUnavailable) {
  EXPECT_EQ(OpenDevice({DeviceType::kCpu, 1}).status().code(), absl::StatusCode::kUnavailable);
  const auto cuda = OpenDevice({DeviceType::kCuda, 4096});
  EXPECT_EQ(cuda.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(cuda.status().message()), HasSubstr("cuda:4096"));
}

TEST(CpuDevice, BuffersAreAlignedZeroedAndMoveOnly) {
  const auto device = OpenDevice({});
  ASSERT_TRUE(device.ok());
  auto buffer = (*device)->Allocate(100);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
  EXPECT_TRUE(std::all_of(buffer->data(), buffer->data() + 100, [](uint8_t byte) { return byte == 0; }));
  uint8_t* data = buffer->data();
  DeviceBuffer moved = *std::move(buffer);
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(moved.size(), 100u);
  EXPECT_EQ(buffer->data(), nullptr);
  EXPECT_EQ(buffer->size(), 0u);
  moved = DeviceBuffer();
  EXPECT_EQ(moved.size(), 0u);
  EXPECT_EQ((*device)->Allocate(0)->size(), 0u);
}

TEST(CpuDevice, TooMuchMemoryIsAnErrorWithTheBytes) {
  const auto device = OpenDevice({});
  const auto buffer = (*device)->Allocate(size_t{1} << 60);
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(buffer.status().message()), HasSubstr("1152921504606846976"));
}

class CpuStream : public testing::Test {
 protected:
  std::unique_ptr<Device> device_ = *OpenDevice({});
  DeviceBuffer buffer_ = *device_->Allocate(8);
  std::unique_ptr<Stream> stream_ = *device_->CreateStream();
};

TEST_F(CpuStream, CopiesThereAndBack) {
  const std::vector<uint8_t> source = {1, 2, 3};
  ASSERT_TRUE(stream_->CopyToDevice(buffer_, 4, source).ok());
  std::vector<uint8_t> target(5);
  ASSERT_TRUE(stream_->CopyToHost(absl::MakeSpan(target), buffer_, 3).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  EXPECT_THAT(target, ElementsAre(0, 1, 2, 3, 0));
  EXPECT_TRUE(stream_->CopyToDevice(buffer_, 8, {}).ok());
}

TEST_F(CpuStream, CopiesOutsideTheBufferAreRefused) {
  std::vector<uint8_t> bytes(4);
  for (const size_t offset : {size_t{5}, size_t{9}, SIZE_MAX, SIZE_MAX - 3}) {
    const auto stream = *device_->CreateStream();
    EXPECT_EQ(stream->CopyToDevice(buffer_, offset, bytes).code(), absl::StatusCode::kOutOfRange) << offset;
    const auto other = *device_->CreateStream();
    EXPECT_EQ(other->CopyToHost(absl::MakeSpan(bytes), buffer_, offset).code(), absl::StatusCode::kOutOfRange) << offset;
  }
}

TEST_F(CpuStream, RunsInOrderAndStopsAtTheFirstError) {
  std::vector<int> order;
  const auto step = [&](int i, absl::Status status) {
    return stream_->Submit([&]() -> absl::Status {
      order.push_back(i);
      return status;
    });
  };
  EXPECT_TRUE(step(1, absl::OkStatus()).ok());
  EXPECT_EQ(step(2, IoError("first")).message(), "first");
  EXPECT_EQ(step(3, IoError("second")).message(), "first");
  EXPECT_EQ(stream_->CopyToDevice(buffer_, 0, {}).message(), "first");
  EXPECT_EQ(stream_->Synchronize().message(), "first");
  EXPECT_THAT(order, ElementsAre(1, 2));
}

}  // namespace
}  // namespace pith
