#include "forward/rope.h"

#include <math.h>
#include <stdint.h>

void rope_frequencies(float *frequency, float theta, size_t rot)
{
    for (size_t j = 0; j < rot / 2; j++) frequency[j] = (float)(1.0 / pow((double)theta, 2.0 * (double)j / (double)rot));
}

/* 1 / i! with alternating sign, the double nearest to the quotient, for the odd powers 3..17 and the even powers 2..18. */
static const double SINE[] = {1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
                              1.0 / 362880.0,          -1.0 / 5040.0,          1.0 / 120.0,        -1.0 / 6.0};
static const double COSINE[] = {-1.0 / 6402373705728000.0,
                                1.0 / 20922789888000.0,
                                -1.0 / 87178291200.0,
                                1.0 / 479001600.0,
                                -1.0 / 3628800.0,
                                1.0 / 40320.0,
                                -1.0 / 720.0,
                                1.0 / 24.0,
                                -1.0 / 2.0};

/* The argument is brought to within pi/4 of 0 by subtracting k * pi/2 in two steps (Cody and Waite; the two constants are pi/2 cut to 33 bits and the
 * rest), then both series are summed from the highest power down, multiplication and addition only. */
static void sine_cosine(double x, float *sine, float *cosine)
{
    const double k = rint(x * 0.63661977236758134308);
    const double r = (x - k * 1.57079632673412561417e+00) - k * 6.07710050650619224932e-11;
    const double z = r * r;
    double s = 0.0, c = 0.0;
    for (size_t i = 0; i < sizeof SINE / sizeof *SINE; i++) s = s * z + SINE[i];
    s = r + r * (z * s);
    for (size_t i = 0; i < sizeof COSINE / sizeof *COSINE; i++) c = c * z + COSINE[i];
    c = 1.0 + z * c;
    switch ((int64_t)k & 3) {
    case 0: *sine = (float)s, *cosine = (float)c; break;
    case 1: *sine = (float)c, *cosine = (float)-s; break;
    case 2: *sine = (float)-s, *cosine = (float)-c; break;
    default: *sine = (float)-c, *cosine = (float)s; break;
    }
}

void rope_angles(float *cosine, float *sine, const float *frequency, size_t n, size_t position)
{
    for (size_t j = 0; j < n; j++) sine_cosine((double)position * (double)frequency[j], &sine[j], &cosine[j]);
}
