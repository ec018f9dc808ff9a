// SPDX-License-Identifier: BSD-2-Clause
// A network namespace for a test's child.
#pragma once

#include <stdbool.h>

// Runs body in a child that has a network namespace of its own, where nothing but lo is, which is down. What body
// returns; a test where the host gives no namespace is skipped.
bool network_namespace_run(bool (*body)(void));
// Sets an interface up or down.
void network_namespace_set_link(const char *name, bool is_up);
// Runs commands of a shell in there, ip(8) for one; where they fail, as without that program, the test is skipped.
void network_namespace_shell(const char *commands);
