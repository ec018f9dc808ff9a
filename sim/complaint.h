// SPDX-License-Identifier: BSD-2-Clause
// What is wrong with a file that a user wrote, or with an option in its place: one line, "file:line: what was found;
// what was expected".
#pragma once

#include "base/types.h"

#define ALB_COMPLAINT_MAX 600

struct alb_complaint {
    char text[ALB_COMPLAINT_MAX]; // empty: none
    bool is_of_option;            // the command line is to be mended, not the file
};

// Sets it, unless there is one already: the first mistake is the one to mend. file is a name, or an option ("--set");
// line 0: of the file as a whole. Returns false, so that a parser can return what this returns.
__attribute__((format(printf, 4, 5))) bool alb_complain(struct alb_complaint *complaint, const char *file,
                                                        uint32_t line, const char *format, ...);
