#!/usr/bin/env python3
"""Prints src/loom/target/llvm/single_coefficients.h.

The polynomials are near-minimax fits (interpolation at Chebyshev nodes); the error in the comment of
each one is the largest absolute error of the fit, before rounding its coefficients. Needs mpmath.
"""
import mpmath as mp

mp.mp.prec = 400

HEAD = """// Made by scripts/single_coefficients.py. Polynomials begin with their highest power.
#pragma once

#include <array>

// clang-format off
namespace loom::single {
"""


def literal(value):
    return float(value).hex()


def declare(name, comment, values):
    print(f"\n// {comment}")
    print(f"inline constexpr std::array<double, {len(values)}> {name} = {{")
    for value in values:
        print(f"    {literal(value)},")
    print("};")


def fit(name, meaning, function, low, high, terms, factor=1):
    def scaled(x):
        return function(x) * factor

    values, error = mp.chebyfit(scaled, [low, high], terms, error=True)
    declare(name, f"{meaning}; error 2^{mp.nstr(mp.log(error, 2), 3)}", values)


def at_zero(function, limit):
    return lambda x: function(x) if x != 0 else mp.mpf(limit)


def two_over_pi_chunks():
    """For blocks of exponents [26 j, 26 j + 26) four parts of 2/pi of 29 bits each.

    Higher bits contribute multiples of 4 to the product with a number of 24 bits in the block.
    """
    blocks = []
    for block in range(5):
        least = 26 * block
        top = -1 if block == 0 else 24 - least  # weight of the highest bit that counts
        parts = []
        for part in range(4):
            low = top - 29 * part - 28
            bits = int(mp.floor(mp.ldexp(2 / mp.pi, -low))) & ((1 << 29) - 1)
            parts.append(mp.ldexp(bits, low))
        blocks.append(parts)
    for part in range(4):
        declare(f"kTwoOverPi{part}", f"part {part} of 2/pi for each block of exponents",
                [parts[part] for parts in blocks])


def main():
    print(HEAD, end="")
    half = mp.log(2) / 2 * mp.mpf("1.0001")
    expm1 = at_zero(lambda r: mp.expm1(r) / r, 1)
    exp2m1 = at_zero(lambda r: mp.expm1(r * mp.log(2)) / r, mp.log(2))
    fit("kExpm1", "(e^r - 1) / r, |r| <= ln(2) / 2", expm1, -half, half, 7)
    fit("kExpm1Single", "the same for f32", expm1, -half, half, 6)
    fit("kExp2m1Single", "(2^r - 1) / r, |r| <= 1/2", exp2m1, mp.mpf("-0.5"), mp.mpf("0.5"), 6)
    low = (mp.sqrt(mp.mpf(1) / 2) - 1) * mp.mpf("1.0001")
    high = (mp.sqrt(2) - 1) * mp.mpf("1.0001")
    log1p = at_zero(lambda z: mp.log1p(z) / z, 1)
    fit("kLog", "ln(1 + z) / z, sqrt(1/2) <= 1 + z <= sqrt(2)", log1p, low, high, 12)
    fit("kLogLong", "the same for pow", log1p, low, high, 15)
    square = (mp.pi / 4 * mp.mpf("1.03")) ** 2
    sine = at_zero(lambda t: mp.sin(mp.sqrt(t)) / mp.sqrt(t), 1)
    fit("kSin", "sin(r) / r of r^2, |r| <= pi/4", sine, 0, square, 5)
    fit("kCos", "cos(r) of r^2, |r| <= pi/4", lambda t: mp.cos(mp.sqrt(t)), 0, square, 6)

    def tail(u):
        z = 3 * (1 + u) / (1 - u)
        return mp.exp(z * z) * mp.erfc(z) * (1 + 2 * z)

    last = (mp.mpf("11.1") - 3) / (mp.mpf("11.1") + 3)
    fit("kErfc", "e^(z^2) erfc(z) (1 + 2 z) of (z - 3) / (z + 3), 0 <= z <= 11.1", tail, -1, last, 13)

    rate = at_zero(lambda a: -mp.log(mp.erfc(a)) / a, 2 / mp.sqrt(mp.pi))
    fit("kErf", "-ln(erfc(a)) / a, 0 <= a <= 4", rate, 0, 4, 14)
    fit("kErfSingle", "the same for f32", rate, 0, 4, 11)
    def by_root(function):
        return at_zero(lambda t: function(mp.sqrt(t)) / mp.sqrt(t), 1)

    fit("kAtan", "atan(z) / z of z^2, 0 <= z <= 1", by_root(mp.atan), 0, mp.mpf("1.0001"), 11)
    fit("kAsin", "asin(z) / z of z^2, 0 <= z <= 1/2", by_root(mp.asin), 0, mp.mpf("0.2501"), 7)
    two_over_pi_chunks()
    print("\n}  // namespace loom::single\n// clang-format on")


main()
