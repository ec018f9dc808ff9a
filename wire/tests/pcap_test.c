// SPDX-License-Identifier: BSD-2-Clause
// Captures there and back, and against an independent judge: tshark, if it is installed, finds no fault with them.
#include "wire/pcap.h"

#include "wire/icrc.h"
#include "wire/roce.h"
#include "wire/tests/capture.h"

#include <string.h>
#include <unistd.h>

static struct alb_pcap_packet make_packet(const char *source, const char *destination)
{
    struct alb_pcap_packet packet = {.time = 1700000000123456789,
                                     .traffic_class = 0x6a,
                                     .hop_limit = 61,
                                     .identification = 0x1234,
                                     .source.port = 50000,
                                     .destination.port = ALB_ROCE_PORT};
    assert_true(alb_addr_parse(source, &packet.source.addr));
    assert_true(alb_addr_parse(destination, &packet.destination.addr));
    return packet;
}

static const struct {
    const char *from, *to;
} families[] = {{"10.0.0.1", "10.0.0.2"}, {"fd99::1", "fd99::2"}};

// A datagram in count parts, as it stands in a capture. Returns the bytes written.
static uint32_t put_record(uint8_t *out, const struct alb_pcap_packet *packet, const struct iovec *iov, uint32_t count)
{
    uint32_t length = 0;
    for (uint32_t i = 0; i < count; i++)
        length += (uint32_t)iov[i].iov_len;
    uint8_t *next = out + alb_pcap_head(out, packet, iov, length);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(next, iov[i].iov_base, iov[i].iov_len);
        next += iov[i].iov_len;
    }
    return (uint32_t)(next - out);
}

static void pcap__what_is_written_is_read(void **state)
{
    for (unsigned i = 0; i < ALB_COUNT(families); i++) {
        uint8_t file[400], datagram[101];
        memset(datagram, 0x77, sizeof(datagram));
        struct alb_pcap_packet in = make_packet(families[i].from, families[i].to), out;
        struct iovec iov[] = {{datagram, 31}, {datagram, 0}, {datagram + 31, 70}};
        uint32_t length = ALB_PCAP_FILE_HEADER_BYTES, seen;
        const uint8_t *payload;
        alb_pcap_file_header(file);
        for (unsigned n = 0; n < 2; n++)
            length += put_record(file + length, &in, iov, ALB_COUNT(iov));
        assert_int_equal(length, 24 + 2 * (16 + (i == 0 ? 20 : 40) + 8 + 101));

        struct alb_pcap_reader reader;
        assert_true(alb_pcap_reader_init(&reader, file, length));
        for (unsigned n = 0; n < 2; n++) {
            assert_true(alb_pcap_next(&reader, &out, &payload, &seen));
            assert_int_equal(out.time, in.time);
            assert_true(alb_endpoint_equals(&out.source, &in.source));
            assert_true(alb_endpoint_equals(&out.destination, &in.destination));
            assert_int_equal(out.traffic_class, in.traffic_class);
            assert_int_equal(out.hop_limit, in.hop_limit);
            assert_int_equal(out.identification, i == 0 ? in.identification : 0);
            assert_int_equal(seen, sizeof(datagram));
            assert_memory_equal(payload, datagram, sizeof(datagram));
        }
        assert_false(alb_pcap_next(&reader, &out, &payload, &seen));
    }
}

static uint16_t internet_sum(const uint8_t *p, size_t length, uint32_t sum)
{
    for (size_t i = 0; i < length; i++)
        sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

static void pcap_head__checksums_are_right(void **state)
{
    uint8_t out[400], datagram[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct iovec iov[] = {{datagram, 1}, {datagram + 1, 5}, {datagram + 6, 3}};

    struct alb_pcap_packet packet = make_packet("10.0.0.1", "10.0.0.2");
    assert_int_equal(put_record(out, &packet, iov, ALB_COUNT(iov)), 16 + 28 + 9);
    assert_int_equal(internet_sum(out + 16, 20, 0), 0xffff);

    packet = make_packet("fd99::1", "fd99::2");
    assert_int_equal(put_record(out, &packet, iov, ALB_COUNT(iov)), 16 + 48 + 9);
    assert_int_equal(internet_sum(out + 16 + 8, 32 + 8 + 9, 17 + 8 + 9), 0xffff);
}

// Wireshark 4.0 has no name for the others.
static bool is_known_to_wireshark(uint8_t opcode)
{
    const struct alb_opcode_info *info = alb_opcode_info(opcode);
    return info && info->service != ALB_SERVICE_XRC && info->service != ALB_SERVICE_CNP &&
           opcode != ALB_RC_ATOMIC_WRITE;
}

// One packet of every such opcode over each family, sealed, as a capture file. Returns the packets in it. A payload of
// 32 bytes, because Wireshark takes shorter ones for RPC over RDMA and then finds that malformed.
static unsigned write_every_opcode(FILE *file)
{
    uint8_t record[512];
    unsigned packets = 0;
    alb_pcap_file_header(record);
    fwrite(record, 1, ALB_PCAP_FILE_HEADER_BYTES, file);
    for (unsigned family = 0; family < ALB_COUNT(families); family++) {
        for (unsigned opcode = 0; opcode < 256; opcode++) {
            const struct alb_opcode_info *info = alb_opcode_info((uint8_t)opcode);
            if (!is_known_to_wireshark((uint8_t)opcode))
                continue;
            struct alb_pcap_packet packet = make_packet(families[family].from, families[family].to);
            struct alb_roce roce = {.opcode = (uint8_t)opcode,
                                    .pkey = 0xffff,
                                    .dest_qpn = 0x1234,
                                    .psn = opcode,
                                    .rkey = 5,
                                    .length = 8,
                                    .syndrome = 0x1f,
                                    .qkey = 0x11111111,
                                    .src_qpn = 0x99};
            uint8_t bytes[ALB_ROCE_HEADER_MAX + 32 + ALB_ICRC_BYTES];
            memset(bytes, 0xa5, sizeof(bytes));
            struct alb_icrc_prefix prefix;
            uint32_t length = alb_roce_encode(&roce, bytes) + (info->flags & ALB_OPCODE_PAYLOAD ? 32 : 0);
            struct iovec iov = {bytes, length + ALB_ICRC_BYTES};
            alb_icrc_prefix_init(&prefix, &packet.source, &packet.destination);
            uint32_t icrc = alb_icrc_compute(&prefix, packet.identification, &iov, length);
            memcpy(bytes + length, &icrc, sizeof(icrc));
            uint32_t written = put_record(record, &packet, &iov, 1);
            assert_int_equal(fwrite(record, 1, written, file), written);
            packets++;
        }
    }
    return packets;
}

// What a command says, its lines counted.
static unsigned count_lines(const char *command)
{
    unsigned lines = 0;
    char text[1024];
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    while (fgets(text, sizeof(text), pipe)) {
        print_message("%s", text);
        lines++;
    }
    assert_int_equal(pclose(pipe), 0);
    return lines;
}

static void pcap__tshark_dissects_its_opcodes_as_infiniband_without_complaint(void **state)
{
    if (system("tshark --version >/dev/null 2>&1"))
        skip();
    char path[] = "/tmp/albedo-pcap-XXXXXX", command[512];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "wb");
    assert_non_null(file);
    unsigned packets = write_every_opcode(file);
    assert_int_equal(fclose(file), 0);

    // Link, IP, UDP and InfiniBand; nothing malformed, no expert information of note, every checksum good.
    snprintf(
        command, sizeof(command),
        "tshark -n -r %s -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -Y 'infiniband.bth.opcode && "
        "infiniband.invariant.crc && !_ws.malformed && !(_ws.expert.severity >= \"Warning\") && "
        "!(ip.checksum.status == \"Bad\") && !(udp.checksum.status == \"Bad\")' -T fields -e frame.number 2>/dev/null",
        path);
    unsigned good = count_lines(command);
    unlink(path);
    assert_int_equal(good, packets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pcap__what_is_written_is_read),
        cmocka_unit_test(pcap_head__checksums_are_right),
        cmocka_unit_test(pcap__tshark_dissects_its_opcodes_as_infiniband_without_complaint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
