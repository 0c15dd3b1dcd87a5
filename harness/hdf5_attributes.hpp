#pragma once

#include "harness/hdf5.hpp"
#include "harness/hdf5_type.hpp"
#include "reference/types/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kda::harness::hdf5 {

struct Attribute {
  std::string name;
  std::optional<ElementType> type;  ///< absent: a kind that files of ours do not use, left unread
  std::string stored_as;            ///< such a kind in words
  Shape shape;
  std::vector<std::byte> data;  ///< little-endian elements; of strings the bytes without padding
};

/// The attributes of one object. The getters take any width and byte order, fixed and variable
/// strings, and arrays of one element; they return nothing for an absent attribute and throw
/// kAttributeInvalid for one of another kind.
class Attributes {
 public:
  /// None, as of an absent object.
  explicit Attributes(Place place) : place_(std::move(place)) {}
  /// Reads them all; `limit` is the most bytes that one may take.
  Attributes(hid_t object, Place place, std::uint64_t limit);

  [[nodiscard]] const Place& place() const noexcept { return place_; }
  /// Sorted by name.
  [[nodiscard]] const std::vector<Attribute>& all() const noexcept { return attributes_; }

  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const;
  /// Integers count as reals.
  [[nodiscard]] std::optional<double> real(std::string_view name) const;
  /// 0 or 1; absent means 0.
  [[nodiscard]] bool flag(std::string_view name) const;

 private:
  [[nodiscard]] const Attribute* find(std::string_view name) const;
  /// The attribute if it holds exactly one element.
  [[nodiscard]] const Attribute* find_single(std::string_view name, const char* wanted) const;
  [[noreturn]] void refuse(const Attribute& attribute, const char* wanted) const;

  Place place_;
  std::vector<Attribute> attributes_;
};

}  // namespace kda::harness::hdf5
