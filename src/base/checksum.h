// A checksum that costs little beside copying the bytes: Poly1305 of OpenSSL with a fixed key. It finds damage by chance (a torn write, a
// flipped bit) with a probability of failure below 2^-80 for up to 64 MiB (RFC 8439); as its key is no secret, it does not find damage done
// on purpose.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace pith {

constexpr size_t kChecksumBytes = 16;
using Checksum = std::array<uint8_t, kChecksumBytes>;

// Whether OpenSSL has the algorithm: a FIPS provider does not.
bool HasChecksum();

// Thread-safe. The same on every machine. HasChecksum().
Checksum ComputeChecksum(absl::Span<const uint8_t> bytes);

}  // namespace pith
