#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kda::harness {

using Points = std::vector<std::pair<double, double>>;

/// One pair of axes in an SVG image, with the few shapes that the plots of a fit need. Written here
/// because no C++ library packaged by Debian draws SVG without a display stack or a second program.
class SvgPanel {
 public:
  struct Frame {
    double left, top, width, height;  ///< of the area inside the axes, in image units
  };
  struct Range {
    double low, high;
  };

  /// A range of zero width is widened, so any finite data can be drawn.
  SvgPanel(std::string id, Frame frame, Range x, Range y);

  void polyline(const Points& points, std::string_view colour);
  /// The area between two curves over the same x.
  void band(const std::vector<double>& x, const std::vector<double>& low,
            const std::vector<double>& high, std::string_view colour);
  void dot(double x, double y, std::string_view colour, std::string_view tip);
  void bar(Range x, double y, std::string_view colour, std::string_view tip);

  /// Axes with ticks and labels, and the shapes clipped to them.
  [[nodiscard]] std::string finish(std::string_view title, std::string_view x_label,
                                   std::string_view y_label) const;

 private:
  [[nodiscard]] double place_x(double x) const;
  [[nodiscard]] double place_y(double y) const;

  std::string id_;
  Frame frame_;
  Range x_;
  Range y_;
  std::string shapes_;
};

/// Steps of 1, 2 or 5 times a power of ten, about five of them, inside the range.
[[nodiscard]] std::vector<double> axis_ticks(SvgPanel::Range range);

/// The image around finished panels.
[[nodiscard]] std::string svg_document(double width, double height, std::string_view title,
                                       std::string_view panels);

/// With & < > " replaced, for text and attributes.
[[nodiscard]] std::string xml_escaped(std::string_view text);

}  // namespace kda::harness
