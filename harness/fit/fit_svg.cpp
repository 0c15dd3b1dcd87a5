#include "harness/fit/fit_svg.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace kda::harness {
namespace {

template <class... Arguments>
void add(std::string& text, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Arguments>(arguments)...);
}

SvgPanel::Range widened(SvgPanel::Range range) {
  if (range.high > range.low) return range;
  const double by = range.low == 0 ? 1 : 0.05 * std::abs(range.low);
  return {range.low - by, range.low + by};
}

}  // namespace

SvgPanel::SvgPanel(std::string id, Frame frame, Range x, Range y)
    : id_(std::move(id)), frame_(frame), x_(widened(x)), y_(widened(y)) {}

// Limits keep coordinates readable to any viewer; what lies outside is clipped anyway.
double SvgPanel::place_x(double x) const {
  return frame_.left + frame_.width * std::clamp((x - x_.low) / (x_.high - x_.low), -10.0, 10.0);
}

double SvgPanel::place_y(double y) const {
  return frame_.top + frame_.height * std::clamp((y_.high - y) / (y_.high - y_.low), -10.0, 10.0);
}

void SvgPanel::polyline(const Points& points, std::string_view colour) {
  add(shapes_, R"(<polyline fill="none" stroke="{}" stroke-width="1.5" points=")", colour);
  for (const auto& [x, y] : points) add(shapes_, "{:.2f},{:.2f} ", place_x(x), place_y(y));
  shapes_ += "\"/>\n";
}

void SvgPanel::band(const std::vector<double>& x, const std::vector<double>& low,
                    const std::vector<double>& high, std::string_view colour) {
  add(shapes_, R"(<polygon fill="{}" fill-opacity="0.25" points=")", colour);
  for (std::size_t i = 0; i < x.size(); ++i) {
    add(shapes_, "{:.2f},{:.2f} ", place_x(x[i]), place_y(low[i]));
  }
  for (std::size_t i = x.size(); i-- > 0;) {
    add(shapes_, "{:.2f},{:.2f} ", place_x(x[i]), place_y(high[i]));
  }
  shapes_ += "\"/>\n";
}

void SvgPanel::dot(double x, double y, std::string_view colour, std::string_view tip) {
  add(shapes_,
      "<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"2.2\" fill=\"{}\"><title>{}</title></circle>\n",
      place_x(x), place_y(y), colour, xml_escaped(tip));
}

void SvgPanel::bar(Range x, double y, std::string_view colour, std::string_view tip) {
  const double left = place_x(x.low);
  const double top = place_y(y);
  add(shapes_,
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" "
      "stroke=\"white\" stroke-width=\"0.5\"><title>{}</title></rect>\n",
      left, top, std::max(place_x(x.high) - left, 0.0), std::max(place_y(0) - top, 0.0), colour,
      xml_escaped(tip));
}

std::string SvgPanel::finish(std::string_view title, std::string_view x_label,
                             std::string_view y_label) const {
  const auto [left, top, width, height] = frame_;
  const double bottom = top + height;
  std::string out;
  add(out, "<clipPath id=\"{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n",
      id_, left, top, width, height);
  add(out, "<text x=\"{}\" y=\"{}\" font-size=\"14\">{}</text>\n", left, top - 10,
      xml_escaped(title));
  for (const double tick : axis_ticks(x_)) {
    const double x = place_x(tick);
    add(out, "<path d=\"M{0:.2f} {1}V{2}\" stroke=\"#e0e0e0\"/>\n", x, top, bottom);
    add(out, "<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", x, bottom + 16,
        tick);
  }
  for (const double tick : axis_ticks(y_)) {
    const double y = place_y(tick);
    add(out, "<path d=\"M{0} {1:.2f}H{2}\" stroke=\"#e0e0e0\"/>\n", left, y, left + width);
    add(out, "<text x=\"{}\" y=\"{:.2f}\" text-anchor=\"end\">{:g}</text>\n", left - 6, y + 4,
        tick);
  }
  add(out, "<g clip-path=\"url(#{})\">\n{}</g>\n", id_, shapes_);
  add(out, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#333\"/>\n",
      left, top, width, height);
  add(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", left + width / 2,
      bottom + 34, xml_escaped(x_label));
  add(out, "<text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      left - 56, top + height / 2, xml_escaped(y_label));
  return out;
}

std::vector<double> axis_ticks(SvgPanel::Range range) {
  const double rough = (range.high - range.low) / 5;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double share = rough / power;
  const double step = power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
  std::vector<double> ticks;
  // Counted, so that a step below the spacing of doubles cannot loop.
  const double first = std::ceil(range.low / step);
  for (int i = 0; i < 12; ++i) {
    const double tick = (first + i) * step;
    if (!(tick <= range.high)) break;
    ticks.push_back(tick);
  }
  return ticks;
}

std::string svg_document(double width, double height, std::string_view title,
                         std::string_view panels) {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"11\">\n<title>{2}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n{3}</svg>\n",
      width, height, xml_escaped(title), panels);
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

}  // namespace kda::harness
