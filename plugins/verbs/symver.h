// SPDX-License-Identifier: BSD-2-Clause
// Gives a function of this library a name in a version node of libibverbs.map. The linker hides every name that has no
// node.
#pragma once

#define ALB_SYMVER(function, name, node)         __asm__(".symver " #function ", " #name "@" node)
#define ALB_SYMVER_DEFAULT(function, name, node) __asm__(".symver " #function ", " #name "@@" node)

// The private names of rdma-core have lived in one node after another: 34 until release 56, then these. A program or a
// provider library that was built against any of them finds its own.
#define ALB_SYMVER_PRIVATE(function, name)                    \
    ALB_SYMVER_DEFAULT(function, name, "IBVERBS_PRIVATE_34"); \
    ALB_SYMVER(function, name, "IBVERBS_PRIVATE_57");         \
    ALB_SYMVER(function, name, "IBVERBS_PRIVATE_59");         \
    ALB_SYMVER(function, name, "IBVERBS_PRIVATE_64");         \
    ALB_SYMVER(function, name, "IBVERBS_PRIVATE_65")
