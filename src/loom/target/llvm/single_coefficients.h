// Made by scripts/single_coefficients.py. Polynomials begin with their highest power.
#pragma once

#include <array>

// clang-format off
namespace loom::single {

// (e^r - 1) / r, |r| <= ln(2) / 2; error 2^-31.9
inline constexpr std::array<double, 7> kExpm1 = {
    0x1.a15179d80ae96p-13,
    0x1.6d7543e4127b8p-10,
    0x1.1110c632a3088p-7,
    0x1.5554accfdb593p-5,
    0x1.55555567532adp-3,
    0x1.000000287f871p-1,
    0x1.0000000000000p+0,
};

// the same for f32; error 2^-26.4
inline constexpr std::array<double, 6> kExpm1Single = {
    0x1.6d43246b523b4p-10,
    0x1.123d90f1a67d6p-7,
    0x1.5554e9063586ep-5,
    0x1.55547c9c5a035p-3,
    0x1.0000000b9129bp-1,
    0x1.0000002e4a949p+0,
};

// (2^r - 1) / r, |r| <= 1/2; error 2^-26.9
inline constexpr std::array<double, 6> kExp2m1Single = {
    0x1.4413896e1ad27p-13,
    0x1.5f0890162a90ap-10,
    0x1.3b2a53045179ap-7,
    0x1.c6af6cdbbdcc7p-5,
    0x1.ebfbe00e63baep-3,
    0x1.62e4302fc626ep-1,
};

// ln(1 + z) / z, sqrt(1/2) <= 1 + z <= sqrt(2); error 2^-32.8
inline constexpr std::array<double, 12> kLog = {
    -0x1.dee00731b0d77p-5,
    0x1.b3b023473854bp-4,
    -0x1.be65a1218ef54p-4,
    0x1.c44f1c5d8ebdap-4,
    -0x1.fc591b637368bp-4,
    0x1.24883c9fa743dp-3,
    -0x1.5568d5abe7b76p-3,
    0x1.999a7d750af9fp-3,
    -0x1.ffffaacf76262p-3,
    0x1.555553a9a3ef8p-2,
    -0x1.0000001a86733p-1,
    0x1.0000000034da6p+0,
};

// the same for pow; error 2^-40.7
inline constexpr std::array<double, 15> kLogLong = {
    0x1.5e06adade0b02p-5,
    -0x1.5adbbd3361569p-4,
    0x1.666dc72d9d344p-4,
    -0x1.54ae6cace4372p-4,
    0x1.6ec27cdac23edp-4,
    -0x1.99150e058c170p-4,
    0x1.c7738ed5ece35p-4,
    -0x1.0005a47d2c657p-3,
    0x1.2490f1335afddp-3,
    -0x1.55552712a4ed3p-3,
    0x1.99999eb69c435p-3,
    -0x1.0000004a7fdcbp-2,
    0x1.555555519032dp-2,
    -0x1.ffffffffbe7d9p-2,
    0x1.00000000003d4p+0,
};

// sin(r) / r of r^2, |r| <= pi/4; error 2^-37.3
inline constexpr std::array<double, 5> kSin = {
    0x1.6c678285e8559p-19,
    -0x1.a00d84e29f751p-13,
    0x1.1111056769626p-7,
    -0x1.555555461355cp-3,
    0x1.fffffffff3386p-1,
};

// cos(r) of r^2, |r| <= pi/4; error 2^-43.5
inline constexpr std::array<double, 6> kCos = {
    -0x1.2385eca5caf53p-22,
    0x1.a00d2954fb285p-16,
    -0x1.6c16b0016dd94p-10,
    0x1.5555553ff959dp-5,
    -0x1.ffffffffd9abbp-2,
    0x1.ffffffffffd37p-1,
};

// e^(z^2) erfc(z) (1 + 2 z) of (z - 3) / (z + 3), 0 <= z <= 11.1; error 2^-33.3
inline constexpr std::array<double, 13> kErfc = {
    0x1.169a885fd5ebep-15,
    0x1.092b2699a722bp-13,
    -0x1.0cb1adef3d01ep-13,
    -0x1.9ed6a3e8494d7p-11,
    0x1.f0ad6d06ae7a1p-10,
    0x1.4c2fda502e648p-9,
    -0x1.8576a13a0ab84p-6,
    0x1.17c946fe8cf5dp-4,
    -0x1.e88b8727521a8p-4,
    0x1.09836e3f0484bp-3,
    -0x1.85a15aba67010p-5,
    -0x1.15c084e108797p-3,
    0x1.40c522d7c65b0p+0,
};

// -ln(erfc(a)) / a, 0 <= a <= 4; error 2^-29.6
inline constexpr std::array<double, 14> kErf = {
    -0x1.54438e1087901p-30,
    0x1.24fc465c99f7fp-25,
    -0x1.b4ce75d1b20a7p-22,
    0x1.64581d2cfcbe7p-19,
    -0x1.32357de26d561p-17,
    0x1.c1494448c92abp-19,
    0x1.13166a9ef8f66p-13,
    -0x1.740c334ae85d2p-11,
    0x1.d45f62a13f9a4p-10,
    -0x1.09c3fb66ea777p-12,
    -0x1.392ffea4e385ep-6,
    0x1.a4f2c91051beap-4,
    0x1.45f30af6a788fp-1,
    0x1.20dd74fed0766p+0,
};

// the same for f32; error 2^-25.3
inline constexpr std::array<double, 11> kErfSingle = {
    -0x1.b37ffaf23f858p-24,
    0x1.576e7f7d03bd4p-19,
    -0x1.e23cbe602a681p-16,
    0x1.8a7537e084322p-13,
    -0x1.94aff222d7ca3p-11,
    0x1.dde58556b550cp-10,
    -0x1.0eb0b80ca31c4p-12,
    -0x1.3948e7ea3a1c3p-6,
    0x1.a4f5ae02cd911p-4,
    0x1.45f2fffba6884p-1,
    0x1.20dd751484525p+0,
};

// atan(z) / z of z^2, 0 <= z <= 1; error 2^-31.1
inline constexpr std::array<double, 11> kAtan = {
    0x1.1529b0866d353p-10,
    -0x1.cca9bde37f740p-8,
    0x1.66f8b1cde54cep-6,
    -0x1.67d55554c9fdap-5,
    0x1.11d1d003c2d87p-4,
    -0x1.67d4d53b9180cp-4,
    0x1.c4a379c5cc0cfp-4,
    -0x1.246cd77de2cf0p-3,
    0x1.99974822ab7c6p-3,
    -0x1.55554e0cf8be8p-2,
    0x1.fffffffc296f0p-1,
};

// asin(z) / z of z^2, 0 <= z <= 1/2; error 2^-31.7
inline constexpr std::array<double, 7> kAsin = {
    0x1.34c1ce91248dfp-5,
    0x1.d4231abfa02b8p-7,
    0x1.04fe14951c7dbp-5,
    0x1.6c9cfbc488c34p-5,
    0x1.33393497c1b7cp-4,
    0x1.5555492f1a8aep-3,
    0x1.00000000fe8b6p+0,
};

// part 0 of 2/pi for each block of exponents
inline constexpr std::array<double, 5> kTwoOverPi0 = {
    0x1.45f306d000000p-1,
    0x1.17cc1b6000000p-3,
    0x1.c9c882a000000p-29,
    0x1.4a7f09d000000p-54,
    0x1.57d1f53000000p-80,
};

// part 1 of 2/pi for each block of exponents
inline constexpr std::array<double, 5> kTwoOverPi1 = {
    0x1.9391054000000p-30,
    0x1.27220a9000000p-31,
    0x1.4fe13a8000000p-59,
    0x1.7d1f534000000p-84,
    0x1.377036c000000p-110,
};

// part 2 of 2/pi for each block of exponents
inline constexpr std::array<double, 5> kTwoOverPi2 = {
    0x1.4fe13ab000000p-59,
    0x1.3f84eae000000p-61,
    0x1.f47d4d3000000p-86,
    0x1.bb81b6c000000p-113,
    0x1.8a5664f000000p-138,
};

// part 3 of 2/pi for each block of exponents
inline constexpr std::array<double, 5> kTwoOverPi3 = {
    0x1.d1f534d000000p-88,
    0x1.a3ea69b000000p-89,
    0x1.dc0db62000000p-116,
    0x1.4acc9e0000000p-143,
    0x1.0e41078000000p-170,
};

}  // namespace loom::single
// clang-format on
