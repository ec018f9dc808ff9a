# SPDX-License-Identifier: BSD-2-Clause
"""XXH3-128, seed 0, of 17 to 128 bytes: the digest of transactions (docs/PROTOCOL.md, section 15). Longer ones take another way, which no
test here needs. The algorithm and its default secret are those of the xxHash specification."""

import struct

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364")
PRIME_1, PRIME_2, PRIME_4 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x85EBCA77C2B2AE63
AVALANCHE = 0x165667919E3779F9
MASK = (1 << 64) - 1


def two_words(data, offset):
    return struct.unpack_from("<QQ", data, offset)


def mix(data, offset, secret):
    """Sixteen bytes and as many of the secret, multiplied and folded."""
    low, high = two_words(data, offset)
    key, other = two_words(SECRET, secret)
    product = (low ^ key) * (high ^ other)
    return product & MASK ^ product >> 64


def avalanche(word):
    word ^= word >> 37
    word = word * AVALANCHE & MASK
    return word ^ word >> 32


def xxh3_128(data):
    """(low, high)."""
    size = len(data)
    assert 17 <= size <= 128
    low, high = size * PRIME_1 & MASK, 0
    for i in range((size - 1) // 32, -1, -1):
        front, back = 16 * i, size - 16 * (i + 1)
        low = low + mix(data, front, 32 * i) & MASK ^ sum(two_words(data, back)) & MASK
        high = high + mix(data, back, 32 * i + 16) & MASK ^ sum(two_words(data, front)) & MASK
    mixed = low * PRIME_1 + high * PRIME_4 + size * PRIME_2 & MASK
    return avalanche(low + high & MASK), -avalanche(mixed) & MASK
