"""Values of tools/oracle.py for the kernel test: make_vectors.py OUT writes them to one file.

The file: b"KVECTORS", then records of a name (24 bytes, zero padded), the payload's size in bytes (u32), four zero bytes,
and the payload, padded to 8 bytes. Everything is little-endian. tests/kernels/vectors.bin is what this program writes.
"""
import os, struct, sys
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
sys.dont_write_bytecode = True
import oracle

F = np.float32
rng = np.random.default_rng(20)


def bell(*shape):
    return rng.standard_normal(shape).astype(F)


def half(x):
    return np.clip(x, F(-65504), F(65504)).astype(np.float16)


def exp_points():
    corners = np.array([-87, 88, 0, -0.0, -87.5, 89, np.inf, -np.inf, -86.99999, -87.00001, 1e-30, -1e-30, 1e38, -1e38],
                       F)
    return np.concatenate([corners, np.linspace(-88, 89, 3000, dtype=F), (bell(986) * F(2)).astype(F)])


def elementwise(out):
    x = exp_points()
    out["exp32 x"], out["exp32 y"] = x, oracle.exp32(x)
    gate, up = bell(1000) * F(8), bell(1000)
    with np.errstate(over="ignore"):
        y = (gate * (F(1) / (F(1) + oracle.exp32(-gate)))) * up
    out["swiglu gate"], out["swiglu up"], out["swiglu y"] = gate, up, y.astype(F)
    limits = np.array([65504, 65519.9, 65520, 1e9, -np.inf, 6e-8, 2e-8], F)
    x = np.concatenate([bell(2000) * np.exp2(rng.integers(-26, 18, 2000)).astype(F), limits])
    with np.errstate(over="ignore"):
        out["half x"], out["half y"] = x, half(x)
    for n in (24, 80, 257):
        x, w = bell(n), bell(n)
        out[f"rmsnorm {n} x"], out[f"rmsnorm {n} w"], out[f"rmsnorm {n} y"] = x, w, oracle.rmsnorm(x, w, F(1e-6))


def blocks(k):
    """Rows of integers in the shape that oracle.matvec takes."""
    padding = np.zeros((k.shape[0], (-k.shape[1]) % 256), np.int32)
    return np.concatenate([k, padding], 1).reshape(k.shape[0], -1, 16, 4, 4)


def matrices(out):
    x = bell(600)
    x[256:512:4] = 0
    q, d = oracle.quantise(x)
    out["quantise x"], out["quantise q"], out["quantise d"] = x, q.astype(np.int8).reshape(-1), d.reshape(-1)
    rows, cols = 13, 600
    sign, high = rng.integers(-1, 2, (rows, cols)), rng.integers(0, 2, (rows, cols))
    high[sign == 0] = 0
    high[3], high[4] = 0, sign[4] != 0
    levels, scale, k = np.zeros((rows, 2), np.int16), np.zeros(rows, F), np.zeros((rows, cols), np.int32)
    for i in range(rows):
        lo, hi = F(abs(bell(1)[0]) + F(0.01)), F(abs(bell(1)[0]) + F(0.01))
        a, b, scale[i] = oracle.levels(lo, hi, bool(((sign[i] != 0) & (high[i] == 0)).any()), bool(high[i].any()))
        levels[i] = a, b
        k[i] = sign[i] * np.where(high[i] == 1, b, a)
    planes = np.stack([np.packbits(m, axis=1, bitorder="little") for m in (sign > 0, sign < 0, high == 1)], 1)
    out["five planes"], out["five levels"], out["five scale"] = planes, levels, scale
    out["five y"] = oracle.matvec({"k": blocks(k), "s": scale, "bias": None}, x)
    k = rng.integers(-127, 128, (rows, cols)).astype(np.int32)
    stored = np.zeros((rows, 768), np.int8)
    stored[:, :cols] = k
    out["int8 k"], out["int8 scale"] = stored, bell(rows)
    out["int8 y"] = oracle.matvec({"k": blocks(k), "s": out["int8 scale"], "bias": None}, x)


def attention(out):
    """Attention of one position and RoPE; the methods of oracle.Model need only the fields that are set here."""
    for dim, heads, n in ((24, 3, 1), (24, 3, 33), (24, 3, 257), (24, 1, 513), (64, 5, 65)):
        model = oracle.Model.__new__(oracle.Model)
        model.nq, model.nkv, model.d = heads, 1, dim
        q, k, v = bell(heads, dim), half(bell(n, 1, dim)), half(bell(n, 1, dim))
        name = f"attend {dim} {heads} {n}"
        out[f"{name} q"], out[f"{name} k"], out[f"{name} v"] = q, k, v
        out[f"{name} y"] = oracle.Model.attend(model, q, k, v)
    for rot, pos in ((64, 0), (64, 1), (64, 777), (24, 40000)):
        model = oracle.Model.__new__(oracle.Model)
        model.rot = rot
        j = np.arange(rot // 2)
        model.freq = (1.0 / np.power(1e6, 2.0 * j / rot)).astype(F)
        s, c = oracle.sincos(float(pos) * model.freq.astype(np.float64))
        x, name = bell(rot), f"rope {rot} {pos}"
        out[f"{name} x"], out[f"{name} c"], out[f"{name} s"] = x, c, s
        out[f"{name} y"] = oracle.Model.rope(model, x, pos)


def main():
    out = {}
    elementwise(out)
    matrices(out)
    attention(out)
    with open(sys.argv[1], "wb") as f:
        f.write(b"KVECTORS")
        for name, values in out.items():
            payload = np.ascontiguousarray(values).tobytes()
            assert len(name) < 24
            f.write(struct.pack("<24sII", name.encode(), len(payload), 0) + payload + bytes(-len(payload) % 8))


if __name__ == "__main__":
    main()
