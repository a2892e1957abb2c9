#include "loom/base/hash.h"

#include <openssl/evp.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "loom/base/check.h"

namespace loom {

uint64_t hash_bytes(const void* data, size_t size) { return XXH3_64bits(data, size); }

std::string sha256_hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr);
  LOOM_CHECK(ok == 1 && length == 32, "SHA-256 is not available in the crypto library");
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(64);
  for (unsigned i = 0; i < length; ++i) {
    hex.push_back(kDigits[digest[i] >> 4]);
    hex.push_back(kDigits[digest[i] & 15]);
  }
  return hex;
}

}  // namespace loom
