// SPDX-License-Identifier: Apache-2.0
/// Strong units. No bare number crosses a function boundary.
///
///   Time       int64 picoseconds     (range +-106 days; saturates, see below)
///   Duration   double seconds        (of what outlasts Time: jobs, times between failures)
///   Bytes      int64 bytes
///   Bandwidth  double bytes per second, never bits
///   FlopRate   double FLOP per second
///   Flops      double floating-point operations (a count; exact below 2^53)
///   Power      double watts
///   Energy     double joules
///   EnergyPerByte  double joules per byte, never per bit
///   Money      double dollars
///
/// Different quantities do not mix or convert: `bytes / bandwidth` is a `Time`, `flops / rate` is a
/// `Time`, everything else does not compile. Shares, efficiencies and ratios are plain doubles in
/// [0, 1]; sums over devices (device-seconds) are double seconds.
///
/// Overflow of Time and Bytes saturates at max() and stays there (adding to max() gives max()), so
/// one check of the result finds an overflow anywhere: `if (t.is_overflow()) -> error`.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace orrery {

template <class Dimension, class Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  static constexpr Quantity max() { return Quantity(std::numeric_limits<Rep>::max()); }
  constexpr bool is_overflow() const { return *this == max(); }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;

  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    if constexpr (std::is_integral_v<Rep>) {
      Rep sum{};
      if (a.is_overflow() || b.is_overflow() || __builtin_add_overflow(a.value_, b.value_, &sum)) {
        return max();
      }
      return Quantity(sum);
    } else {
      return Quantity(a.value_ + b.value_);
    }
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return a.is_overflow() ? max() : Quantity(a.value_ - b.value_);
  }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }

  /// Whole multiples stay exact (and saturate); fractions round to nearest.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  friend constexpr Quantity operator*(Quantity a, Number factor) {
    if constexpr (std::is_integral_v<Rep> && std::is_integral_v<Number>) {
      Rep product{};
      if (a.is_overflow() || __builtin_mul_overflow(a.value_, factor, &product)) {
        return max();
      }
      return Quantity(product);
    } else {
      return from_double(static_cast<double>(a.value_) * static_cast<double>(factor));
    }
  }
  template <class Number>
    requires std::is_arithmetic_v<Number>
  friend constexpr Quantity operator*(Number factor, Quantity a) {
    return a * factor;
  }
  /// Integer divisors round up for integer quantities (a shard is never smaller than its share).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  friend constexpr Quantity operator/(Quantity a, Number divisor) {
    if constexpr (std::is_integral_v<Rep> && std::is_integral_v<Number>) {
      const Rep d = static_cast<Rep>(divisor);
      return a.is_overflow() ? a : Quantity(a.value_ / d + (a.value_ % d > 0 ? 1 : 0));
    } else {
      return from_double(static_cast<double>(a.value_) / static_cast<double>(divisor));
    }
  }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

  /// Returns the nearest representable value; saturates. NaN counts as overflow.
  static constexpr Quantity from_double(double value) {
    if constexpr (std::is_integral_v<Rep>) {
      if (!(value < 9.2e18)) {
        return max();
      }
      if (value < -9.2e18) {
        return Quantity(std::numeric_limits<Rep>::min());
      }
      return Quantity(static_cast<Rep>(value < 0 ? value - 0.5 : value + 0.5));
    } else {
      return Quantity(value);
    }
  }

 private:
  Rep value_{};
};

using Time = Quantity<struct TimeDimension, std::int64_t>;              // picoseconds
using Duration = Quantity<struct DurationDimension, double>;            // seconds
using Bytes = Quantity<struct BytesDimension, std::int64_t>;            // bytes
using Bandwidth = Quantity<struct BandwidthDimension, double>;          // bytes/s
using FlopRate = Quantity<struct FlopRateDimension, double>;            // FLOP/s
using Flops = Quantity<struct FlopsDimension, double>;                  // FLOP
using Power = Quantity<struct PowerDimension, double>;                  // watts
using Energy = Quantity<struct EnergyDimension, double>;                // joules
using EnergyPerByte = Quantity<struct EnergyPerByteDimension, double>;  // joules per byte
using Money = Quantity<struct MoneyDimension, double>;                  // dollars

inline constexpr double kPicosecondsPerSecond = 1e12;

/// Returns the nearest picosecond.
constexpr Time from_seconds(double seconds) {
  return Time::from_double(seconds * kPicosecondsPerSecond);
}
constexpr double to_seconds(Time time) {
  return static_cast<double>(time.value()) / kPicosecondsPerSecond;
}

constexpr Time operator/(Bytes bytes, Bandwidth bandwidth) {
  return bytes.is_overflow() ? Time::max()
                             : from_seconds(static_cast<double>(bytes.value()) / bandwidth.value());
}
constexpr Time operator/(Flops flops, FlopRate rate) {
  return from_seconds(flops.value() / rate.value());
}
constexpr Energy operator*(Power power, Time time) {
  return Energy(power.value() * to_seconds(time));
}
constexpr Energy operator*(EnergyPerByte cost, Bytes bytes) {
  return Energy(cost.value() * static_cast<double>(bytes.value()));
}

inline namespace literals {
constexpr Time operator""_ps(unsigned long long v) {
  return Time(static_cast<std::int64_t>(v));
}
constexpr Time operator""_ns(unsigned long long v) {
  return 1000_ps * v;
}
constexpr Time operator""_us(unsigned long long v) {
  return 1000_ns * v;
}
constexpr Time operator""_ms(unsigned long long v) {
  return 1000_us * v;
}
constexpr Time operator""_s(unsigned long long v) {
  return 1000_ms * v;
}
constexpr Bytes operator""_B(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v));
}
constexpr Bytes operator""_KiB(unsigned long long v) {
  return 1024_B * v;
}
constexpr Bytes operator""_MiB(unsigned long long v) {
  return 1024_KiB * v;
}
constexpr Bytes operator""_GiB(unsigned long long v) {
  return 1024_MiB * v;
}
constexpr Bandwidth operator""_GBps(unsigned long long v) {
  return Bandwidth(static_cast<double>(v) * 1e9);
}
constexpr FlopRate operator""_TFLOPs(unsigned long long v) {
  return FlopRate(static_cast<double>(v) * 1e12);
}
}  // namespace literals

}  // namespace orrery
