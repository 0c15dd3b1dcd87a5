#pragma once

namespace kda::reference {

/// P(T > t) of Student's t, dof > 0. NaN in, NaN out.
[[nodiscard]] double student_t_upper_tail(double t, double dof);

/// P(F > f) of the F distribution with (dof_top, dof_bottom) degrees of freedom, f >= 0.
[[nodiscard]] double f_upper_tail(double f, double dof_top, double dof_bottom);

/// P(Z < z) of the standard normal distribution.
[[nodiscard]] double normal_lower_tail(double z);

}  // namespace kda::reference
