// SPDX-License-Identifier: BSD-2-Clause
// Writing captures.
#include "device/capture.h"

#include "device/clock.h"

static uint64_t epoch_offset(void)
{
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    return (uint64_t)real.tv_sec * ALB_NS_PER_S + (uint64_t)real.tv_nsec - alb_clock_now();
}

int alb_capture_open(struct alb_capture *capture, const char *path)
{
    uint8_t header[ALB_PCAP_FILE_HEADER_BYTES];
    int error = alb_outfile_open(&capture->file, path);
    if (error)
        return error;
    capture->epoch_offset_ns = epoch_offset();
    alb_pcap_file_header(header);
    if (!capture->file.continues)
        alb_outfile_add(&capture->file, header, sizeof(header));
    return 0;
}

void alb_capture_close(struct alb_capture *capture)
{
    alb_outfile_close(&capture->file);
}

void alb_capture_datagram(struct alb_capture *capture, const struct alb_pcap_packet *packet, const struct iovec *iov,
                          uint32_t length)
{
    uint8_t head[ALB_PCAP_HEAD_MAX];
    struct alb_pcap_packet dated = *packet;
    dated.time += capture->epoch_offset_ns;
    uint32_t head_bytes = alb_pcap_head(head, &dated, iov, length);
    alb_outfile_reserve(&capture->file, head_bytes + length); // a record is written whole
    alb_outfile_add(&capture->file, head, head_bytes);
    for (; length > 0; iov++) {
        uint32_t part = (uint32_t)ALB_MIN(iov->iov_len, (size_t)length);
        alb_outfile_add(&capture->file, iov->iov_base, part);
        length -= part;
    }
}
