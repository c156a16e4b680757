/* Rule 7: sines and cosines of a position's angles. */
#ifndef FORWARD_ROPE_H
#define FORWARD_ROPE_H

#include <stddef.h>

/* frequency[j] = the f32 nearest to theta^(-2j / rot), j < rot / 2. */
void rope_frequencies(float *frequency, float theta, size_t rot);

/* cosine[j], sine[j] of the angle position * frequency[j], n of them, by the contract's own reduction and series. */
void rope_angles(float *cosine, float *sine, const float *frequency, size_t n, size_t position);

#endif
