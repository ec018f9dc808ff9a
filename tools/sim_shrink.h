// SPDX-License-Identifier: BSD-2-Clause
// A scenario that fails, made shorter: lines and sections are left out, also of its data files, for as long as it fails
// in the same way.
#pragma once

#include "tools/sim_judge.h"

// judgement: of the case as it is, and follows it. Of data files the lines that end in the same comment go together,
// and what has none stays.
void sim_shrink(struct sim_case *of, struct sim_judgement *judgement, sim_judge judge);
