// Numbers of 700 bits from MPFR: what formulas of tests are evaluated in.
#pragma once

#include <gmpxx.h>
#include <mpfr.h>

#include "harness/num/float_format.h"

namespace ulpscope::testing {

/// An MPFR number of 700 bits.
class Big {
 public:
  Big(double value = 0) {  // NOLINT(google-explicit-constructor): formulas mix numbers
    mpfr_init2(v_, 700);
    mpfr_set_d(v_, value, MPFR_RNDN);
  }
  Big(const Big& other) : Big() { mpfr_set(v_, other.v_, MPFR_RNDN); }
  Big& operator=(const Big& other) {
    mpfr_set(v_, other.v_, MPFR_RNDN);
    return *this;
  }
  ~Big() { mpfr_clear(v_); }
  friend Big operator+(const Big& a, const Big& b) { return Of(mpfr_add, a, b); }
  friend Big operator-(const Big& a, const Big& b) { return Of(mpfr_sub, a, b); }
  friend Big operator*(const Big& a, const Big& b) { return Of(mpfr_mul, a, b); }
  friend Big operator/(const Big& a, const Big& b) { return Of(mpfr_div, a, b); }
  friend Big Power(const Big& a, const Big& b) { return Of(mpfr_pow, a, b); }
  friend Big Atan2(const Big& y, const Big& x) { return Of(mpfr_atan2, y, x); }
  friend int Compare(const Big& a, const Big& b) { return mpfr_cmp(a.v_, b.v_); }
  Big Apply(int (*f)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t)) const {
    Big r;
    f(r.v_, v_, MPFR_RNDN);
    return r;
  }
  static Big Pi() {
    Big r;
    mpfr_const_pi(r.v_, MPFR_RNDN);
    return r;
  }
  mpq_class Rational() const {
    mpq_class q;
    mpfr_get_q(q.get_mpq_t(), v_);
    return q;
  }
  /// Rounded once into `format`, away from its subnormals.
  double Rounded(const FloatFormat& format) const {
    mpfr_t r;
    mpfr_init2(r, format.precision);
    mpfr_set(r, v_, MPFR_RNDN);
    const double value = mpfr_get_d(r, MPFR_RNDN);
    mpfr_clear(r);
    return value;
  }

 private:
  static Big Of(int (*f)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t), const Big& a, const Big& b) {
    Big r;
    f(r.v_, a.v_, b.v_, MPFR_RNDN);
    return r;
  }
  mpfr_t v_;
};

}  // namespace ulpscope::testing
