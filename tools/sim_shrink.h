// SPDX-License-Identifier: BSD-2-Clause
// A scenario that fails, made shorter: lines and sections are left out for as long as it fails in the same way.
#pragma once

#include "sim/document.h"

enum {
    SIM_WHY_MAX = 700,
};

// What a scenario comes to. What fails in another way is another failure, most often none of the product's.
enum sim_verdict {
    SIM_GOOD,
    SIM_IMPOSSIBLE,  // no scenario
    SIM_BROKEN,      // a promise: wrong bytes, a message that arrives twice or completes unasked
    SIM_FAILED,      // messages
    SIM_STUCK,       // nothing happens any more, and not all is done
    SIM_NEVER_ENDED, // within its time or its events
};

typedef enum sim_verdict (*sim_judge)(const struct alb_document *document, char why[SIM_WHY_MAX]);

// verdict, why: of the document as it is; why follows it.
void sim_shrink(struct alb_document *document, enum sim_verdict verdict, char why[SIM_WHY_MAX], sim_judge judge);
