#include "loom/base/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace loom {
namespace {

TEST(Hash, Sha256MatchesThePublishedVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Hashes are stored in files, so the function itself is part of their format.
TEST(Hash, BytesHashIsXxh3) {
  EXPECT_EQ(hash_bytes(""), 0x2d06800538d394c2ull);
  EXPECT_EQ(hash_bytes("abc"), hash_bytes("abcd", 3));
  EXPECT_NE(hash_bytes("abc"), hash_bytes("abd"));
}

TEST(Hash, CombineDependsOnOrder) {
  static_assert(hash_combine(hash_combine(0, 1), 2) != hash_combine(hash_combine(0, 2), 1));
  static_assert(hash_combine(0, 0) != hash_combine(0, 1));
}

}  // namespace
}  // namespace loom
