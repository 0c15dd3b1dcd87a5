#include "harness/compare/compare.hpp"
#include "harness/compare/json_integer.hpp"
#include "reference/types/error.hpp"

#include <limits>
#include <string>

#include <nlohmann/json.hpp>

// What compare_render.cpp writes, read back.

namespace kda::harness {
namespace {

using nlohmann::json;

double number(const json& value) {
  if (!value.is_string()) return value.get<double>();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto& text = value.get_ref<const std::string&>();
  if (text == "inf") return kInf;
  if (text == "-inf") return -kInf;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw Error(ErrorCode::kReportUnknown, "wanted a number, got \"" + text + "\"");
}

std::vector<double> numbers(const json& list) {
  std::vector<double> values;
  values.reserve(list.size());
  for (const json& value : list) values.push_back(number(value));
  return values;
}

std::optional<std::int64_t> optional_integer(const json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  return integer(object, key);
}

Dtype read_dtype(const json& value) {
  for (const Dtype dtype :
       {Dtype::kBf16, Dtype::kF16, Dtype::kF32, Dtype::kF64, Dtype::kI32, Dtype::kI64}) {
    if (value == name(dtype)) return dtype;
  }
  throw Error(ErrorCode::kReportUnknown, "wanted a dtype, got " + value.dump());
}

OutputKind kind_of(const std::string& tensor) {
  for (const OutputKind kind : {OutputKind::kFinalState, OutputKind::kH}) {
    if (tensor == name(kind)) return kind;
  }
  return OutputKind::kO;
}

Finding read_finding(const json& object, OutputKind kind) {
  const json& place = object.at("place");
  return {.place = {.kind = kind,
                    .n = integer(place, "n"),
                    .hv = integer(place, "hv"),
                    .v = integer(place, "v"),
                    .t = optional_integer(place, "t"),
                    .k = optional_integer(place, "k"),
                    .chunk = optional_integer(place, "chunk")},
          .expected = number(object.at("expected")),
          .got = number(object.at("got")),
          .bound = number(object.at("bound"))};
}

Window read_window(const json& object) {
  Window window{.first_row = integer(object, "first_row"),
                .first_col = integer(object, "first_col"),
                .rows = integer(object, "rows"),
                .cols = integer(object, "cols"),
                .centre_row = integer(object, "centre_row"),
                .centre_col = integer(object, "centre_col"),
                .expected = numbers(object.at("expected")),
                .got = numbers(object.at("got"))};
  const auto most = static_cast<std::int64_t>(window.expected.size());
  if (window.rows < 0 || window.rows > most || window.cols < 0 || window.cols > most ||
      window.rows * window.cols != most || window.got.size() != window.expected.size())
    throw Error(ErrorCode::kReportUnknown, "window: wanted rows * cols values of each array");
  return window;
}

/// Up to 2^64, between the ends of f64.
std::uint64_t read_ulp(const json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  throw Error(ErrorCode::kReportUnknown,
              "max_ulp: wanted an unsigned integer, got " + value.dump());
}

Metrics read_metrics(const json& object) {
  return {.compared = integer(object, "compared"),
          .bad = integer(object, "bad"),
          .non_finite = integer(object, "non_finite"),
          .max_abs = number(object.at("max_abs")),
          .max_rel = number(object.at("max_rel")),
          .max_ulp = read_ulp(object.at("max_ulp")),
          .max_expected = number(object.at("max_expected")),
          .sum_error2 = number(object.at("sum_error2")),
          .sum_expected2 = number(object.at("sum_expected2"))};
}

Share read_share(const json& object) {
  return {.share = number(object.at("share")), .place = object.at("place").get<std::string>()};
}

SigmaUse read_use(const json& object) {
  const json& sums = object.at("sums");
  return {.element = read_share(object.at("element")),
          .row = read_share(object.at("row")),
          .group = read_share(object.at("group")),
          .bias = object.at("bias").is_null() ? std::nullopt
                                              : std::optional(read_share(object.at("bias"))),
          .sums = {.count = integer(sums, "count"),
                   .rows = integer(object, "rows"),
                   .z2 = number(sums.at("z2")),
                   .signed_z = number(sums.at("signed_z")),
                   .sigma2 = number(sums.at("sigma2")),
                   .exact2 = number(sums.at("exact2")),
                   .ruled = integer(sums, "ruled"),
                   .ruled_rows = integer(sums, "ruled_rows"),
                   .ruled_z = number(sums.at("ruled_z"))}};
}

TensorReport read_tensor(const json& object) {
  TensorReport report;
  report.name = object.at("name").get<std::string>();
  report.passed = object.at("passed").get<bool>();
  report.reason = object.at("reason").get<std::string>();
  report.detail = object.at("detail").get<std::string>();
  report.used_share = number(object.at("used_share"));
  report.metrics = read_metrics(object.at("metrics"));
  const OutputKind kind = kind_of(report.name);
  if (object.contains("dtype")) report.dtype = read_dtype(object.at("dtype"));
  if (object.contains("worst")) report.worst = read_finding(object.at("worst"), kind);
  if (object.contains("first_bad")) report.first_bad = read_finding(object.at("first_bad"), kind);
  if (object.contains("window")) report.window = read_window(object.at("window"));
  if (object.contains("tokens")) {
    const json& tokens = object.at("tokens");
    report.tokens = TokenProfile(integer(tokens, "step"), numbers(tokens.at("used_share")));
  }
  if (object.contains("peer_ratio")) report.peer_ratio = number(object.at("peer_ratio"));
  if (object.contains("sigma")) report.use = read_use(object.at("sigma"));
  return report;
}

}  // namespace

std::vector<TensorReport> read_tensor_reports(const json& tensors) {
  std::vector<TensorReport> reports;
  for (const json& tensor : tensors.get_ref<const json::array_t&>())
    reports.push_back(read_tensor(tensor));
  return reports;
}

}  // namespace kda::harness
