// Fast non-cryptographic hashing (XXH3) and SHA-256 for artifact identities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace loom {

// 64-bit XXH3 of the bytes. Stable across platforms and runs.
uint64_t hash_bytes(const void* data, size_t size);
inline uint64_t hash_bytes(std::string_view text) { return hash_bytes(text.data(), text.size()); }

// Mixes one word into a running hash; cheap, for interning small records.
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) {
  uint64_t x = seed ^ (value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2));
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  return x;
}

// Lower-case hexadecimal SHA-256.
std::string sha256_hex(std::string_view bytes);

}  // namespace loom
