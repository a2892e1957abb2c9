// Expected failures of the optimizer as values.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace hyperloom {

// `error_class` is one of the stable snake_case words that records and responses carry, such as
// "subprocess_timeout"; `message` is for people and names the place; `hint` is the repair, where
// one is known.
struct Error {
  std::string error_class;
  std::string message;
  std::string hint;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(std::string error_class, std::string message,
                                   std::string hint = "") {
  return std::unexpected(Error{std::move(error_class), std::move(message), std::move(hint)});
}

}  // namespace hyperloom
