// SPDX-License-Identifier: BSD-2-Clause
#include "sim/complaint.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool alb_complain(struct alb_complaint *complaint, const char *file, uint32_t line, const char *format, ...)
{
    if (complaint->text[0])
        return false;
    int length = line ? snprintf(complaint->text, ALB_COMPLAINT_MAX, "%s:%" PRIu32 ": ", file, line)
                      : snprintf(complaint->text, ALB_COMPLAINT_MAX, "%s: ", file);
    complaint->is_of_option = strncmp(file, "--", 2) == 0;
    if (length >= ALB_COMPLAINT_MAX)
        return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(complaint->text + length, (size_t)(ALB_COMPLAINT_MAX - length), format, arguments);
    va_end(arguments);
    alb_text_disarm(complaint->text);
    return false;
}
