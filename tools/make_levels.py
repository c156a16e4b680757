"""Writes tests/data/levels.txt: rule 4's levels of many rows, as levels() of oracle.py gives them, for tests/unit/test_weights_levels.c.

  python make_levels.py > ../tests/data/levels.txt

One row a line: s_lo s_hi has_lo has_hi k_lo k_hi s, the three floats as the hex of their 32 bits.
"""
import struct, sys
import numpy as np
from oracle import levels

F = np.float32

def pairs(r):
    """(s_lo, s_hi): ordinary, negative, swapped, equal, zero, exact ratios, ties, far apart, very small and very large."""
    for _ in range(500): lo = F(0.01 + r.random()); yield lo, F(lo * F(1 + 3 * r.random()))
    for _ in range(150): yield F(r.standard_normal()), F(r.standard_normal())
    for _ in range(100): yield F(r.standard_normal() * 10.0 ** r.uniform(-6, 2)), F(r.standard_normal())
    for b in (64, 96, 100, 127):
        for a in (1, 2, 33, 63, b): yield F(a * 0.25), F(b * 0.25); yield F(b * 0.25), F(-a * 0.25)
    for d in (2, 4, 128, 254, 255, 256, 257, 1000, 4096): yield F(1 / d), F(1); yield F(-1), F(1 / d)
    for v in (0.0, -0.0, 1.0, -1.0, 1e-38, 1e-45, 3e38): yield F(v), F(v); yield F(v), F(-v); yield F(0), F(v); yield F(v), F(0)
    for _ in range(60): yield tuple(np.frombuffer((r.integers(0, 2 ** 32, 2, dtype=np.uint32) & np.uint32(0xbfffffff)).tobytes(), F))

if __name__ == "__main__":
    bits = lambda x: struct.pack(">f", x).hex()
    r = np.random.default_rng(4)
    with np.errstate(all="ignore"):
        for n, (lo, hi) in enumerate(pairs(r)):
            present = ((True, True),) if n % 8 else ((True, True), (True, False), (False, True), (False, False))
            for has_lo, has_hi in present:
                k_lo, k_hi, s = levels(lo, hi, has_lo, has_hi)
                print(bits(lo), bits(hi), int(has_lo), int(has_hi), k_lo, k_hi, bits(s), file=sys.stdout)
