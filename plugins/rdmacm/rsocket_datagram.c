// SPDX-License-Identifier: BSD-2-Clause
// Datagram rsockets.
#include "plugins/rdmacm/rsocket.h"

int rsocket_datagram_create(int domain, struct rsocket **out)
{
    return ESOCKTNOSUPPORT;
}
