// SPDX-License-Identifier: BSD-2-Clause
// Local addresses, from getifaddrs(3).
#include "device/address.h"

#include "device/cancel.h"
#include "device/clock.h"
#include "device/socket.h"
#include "wire/aeth.h"
#include "wire/datagram.h"
#include "wire/roce.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool alb_address_is_loopback(const struct alb_addr *addr)
{
    static const struct alb_addr ipv6_loopback = {.bytes = {[15] = 1}};
    return (alb_addr_is_ipv4(addr) && addr->bytes[12] == 127) || alb_addr_equals(addr, &ipv6_loopback);
}

static bool is_link_local(const struct alb_addr *addr)
{
    return addr->bytes[0] == 0xfe && (addr->bytes[1] & 0xc0) == 0x80;
}

// Whether an entry of getifaddrs is an IP address; *addr is then that address.
static bool entry_address(const struct ifaddrs *entry, struct alb_addr *addr)
{
    if (!entry->ifa_addr)
        return false;
    union alb_sockaddr sockaddr;
    size_t bytes = entry->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6)
        return false;
    memcpy(&sockaddr, entry->ifa_addr, bytes);
    struct alb_endpoint endpoint;
    if (!alb_sockaddr_decode(&sockaddr, &endpoint))
        return false;
    *addr = endpoint.addr;
    return true;
}

// Its index and MTU. Not by if_nametoindex, which does not say that it had no descriptor.
static int ask_interface(const char *name, struct alb_address_info *info)
{
    struct ifreq index = {.ifr_ifindex = 0}, mtu = {.ifr_mtu = 0};
    snprintf(index.ifr_name, sizeof(index.ifr_name), "%s", name);
    snprintf(mtu.ifr_name, sizeof(mtu.ifr_name), "%s", name);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int error = ioctl(fd, SIOCGIFINDEX, &index) != 0 || ioctl(fd, SIOCGIFMTU, &mtu) != 0 ? errno : 0;
    close(fd);
    info->ifindex = (uint32_t)index.ifr_ifindex;
    info->mtu_bytes = (uint32_t)mtu.ifr_mtu;
    return error == ENODEV ? EADDRNOTAVAIL : error; // it has gone, and its addresses with it
}

// Any 127.x.y.z is looked up as the address of the loopback interface.
static struct alb_addr listed_form(const struct alb_addr *addr)
{
    if (alb_addr_is_ipv4(addr) && alb_address_is_loopback(addr))
        return alb_addr_from_ipv4((const uint8_t[]){127, 0, 0, 1});
    return *addr;
}

// A thread that is cancelled here would leave a mutex locked, or a socket open.
static int list_addresses(struct ifaddrs **list)
{
    int cancel = alb_cancel_off();
    errno = EIO; // it does not always say why
    int error = getifaddrs(list) == 0 ? 0 : errno;
    alb_cancel_back(cancel);
    return error;
}

static int find(const struct alb_addr *addr, struct alb_address_info *info)
{
    const struct alb_addr wanted = listed_form(addr);
    struct ifaddrs *list;
    int error = list_addresses(&list);
    if (error)
        return error;
    const struct ifaddrs *found = NULL;
    for (const struct ifaddrs *entry = list; entry && !found; entry = entry->ifa_next) {
        struct alb_addr local;
        if (entry_address(entry, &local) && alb_addr_equals(&local, &wanted))
            found = entry;
    }
    info->addr = *addr;
    error = found ? ask_interface(found->ifa_name, info) : EADDRNOTAVAIL;
    freeifaddrs(list);
    return error;
}

int alb_address_find(const struct alb_addr *addr, struct alb_address_info *info)
{
    int cancel = alb_cancel_off();
    int error = find(addr, info);
    alb_cancel_back(cancel);
    return error;
}

static bool is_among(const struct alb_addr *addr, const struct alb_addr *addresses, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct alb_addr wanted = listed_form(&addresses[i]);
        if (alb_addr_equals(&wanted, addr))
            return true;
    }
    return false;
}

int alb_address_any_is_up(const struct alb_addr *addresses, uint32_t count, bool *is_up)
{
    const unsigned up = IFF_UP | IFF_RUNNING;
    struct ifaddrs *list;
    int error = list_addresses(&list);
    if (error)
        return error;
    bool found = false;
    for (struct ifaddrs *entry = list; entry && !found; entry = entry->ifa_next) {
        struct alb_addr local;
        found = (entry->ifa_flags & up) == up && entry_address(entry, &local) && is_among(&local, addresses, count);
    }
    freeifaddrs(list);
    *is_up = found;
    return 0;
}

void alb_address_explain(int error, char *text, size_t text_size)
{
    bool is_shortage = error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
    snprintf(text, text_size, "this host's addresses cannot be listed: %s%s", strerror(error),
             is_shortage ? "" : "; a sandbox must allow sockets of AF_NETLINK");
}

int alb_address_of_interface(const char *name, struct alb_addr *addresses, uint32_t capacity, uint32_t *count)
{
    struct ifaddrs *list;
    int error = list_addresses(&list);
    *count = 0;
    if (error)
        return error;
    for (int ipv4 = 1; ipv4 >= 0; ipv4--) {
        for (struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
            struct alb_addr addr;
            if (strcmp(entry->ifa_name, name) != 0 || !entry_address(entry, &addr))
                continue;
            if (alb_addr_is_ipv4(&addr) != (bool)ipv4 || is_link_local(&addr))
                continue;
            if (*count < capacity)
                addresses[*count] = addr;
            (*count)++;
        }
    }
    freeifaddrs(list);
    return 0;
}

#define LOCAL_MAX       256
#define LIST_AGE_NS_MAX ALB_NS_PER_S

static struct {
    pthread_mutex_t mutex;
    alb_time read_at; // 0: never
    uint32_t count;
    struct alb_addr addresses[LOCAL_MAX];
} local_list = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// A thread that a forked child has not may have been reading.
static void after_fork_in_child(void)
{
    local_list.read_at = 0;
    pthread_mutex_init(&local_list.mutex, NULL);
}

__attribute__((constructor)) static void install_hook(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

static void read_local_list(alb_time now)
{
    struct ifaddrs *list;
    if (list_addresses(&list) != 0)
        return;
    local_list.count = 0;
    for (struct ifaddrs *entry = list; entry && local_list.count < LOCAL_MAX; entry = entry->ifa_next)
        local_list.count += entry_address(entry, &local_list.addresses[local_list.count]);
    local_list.read_at = now;
    freeifaddrs(list);
}

bool alb_address_is_local(const struct alb_addr *addr)
{
    if (alb_address_is_loopback(addr))
        return true;
    alb_time now = alb_clock_now();
    bool found = false;
    pthread_mutex_lock(&local_list.mutex);
    if (local_list.read_at == 0 || now - local_list.read_at >= LIST_AGE_NS_MAX)
        read_local_list(now);
    for (uint32_t i = 0; i < local_list.count && !found; i++)
        found = alb_addr_equals(&local_list.addresses[i], addr);
    pthread_mutex_unlock(&local_list.mutex);
    return found;
}

// IP and UDP headers, the longest headers that come with payload (BTH, RETH, immediate) and the ICRC.
#define PACKET_OVERHEAD(ip_bytes) ((ip_bytes) + 8 + ALB_BTH_BYTES + 16 + 4 + ALB_ICRC_BYTES)

uint32_t alb_address_roce_mtu(const struct alb_addr *addr, uint32_t interface_mtu_bytes)
{
    uint32_t overhead = alb_addr_is_ipv4(addr) ? PACKET_OVERHEAD(20) : PACKET_OVERHEAD(40);
    return interface_mtu_bytes > overhead ? alb_mtu_bytes(alb_mtu_code(interface_mtu_bytes - overhead)) : 0;
}
