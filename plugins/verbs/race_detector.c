// SPDX-License-Identifier: BSD-2-Clause
#include "plugins/verbs/race_detector.h"

char alb_race_detector_requests[4096];
