// SPDX-License-Identifier: BSD-2-Clause
#include "sim/capture.h"

#include "sim/file.h"
#include "sim/packet_gaps.h"
#include "wire/pcap.h"

#include <errno.h>

enum {
    DATAGRAM_BYTES_MAX = 1 << 16, // of UDP; those of csa are as long as the links carry
};

int alb_sim_capture_open(struct alb_sim_capture *capture, const char *path)
{
    uint8_t header[ALB_PCAP_FILE_HEADER_BYTES];
    capture->file = alb_sim_file_open(path);
    if (!capture->file)
        return errno;
    alb_pcap_file_header(header);
    fwrite(header, 1, sizeof(header), capture->file);
    return 0;
}

int alb_sim_capture_close(struct alb_sim_capture *capture)
{
    int error = fclose(capture->file) == 0 ? 0 : errno;
    capture->file = NULL;
    return error;
}

void alb_sim_capture_add(struct alb_sim_capture *capture, const struct alb_sim_packet *packet, alb_sim_time now)
{
    const struct alb_sim_load *load = alb_sim_load(packet);
    static uint8_t scratch[DATAGRAM_BYTES_MAX];
    struct alb_pcap_packet info = {
        .time = alb_sim_to_ns(now),
        .source = load->source,
        .destination = load->destination,
        .traffic_class = packet->traffic_class,
        .hop_limit = packet->hop_limit,
    };
    const uint8_t *bytes = alb_sim_packet_bytes(packet, scratch, true);
    struct iovec iov = {(void *)(uintptr_t)bytes, load->length};
    uint8_t head[ALB_PCAP_HEAD_MAX];
    uint32_t head_bytes = alb_pcap_head(head, &info, &iov, load->length);
    fwrite(head, 1, head_bytes, capture->file);
    fwrite(bytes, 1, load->length, capture->file);
}
