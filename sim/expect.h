// SPDX-License-Identifier: BSD-2-Clause
// What a scenario says must come out ([expect]), and whether it did:
//
//     fct_max = 180us..190us          of all
//     bulk.goodput = >=90Gb/s         of the workload bulk
//     many/one.goodput = 1.3..1.5     of the variant many, by that of the variant one
//     many:bulk.goodput = >=90Gb/s    of a workload of one variant
#pragma once

#include "sim/summary.h"

struct alb_expectation_of {
    char variant[ALB_DOCUMENT_WORD_MAX]; // empty: of each
    char by[ALB_DOCUMENT_WORD_MAX];      // the variant that it is divided by; empty: none
    char part[ALB_DOCUMENT_WORD_MAX];    // empty: all
    const struct alb_metric *metric;
    double low, high;
    const struct alb_document_entry *where;
};

// What that entry of [expect] says. False: complained.
bool alb_expect_parse(struct alb_expectation_of *expectation, const struct alb_document_entry *entry,
                      struct alb_complaint *complaint);
// Every entry is well-formed and names variants and workloads that there are.
bool alb_expect_check(const struct alb_document *document, struct alb_complaint *complaint);
