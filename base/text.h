// SPDX-License-Identifier: BSD-2-Clause
// Quantities as people write them on a command line. Parsing is strict and exact (decimal fixed point, no floating
// point): the whole text must be one quantity, and one that cannot be held exactly is refused, not rounded.
//
// On success each function returns true and sets *value. Otherwise it returns false, leaves *value alone, and writes
// into error, if error_size is not 0, one line for the user that quotes the text and says what is accepted.
#pragma once

#include "base/types.h"

#define ALB_TEXT_ERROR_MAX 256 // room for every message of this file

// A whole number, decimal or with 0x, from min to max.
bool alb_text_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value, char *error, size_t error_size);

// "300ns", "50us", "1.5ms", "2s", or "0". In nanoseconds, below ALB_TIME_NEVER.
bool alb_text_parse_duration(const char *text, alb_time *value, char *error, size_t error_size);

// "50us..1ms", or one duration, which is then both ends. The first may not be greater than the second.
bool alb_text_parse_duration_range(const char *text, alb_time *min, alb_time *max, char *error, size_t error_size);

// A probability in parts per billion: "1%", "0.01%", "1e-5", "0.001", "0". One without % sign must be below 1: "1"
// could be meant as 1 % or as 100 %.
bool alb_text_parse_probability(const char *text, uint32_t *per_billion, char *error, size_t error_size);

// "4096", "64KiB", "8M", "1.5GiB". K, M, G and T are powers of 1024, with or without iB; B alone may follow a plain
// number.
bool alb_text_parse_bytes(const char *text, uint64_t *value, char *error, size_t error_size);

// "100Gb/s", "2.5Gb/s", "40Mb/s": a number with b/s, kb/s, Mb/s, Gb/s or Tb/s, powers of 1000. In bits per second.
bool alb_text_parse_rate(const char *text, uint64_t *value, char *error, size_t error_size);

#define ALB_TEXT_QUANTITY_MAX 32

// The shortest exact form, which the parsers above read back to the same value: "1500us", "1ms", "0"; "0.01%", "0".
char *alb_text_format_duration(alb_time value, char text[ALB_TEXT_QUANTITY_MAX]);
char *alb_text_format_probability(uint32_t per_billion, char text[ALB_TEXT_QUANTITY_MAX]);

// The bytes of the character of UTF-8 (RFC 3629) that the text begins with; 0: it begins with none, as at its end.
size_t alb_text_character(const char *text);

// The bytes of UTF-8's byte order mark, which some editors write, that the text begins with; 0: it begins with none.
size_t alb_text_mark(const char *text, size_t length);

// What another process or host has said may be anything, and is shown on a terminal: control characters become question
// marks. Returns text.
char *alb_text_disarm(char *text);
