#include "comm/comm.h"

#include "base/status.h"

namespace pith {
namespace {

class SingleProcessCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::Status AllReduceSum(absl::Span<float>) override { return absl::OkStatus(); }
  absl::Status Broadcast(absl::Span<uint8_t>, int root) override {
    if (root != 0) return UsageError("root: expected a rank in [0, 1), found ", root);
    return absl::OkStatus();
  }
  absl::Status Barrier() override { return absl::OkStatus(); }
};

}  // namespace

std::unique_ptr<Communicator> SingleProcess() { return std::make_unique<SingleProcessCommunicator>(); }

}  // namespace pith
