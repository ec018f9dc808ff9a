// SPDX-License-Identifier: BSD-2-Clause
// What verbs promise, over RC.
#include "cases.h"

int main(void)
{
    return run_verbs_cases("rc");
}
